"""What every Kafka client of the worker is configured with."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from worker.config import ConfigError, Settings

log = structlog.get_logger()

Client = TypeVar("Client")

ROOM_POLL_S = 0.1


def client_properties(settings: Settings) -> dict[str, Any]:
    """Return the librdkafka properties shared by every client of the worker."""
    return {
        "bootstrap.servers": settings.bootstrap_servers,
        "client.id": "glistream",
        "error_cb": report,
        "logger": logging.getLogger("librdkafka"),
        **settings.kafka_properties,
    }


def new_client(make: Callable[[dict[str, Any]], Client], properties: dict[str, Any]) -> Client:
    """Make a client.

    Raises:
        ConfigError: librdkafka refuses a property or its value.
    """
    try:
        return make(properties)
    except KafkaException as error:
        raise ConfigError(f"Kafka client properties: {error.args[0].str()}") from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"Kafka client properties: {error}") from None


def new_reader(settings: Settings, *, group: str = "reader", **properties: Any) -> Consumer:
    """Make a consumer that never joins a group: its partitions are assigned by hand, it commits nothing by itself.

    Args:
        settings: of them the broker's address and the consumer's properties.
        group: ending of the group's name.
        properties: librdkafka properties that this reader must have.

    Raises:
        ConfigError: librdkafka refuses a property.
    """
    fixed = properties | {
        "group.id": f"{settings.group_id}-{group}",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
    }
    return new_client(Consumer, client_properties(settings) | settings.consumer_properties | fixed)


def enqueue(producer: Producer, **message: Any) -> None:
    """Produce a message (`Producer.produce`'s own arguments), waiting for room in the client's queue.

    Raises:
        KafkaException: the client refuses the message.
    """
    while True:
        try:
            return producer.produce(**message)
        except BufferError:
            producer.poll(ROOM_POLL_S)


def report(error: KafkaError) -> None:
    """Log what a client says of its connections; it reconnects by itself."""
    if error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._SSL):
        log.warning("broker_unreachable", error=error.name(), reason=error.str())
    else:
        log.debug("client_error", error=error.name(), reason=error.str())

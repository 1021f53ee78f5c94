"""What every Kafka client of the worker is configured with, and how its calls are made."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from worker.config import ConfigError, Settings
from worker.records import OutgoingMessage

log = structlog.get_logger()

Client = TypeVar("Client")
Reported = Callable[[KafkaError | None, "Message[bytes, bytes]"], None]

ROOM_POLL_S = 0.1
RETRY_PAUSE_S = 0.1


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


def enqueue_message(producer: Producer, message: OutgoingMessage, on_delivery: Reported) -> None:
    """Produce a message, see `enqueue`; its delivery is reported to `on_delivery`.

    Raises:
        KafkaException: the client refuses the message.
    """
    enqueue(
        producer,
        topic=message.topic,
        value=message.value,
        key=message.key,
        partition=-1 if message.partition is None else message.partition,
        timestamp=message.timestamp or 0,
        headers=list(message.headers),
        on_delivery=on_delivery,
    )


def until_done(
    call: Callable[[], None], patience_s: float, repeated: Callable[[KafkaException], None] = lambda _: None
) -> None:
    """Make a transactional call again for as long as the client says that the same call is to be repeated.

    Args:
        call: the call.
        patience_s: for how long it is repeated, in seconds.
        repeated: is told why, each time.

    Raises:
        KafkaException: it failed; or is still to be repeated when the patience is over.
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return call()
        except KafkaException as failure:
            if not failure.args[0].retriable() or time.monotonic() > deadline:
                raise
            repeated(failure)
            time.sleep(RETRY_PAUSE_S)


def said(failure: KafkaException) -> str:
    """Return what the client says of a failure: the error's name, and what it means."""
    error: KafkaError = failure.args[0]
    return f"{error.name()}: {error.str()}"


def report(error: KafkaError) -> None:
    """Log what a client says of its connections; it reconnects by itself."""
    if error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._SSL):
        log.warning("broker_unreachable", error=error.name(), reason=error.str())
    else:
        log.debug("client_error", error=error.name(), reason=error.str())

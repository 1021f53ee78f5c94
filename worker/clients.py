"""What every Kafka client of the worker is configured with."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import structlog
from confluent_kafka import KafkaError, KafkaException

from worker.config import ConfigError, Settings

log = structlog.get_logger()

Client = TypeVar("Client")


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


def report(error: KafkaError) -> None:
    """Log what a client says of its connections; it reconnects by itself."""
    if error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._SSL):
        log.warning("broker_unreachable", error=error.name(), reason=error.str())
    else:
        log.debug("client_error", error=error.name(), reason=error.str())

"""The topics: reached, checked, created where asked, with what the worker needs to know of them."""

import threading
import time
from dataclasses import dataclass

import structlog
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]

from worker.clients import client_properties, new_client
from worker.config import ConfigError, Settings

log = structlog.get_logger()

RETRY_PAUSE_S = 0.2
BACKOFF_S = (0.5, 1.0, 2.0, 5.0, 10.0)
FIRST_TIMEOUT_S = 3.0
TIMEOUT_S = 10.0
DEFAULT_MESSAGE_BYTES = 1_048_588
"""Kafka's own default of `max.message.bytes`."""


class BrokerUnreachableError(Exception):
    """No broker answered, and the settings ask to stop at once; or the worker was told to stop meanwhile."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the broker has it.

    Attributes:
        partitions: how many it has.
        max_message_bytes: the largest record batch it takes.
    """

    name: str
    partitions: int
    max_message_bytes: int


@dataclass(frozen=True, slots=True)
class Topics:
    """The three topics of the worker."""

    input: Topic
    output: Topic
    dead_letters: Topic


def reach(settings: Settings, stop: threading.Event) -> AdminClient:
    """Return an admin client once a broker answers, trying again with growing pauses.

    Raises:
        BrokerUnreachableError: `fail_fast` is set, or `stop` was set.
        ConfigError: librdkafka refuses a property.
    """
    admin = new_client(AdminClient, client_properties(settings))
    attempt = 0
    while True:
        try:
            admin.list_topics(timeout=FIRST_TIMEOUT_S if attempt == 0 else TIMEOUT_S)
        except KafkaException as error:
            pause = BACKOFF_S[min(attempt, len(BACKOFF_S) - 1)]
            attempt += 1
            line = f"no broker answers at {settings.bootstrap_servers}: {error.args[0].str()}"
            if settings.fail_fast:
                raise BrokerUnreachableError(line) from None
            log.warning(
                "broker_unreachable",
                bootstrap_servers=settings.bootstrap_servers,
                reason=error.args[0].str(),
                attempt=attempt,
                retry_in_s=pause,
            )
            if stop.wait(pause):
                raise BrokerUnreachableError(line) from None
        else:
            return admin


def inspect(admin: AdminClient, settings: Settings) -> Topics:
    """Return the three topics, creating those that don't exist if `create_topics` is set.

    Raises:
        ConfigError: a topic doesn't exist; the message says which and how to create it.
    """
    names = (settings.input_topic, settings.output_topic, settings.dead_letter_topic)
    partitions = _partitions(admin, names)
    missing = [name for name in names if name not in partitions]
    if missing and not settings.create_topics:
        raise _not_there(missing, settings)
    if missing:
        _create(admin, missing, partitions.get(settings.input_topic, 6))
        deadline = time.monotonic() + TIMEOUT_S
        while len(partitions := _partitions(admin, names)) < len(names):
            if time.monotonic() > deadline:
                raise ConfigError(f"topics {', '.join(missing)} were created, but the broker doesn't show them")
            time.sleep(RETRY_PAUSE_S)
    limits = _message_limits(admin, names)
    return Topics(*(Topic(name, partitions[name], limits[name]) for name in names))


def require(settings: Settings, name: str) -> None:
    """Make sure, at once, that a broker answers and has a topic.

    Raises:
        BrokerUnreachableError: no broker answers.
        ConfigError: the topic doesn't exist; the message says how to create it.
    """
    admin = reach(settings.model_copy(update={"fail_fast": True}), threading.Event())
    if name not in _partitions(admin, (name,)):
        raise _not_there([name], settings)


def find(settings: Settings, name: str) -> Topic:
    """Return one topic, looked for at once.

    Raises:
        BrokerUnreachableError: no broker answers.
        ConfigError: the topic doesn't exist; the message says how to create it.
    """
    admin = reach(settings.model_copy(update={"fail_fast": True}), threading.Event())
    partitions = _partitions(admin, (name,))
    if name not in partitions:
        raise _not_there([name], settings)
    return Topic(name, partitions[name], _message_limits(admin, (name,))[name])


def retention_ms(settings: Settings, name: str) -> int | None:
    """Return for how long after its event time a topic keeps a record; None where that is for ever, or unknown.

    Raises:
        BrokerUnreachableError: no broker answers.
    """
    admin = reach(settings.model_copy(update={"fail_fast": True}), threading.Event())
    asked = ConfigResource(ResourceType.TOPIC, name)
    try:
        found = admin.describe_configs([asked], request_timeout=TIMEOUT_S)[asked].result()
    except KafkaException:
        return None
    kept = "delete" in found["cleanup.policy"].value and found["message.timestamp.type"].value == "CreateTime"
    limit = int(found["retention.ms"].value)
    return limit if kept and limit >= 0 else None


def assumed(settings: Settings, partitions: int) -> Topics:
    """Return the topics of a broker that invents any topic with so many partitions (the embedded one)."""
    names = (settings.input_topic, settings.output_topic, settings.dead_letter_topic)
    return Topics(*(Topic(name, partitions, DEFAULT_MESSAGE_BYTES) for name in names))


def _partitions(admin: AdminClient, names: tuple[str, ...]) -> dict[str, int]:
    # The whole list, since asking for a topic by name creates it on a broker that creates topics by itself.
    topics = admin.list_topics(timeout=TIMEOUT_S).topics
    return {name: len(topics[name].partitions) for name in names if name in topics}


def _not_there(missing: list[str], settings: Settings) -> ConfigError:
    create = f"kafka-topics.sh --bootstrap-server {settings.bootstrap_servers} --create --partitions 6 --topic "
    return ConfigError(
        f"{'topics' if len(missing) > 1 else 'topic'} {', '.join(missing)} not there at {settings.bootstrap_servers}; "
        f"start the worker with --create-topics, or: {'; '.join(create + name for name in missing)}"
    )


def _create(admin: AdminClient, names: list[str], partitions: int) -> None:
    futures = admin.create_topics([NewTopic(name, partitions) for name in names], operation_timeout=TIMEOUT_S)
    for name, future in futures.items():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                continue  # another worker that started at the same time was faster
            raise ConfigError(f"topic {name} can't be created: {error.args[0].str()}") from None
        log.info("topic_created", topic=name, partitions=partitions)


def _message_limits(admin: AdminClient, names: tuple[str, ...]) -> dict[str, int]:
    limits = {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    for resource, future in admin.describe_configs(resources, request_timeout=TIMEOUT_S).items():
        try:
            limits[resource.name] = int(future.result()["max.message.bytes"].value)
        except KafkaException as error:
            # Reading a topic's configuration needs a right (DescribeConfigs) that a worker may lack.
            log.warning("topic_limits_unknown", topic=resource.name, reason=error.args[0].str())
            limits[resource.name] = DEFAULT_MESSAGE_BYTES
    return limits

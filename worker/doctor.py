"""What the worker would find if it started now: the broker, the topics, the model, and what is wrong."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import confluent_kafka
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

from packing import ModelError
from worker import topics
from worker.clients import new_client
from worker.config import ConfigError, Settings, unknown_variables
from worker.consumer import consumer_properties
from worker.cores import threads_each, usable_cores
from worker.publisher import new_publisher
from worker.run import load_engine


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: what was found, or what is wrong and what to do.

    Attributes:
        slow: nothing is wrong, but there might be a faster way.
    """

    what: str
    found: str
    wrong: bool = False
    slow: bool = False

    @property
    def mark(self) -> str:
        """What it is, in a word."""
        return "wrong" if self.wrong else "slow" if self.slow else "ok"


def examine(settings: Settings) -> Iterator[Finding]:
    """Yield what is found, one thing at a time, slow ones last. Nothing is consumed, produced or created."""
    yield Finding(
        "client", f"confluent-kafka {confluent_kafka.version()}, librdkafka {confluent_kafka.libversion()[0]}"
    )
    for line in unknown_variables():
        yield Finding("environment", line, wrong=True)
    yield from _broker(settings.model_copy(update={"fail_fast": True, "create_topics": False}))
    yield _processor(settings)
    yield from _model(settings)


def _broker(settings: Settings) -> Iterator[Finding]:
    try:
        admin = topics.reach(settings, threading.Event())
    except (topics.BrokerUnreachableError, ConfigError) as error:
        yield Finding("broker", str(error), wrong=True)
        return
    brokers = admin.list_topics(timeout=topics.TIMEOUT_S).brokers.values()
    yield Finding("broker", ", ".join(f"{broker.host}:{broker.port}" for broker in brokers))
    yield _group(admin, settings)
    try:
        found = topics.inspect(admin, settings)
    except ConfigError as error:
        yield Finding("topics", str(error), wrong=True)
        return
    except KafkaException as error:
        yield Finding("topics", error.args[0].str(), wrong=True)
        return
    for role, topic in (("input", found.input), ("output", found.output), ("dead letters", found.dead_letters)):
        yield Finding(
            role, f"{topic.name}, {topic.partitions} partitions, messages up to {topic.max_message_bytes} bytes"
        )
    if found.input.partitions != found.output.partitions:
        yield Finding(
            "placement",
            "input and output differ in partitions: events are placed by key, those without one by their partition",
        )
    yield _clients(settings, found)


def _clients(settings: Settings, found: topics.Topics) -> Finding:
    try:
        new_client(Consumer, consumer_properties(settings)).close()
        new_publisher(settings, found, run="doctor").close()
    except ConfigError as error:
        return Finding("properties", str(error), wrong=True)
    return Finding("properties", f"taken by consumer and producer, delivery {settings.delivery}")


def _group(admin: AdminClient, settings: Settings) -> Finding:
    try:
        group = admin.describe_consumer_groups([settings.group_id])[settings.group_id].result(timeout=topics.TIMEOUT_S)
    except KafkaException as error:
        return Finding("group", f"{settings.group_id}: {error.args[0].str()}")
    except TimeoutError:
        return Finding(
            "group", f"{settings.group_id}: the broker didn't answer in {topics.TIMEOUT_S:.0f} s", wrong=True
        )
    return Finding("group", f"{settings.group_id}: {group.state.name.lower()}, {len(group.members)} members")


def _processor(settings: Settings) -> Finding:
    from packing.precision import bfloat16_instructions  # here, for torch takes seconds to import

    each = threads_each(settings.threads, settings.processes)
    instructions = ", ".join(bfloat16_instructions()) or "no avx512_bf16, no amx"
    return Finding(
        "processor",
        f"{usable_cores()} cores may be used; processes: {settings.processes}, threads of each: {each}; "
        f"bfloat16: {instructions}",
    )


def _model(settings: Settings) -> Iterator[Finding]:
    try:
        engine, model = load_engine(settings)
    except ModelError as error:
        yield Finding("model", str(error), wrong=True)
        return
    info = engine.info
    yield Finding("model", f"{model.name}, revision {model.revision}, {info.architecture}")
    yield Finding("forward", f"{info.backend}, {info.dtype} on {info.device}: {info.why}")
    for step in info.steps:
        yield Finding("self-test", step, slow=True)

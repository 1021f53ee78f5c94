"""Read back from a broker what a worker left there: messages, offsets, open transactions, groups."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

REQUEST_S = 10.0


@dataclass(frozen=True)
class EndOffsets:
    """Where a partition ends, for the two kinds of readers."""

    last_stable: int  # at read_committed: the first offset of the earliest open transaction, or the end
    high_watermark: int  # at read_uncommitted


@dataclass(frozen=True)
class Committed:
    """What a group has committed for a partition."""

    offset: int
    metadata: str


@dataclass(frozen=True)
class Member:
    """A member of a group and the (topic, partition) pairs assigned to it."""

    id: str
    client_id: str
    assignment: frozenset[tuple[str, int]]


@dataclass(frozen=True)
class Group:
    """The state of a consumer group: Stable, Empty, Dead, ... and its members."""

    state: str
    members: tuple[Member, ...]


def partitions_of(bootstrap: str, topic: str) -> list[int]:
    """Return the partitions of a topic, in order.

    Raises:
        KafkaException: the topic isn't there, or the broker didn't answer.
    """
    found = _admin(bootstrap).list_topics(topic, timeout=REQUEST_S).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    return sorted(found.partitions)


def read_topic(
    bootstrap: str, topic: str, *, isolation: str = "read_committed", timeout_s: float = 60.0
) -> list[Message]:
    """Read a whole topic, each partition to its present end; sorted by partition, then offset.

    Raises:
        TimeoutError: the ends were not reached in time; says which partitions are missing.
        KafkaException: anything else that the client reports.
    """
    starts = _start_offsets(bootstrap, topic)
    waiting = set(starts)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "read-back",  # never joined: partitions are assigned by hand
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # an end is told of once a fetch came back empty
            "auto.offset.reset": "error",
        }
    )
    messages: list[Message] = []
    deadline = time.monotonic() + timeout_s
    try:
        # By number: asked for the beginning the client looks it up half a second later, once it knows the leader.
        consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in starts.items()])
        while waiting:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{topic}: the end of partitions {sorted(waiting)} was not reached in {timeout_s} s;"
                    f" {len(messages)} messages read"
                )
            for message in consumer.consume(1000, timeout=0.1):
                error = message.error()
                if error is None:
                    messages.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    waiting.discard(_number(message.partition()))
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
    return sorted(messages, key=lambda message: (_number(message.partition()), _number(message.offset())))


def end_offsets(bootstrap: str, topic: str) -> dict[int, EndOffsets]:
    """Return for each partition its last stable offset and its high watermark."""
    admin = _admin(bootstrap)
    partitions = [TopicPartition(topic, partition) for partition in partitions_of(bootstrap, topic)]

    def ends(level: IsolationLevel) -> dict[int, int]:
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = dict.fromkeys(partitions, latest)
        answers = admin.list_offsets(asked, isolation_level=level, request_timeout=REQUEST_S)
        return {partition.partition: answer.result(REQUEST_S).offset for partition, answer in answers.items()}

    stable, all_ = ends(IsolationLevel.READ_COMMITTED), ends(IsolationLevel.READ_UNCOMMITTED)
    return {partition: EndOffsets(stable[partition], all_[partition]) for partition in sorted(stable)}


def open_transactions(bootstrap: str, topic: str) -> list[int]:
    """Return the partitions in which a transaction is still open."""
    ends = end_offsets(bootstrap, topic)
    return [partition for partition, end in ends.items() if end.last_stable < end.high_watermark]


def committed(bootstrap: str, group: str, topic: str, *, timeout_s: float = REQUEST_S) -> dict[int, Committed]:
    """Return what a group has committed, stably: no offset that an open transaction may still change.

    Partitions without a commit are left out.

    Raises:
        KafkaException: _TIMED_OUT where a transaction that is still open holds an offset, or the request failed.
    """
    asked = [TopicPartition(topic, partition) for partition in partitions_of(bootstrap, topic)]
    # A consumer that never joins, not the admin client: that one's call crashes the process when the coordinator is
    # not available (librdkafka 2.16.0).
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "isolation.level": "read_committed"})
    try:
        found = reader.committed(asked, timeout=timeout_s)
    finally:
        reader.close()
    for partition in found:
        if partition.error is not None:
            raise KafkaException(partition.error)
    return {
        partition.partition: Committed(partition.offset, partition.metadata or "")
        for partition in found
        if partition.offset >= 0
    }


def group(bootstrap: str, name: str) -> Group:
    """Return the state and the members of a group, whichever protocol it uses."""
    admin = _admin(bootstrap)
    answers = admin.describe_consumer_groups([name], request_timeout=REQUEST_S)
    described = answers[name].result(REQUEST_S)
    return Group(
        state=described.state.name.title(),
        members=tuple(
            Member(
                id=member.member_id,
                client_id=member.client_id,
                assignment=frozenset(
                    (partition.topic, partition.partition) for partition in member.assignment.topic_partitions
                ),
            )
            for member in described.members
        ),
    )


def _start_offsets(bootstrap: str, topic: str) -> dict[int, int]:
    partitions = [TopicPartition(topic, partition) for partition in partitions_of(bootstrap, topic)]
    earliest = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
    answers = _admin(bootstrap).list_offsets(dict.fromkeys(partitions, earliest), request_timeout=REQUEST_S)
    return {partition.partition: answer.result(REQUEST_S).offset for partition, answer in answers.items()}


@functools.cache
def _admin(bootstrap: str) -> AdminClient:
    """Return the client of a broker; it lives on, since one that is collected before its answers crashes or hangs."""
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def _number(value: int | None) -> int:
    assert value is not None
    return value

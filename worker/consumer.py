"""The consumer: records taken, partitions paused and resumed, assigned, revoked and lost.

A consumer belongs to one thread, the polling one; the rebalance callbacks run inside `take` and `close`. A call from
another thread while a callback runs would wait for the callback to return (measured with
`consumer_group_metadata`, confluent-kafka 2.16.1), and a callback that waits for that thread never would.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol

import structlog
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from worker.assignment import Assignment
from worker.checkpoint import Checkpoint
from worker.clients import client_properties, new_client
from worker.commits import Commit, read_commits, write_commits
from worker.config import Settings
from worker.isolation import Suspicion
from worker.messages import headers_of, known
from worker.records import Partition, Record
from worker.starts import find_starts, skip_gone

log = structlog.get_logger()


class ConsumerError(Exception):
    """Consuming can't go on; the message says why and what to do."""


class Listener(Protocol):
    """Is told what becomes of partitions."""

    def begin(self, partition: Partition, base: int, suspicion: Suspicion | None) -> None:
        """Take note that a partition is read from now on, its committed offset being `base`."""

    def leave(self, partitions: Collection[Partition]) -> None:
        """Commit what is in flight of partitions that are being revoked: after this returns it is too late."""

    def end(self, partitions: Collection[Partition]) -> None:
        """Take note that partitions are gone; nothing of them may be committed any more."""


class TextConsumer:
    """A member of the consumer group that reads the input topic.

    Args:
        settings: the worker's settings.
        assignment: says under which epoch records are read.
        listener: is told what becomes of partitions.
        run: name of this process, unique.

    Raises:
        ConfigError: librdkafka refuses a property.
    """

    def __init__(self, settings: Settings, assignment: Assignment, listener: Listener, *, run: str) -> None:
        self._settings = settings
        self._assignment = assignment
        self._listener = listener
        self._run = run
        self._assigned: set[Partition] = set()
        self._gone: set[Partition] = set()
        self._at_end: set[Partition] = set()
        self._paused: frozenset[Partition] = frozenset()
        self._failure: Exception | None = None
        self._consumer = new_client(Consumer, consumer_properties(settings))

    def join(self) -> None:
        """Join the group; partitions come with the next calls of `take`."""
        self._consumer.subscribe(
            [self._settings.input_topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def take(self, max_records: int, max_bytes: int, timeout_s: float) -> list[Record]:
        """Return the records at hand, waiting for the first one only; serves the group.

        Args:
            max_records: how many at most.
            max_bytes: no more are taken once they have so many bytes.
            timeout_s: how long to wait for the first.

        Raises:
            ConsumerError: the client says that it can't go on, or an assigned partition has no usable start.
        """
        records: list[Record] = []
        size = 0
        message = self._consumer.poll(timeout_s)
        while message is not None:
            if record := self._record(message):
                records.append(record)
                size += record.size
            if len(records) >= max_records or size >= max_bytes:
                break
            message = self._consumer.poll(0)
        if self._failure:
            raise self._failure
        return records

    def pause(self, paused: frozenset[Partition]) -> None:
        """Pause these partitions, those that are assigned, and resume all others."""
        if paused != self._paused:
            before, self._paused = self._paused, paused
            self._apply_pause((before | paused) & self._assigned)

    def read(self, partition: Partition, offset: int) -> None:
        """Read a partition that is assigned again, or on, from `offset`."""
        # Assigned anew rather than sought: a partition whose offset was out of range can't be sought in.
        self._at_end.discard(partition)
        self._consumer.incremental_unassign([TopicPartition(*partition)])
        self._consumer.incremental_assign([TopicPartition(*partition, offset)])
        self._apply_pause([partition])

    def mend(self, holds: Callable[[Partition], bool]) -> None:
        """Deal with partitions whose next offset is gone, once nothing of them is in hand any more.

        Raises:
            OffsetsGoneError: `out_of_range` is `fail`.
            KafkaException: the broker didn't say which offsets there are.
        """
        for partition in [partition for partition in self._gone if not holds(partition)]:
            self._gone.discard(partition)
            base = self._assignment.base(partition)
            if base is not None:
                target = skip_gone(self._consumer, partition, base, self._run, self._settings)
                self._listener.begin(partition, target, None)
                self.read(partition, target)

    def ends(self) -> dict[Partition, int]:
        """Return the end of each assigned partition as the client last heard of it, without asking a broker."""
        ends = {}
        for partition in self._assigned:
            _, high = self._consumer.get_watermark_offsets(TopicPartition(*partition), cached=True)
            if high >= 0:
                ends[partition] = high
        return ends

    def behind(self) -> set[Partition]:
        """Return the assigned partitions that were not read to their end.

        A comparison of offsets would not do: behind the last record there may be a transaction's marker.
        """
        return self._assigned - self._at_end

    def committed(self, partitions: Iterable[Partition]) -> dict[Partition, Commit | None]:
        """Return each partition's stable commit, see `read_commits`."""
        return read_commits(self._consumer, partitions)

    def commit(self, offsets: Mapping[Partition, int], stamps: Mapping[Partition, Checkpoint]) -> None:
        """Commit offsets with their checkpoints, see `write_commits`."""
        write_commits(self._consumer, offsets, stamps)

    def is_member(self) -> bool:
        """Return whether the group knows this consumer."""
        return bool(self._consumer.memberid())

    def group_metadata(self) -> Any:
        """Return the group metadata as it is now: the member's id and generation."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Give up the partitions and leave the group."""
        self._consumer.close()
        if self._failure:
            raise self._failure

    def _record(self, message: Message[bytes, bytes]) -> Record | None:
        if error := message.error():
            self._on_error(message, error)
            return None
        partition = _partition_of(message)
        self._at_end.discard(partition)
        epoch = self._assignment.epoch(partition)
        if epoch is None:
            return None
        kind, timestamp = message.timestamp()
        headers = headers_of(message)
        return Record(
            partition=partition,
            offset=known(message.offset()),
            epoch=epoch,
            timestamp=timestamp if kind else None,
            key=message.key(),
            value=message.value(),
            headers=headers or (),
            arrived=time.monotonic(),
            headers_lost=headers is None,
        )

    def _on_error(self, message: Message[bytes, bytes], error: KafkaError) -> None:
        if error.fatal() or error.code() == KafkaError._FATAL:
            self._failure = ConsumerError(
                f"the group does not take this consumer: {error.str()}; a worker of the same instance_id is alive, "
                "or died less than the group's session timeout ago"
                if self._settings.instance_id
                else f"the consumer can't go on: {error.str()}"
            )
        elif error.code() == KafkaError._PARTITION_EOF:
            self._at_end.add(_partition_of(message))
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._gone.add(_partition_of(message))
        else:
            log.warning("consume_error", error=error.name(), reason=error.str())

    def _on_assign(self, _: Consumer, given: list[TopicPartition]) -> None:
        self._guarded(lambda: self._assign([Partition(part.topic, part.partition) for part in given]))

    def _assign(self, partitions: list[Partition]) -> None:
        starts = find_starts(self._consumer, partitions, self._run, self._settings)
        self._consumer.incremental_assign([TopicPartition(*part, start.offset) for part, start in starts.items()])
        self._assigned.update(partitions)
        for partition, start in starts.items():
            self._listener.begin(partition, *start)
        self._apply_pause(partitions)
        log.info("partitions_assigned", offsets={str(partition): start.offset for partition, start in starts.items()})

    def _on_revoke(self, _: Consumer, taken: list[TopicPartition]) -> None:
        partitions = [Partition(part.topic, part.partition) for part in taken]
        self._guarded(lambda: self._listener.leave(partitions))
        self._drop(partitions, "partitions_revoked")

    def _on_lost(self, _: Consumer, taken: list[TopicPartition]) -> None:
        self._drop([Partition(part.topic, part.partition) for part in taken], "partitions_lost")

    def _drop(self, partitions: list[Partition], event: str) -> None:
        self._listener.end(partitions)
        self._assigned.difference_update(partitions)
        self._gone.difference_update(partitions)
        self._at_end.difference_update(partitions)
        self._guarded(lambda: self._consumer.incremental_unassign([TopicPartition(*part) for part in partitions]))
        if partitions:
            log.info(event, partitions=[str(partition) for partition in partitions])

    def _apply_pause(self, partitions: Collection[Partition]) -> None:
        paused = [TopicPartition(*partition) for partition in partitions if partition in self._paused]
        going = [TopicPartition(*partition) for partition in partitions if partition not in self._paused]
        if paused:
            self._consumer.pause(paused)
        if going:
            self._consumer.resume(going)

    def _guarded(self, step: Callable[[], None]) -> None:
        # An exception out of a rebalance callback would leave the client half-way through the rebalance:
        # it is kept, and raised by the call that ran the callback.
        try:
            step()
        except Exception as error:
            self._failure = self._failure or error


def consumer_properties(settings: Settings) -> dict[str, Any]:
    """Return the librdkafka properties of the worker's consumer."""
    properties = client_properties(settings) | {
        "fetch.queue.backoff.ms": 50,
        **settings.consumer_properties,
        "queued.max.messages.kbytes": max(1, settings.prefetch_bytes // 1000),
        "group.id": settings.group_id,
        "group.protocol": settings.group_protocol,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
    }
    if settings.instance_id:
        properties["group.instance.id"] = settings.instance_id
    if settings.group_protocol == "classic":
        properties["partition.assignment.strategy"] = "cooperative-sticky"
    return properties


def _partition_of(message: Message[bytes, bytes]) -> Partition:
    return Partition(known(message.topic()), known(message.partition()))

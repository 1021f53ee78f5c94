"""The consumer: records taken, partitions paused and resumed, assigned, revoked and lost.

A consumer belongs to one thread, the polling one; the rebalance callbacks run inside `take` and `close`. A call from
another thread while a callback runs would wait for the callback to return (measured with
`consumer_group_metadata`, confluent-kafka 2.16.1), and a callback that waits for that thread never would.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from worker.assignment import Assignment
from worker.checkpoint import Checkpoint
from worker.clients import client_properties, new_client
from worker.commits import Commit, read_commits, write_commits
from worker.config import Settings
from worker.records import Headers, Partition, Record
from worker.starts import find_starts, skip_gone

log = structlog.get_logger()

Value = TypeVar("Value")


class ConsumerError(Exception):
    """Consuming can't go on; the message says why and what to do."""


class TextConsumer:
    """A member of the consumer group that reads the input topic.

    Args:
        settings: the worker's settings.
        assignment: kept in step with what the group gives and takes.
        stamp: makes the checkpoint of a plain commit (`clean` as given).
        finish: called with partitions that are being revoked, before they go: finish or drop what is in flight.
        forget: called with partitions whose buffered records are void.

    Raises:
        ConfigError: librdkafka refuses a property.
    """

    def __init__(
        self,
        settings: Settings,
        assignment: Assignment,
        *,
        stamp: Callable[[bool], Checkpoint],
        finish: Callable[[Collection[Partition]], None],
        forget: Callable[[Collection[Partition]], None],
    ) -> None:
        self._settings = settings
        self._assignment = assignment
        self._stamp = stamp
        self._finish = finish
        self._forget = forget
        self._assigned: set[Partition] = set()
        self._gone: set[Partition] = set()
        self._paused = False
        self._clean = True
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

    def pause(self, paused: bool) -> None:
        """Pause or resume all partitions, those assigned later included."""
        if paused != self._paused:
            self._paused = paused
            self._apply_pause(self._assigned)

    def apply_rewinds(self) -> None:
        """Read partitions whose epoch was ended by the publisher again, from what is committed."""
        for partition, base in self._assignment.take_rewinds().items():
            self._restart(partition, base)

    def mend(self, busy: Callable[[Partition], bool]) -> None:
        """Deal with partitions whose next offset is gone, once nothing of them is in hand any more.

        Raises:
            OffsetsGoneError: `out_of_range` is `fail`.
            KafkaException: the broker didn't say which offsets there are.
        """
        for partition in [partition for partition in self._gone if not busy(partition)]:
            self._gone.discard(partition)
            base = self._assignment.base(partition)
            if base is not None:
                self._restart(partition, skip_gone(self._consumer, partition, base, self._stamp(True), self._settings))

    def committed(self, partitions: Iterable[Partition]) -> dict[Partition, Commit | None]:
        """Return each partition's stable commit, see `read_commits`."""
        return read_commits(self._consumer, partitions)

    def commit(self, offsets: Mapping[Partition, int], stamp: Checkpoint) -> None:
        """Commit offsets with a checkpoint, see `write_commits`."""
        write_commits(self._consumer, offsets, stamp)

    def is_member(self) -> bool:
        """Return whether the group knows this consumer."""
        return bool(self._consumer.memberid())

    def group_metadata(self) -> Any:
        """Return the group metadata as it is now: the member's id and generation."""
        return self._consumer.consumer_group_metadata()

    def close(self, *, clean: bool) -> None:
        """Give up the partitions and leave the group.

        Args:
            clean: mark the partitions as left in good order.
        """
        self._clean = clean
        self._consumer.close()
        if self._failure:
            raise self._failure

    def _record(self, message: Message[bytes, bytes]) -> Record | None:
        if error := message.error():
            self._on_error(message, error)
            return None
        partition = _partition_of(message)
        epoch = self._assignment.epoch(partition)
        if epoch is None:
            return None
        kind, timestamp = message.timestamp()
        headers = _headers(message)
        return Record(
            partition=partition,
            offset=_known(message.offset()),
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
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._gone.add(_partition_of(message))
        else:
            log.warning("consume_error", error=error.name(), reason=error.str())

    def _restart(self, partition: Partition, base: int) -> None:
        if partition in self._assigned:
            self._forget([partition])
            # Assigned anew rather than sought: a partition whose offset was out of range can't be sought in.
            self._consumer.incremental_unassign([TopicPartition(*partition)])
            self._consumer.incremental_assign([TopicPartition(*partition, base)])
            self._assignment.begin(partition, base)
            if self._paused:
                self._apply_pause([partition])

    def _on_assign(self, _: Consumer, given: list[TopicPartition]) -> None:
        self._guarded(lambda: self._assign([Partition(part.topic, part.partition) for part in given]))

    def _assign(self, partitions: list[Partition]) -> None:
        starts = find_starts(self._consumer, partitions, self._stamp(True), self._settings)
        self._consumer.incremental_assign([TopicPartition(*part, offset) for part, offset in starts.items()])
        self._assigned.update(partitions)
        for partition, offset in starts.items():
            self._assignment.begin(partition, offset)
        if self._paused:
            self._apply_pause(partitions)
        log.info("partitions_assigned", offsets={str(partition): offset for partition, offset in starts.items()})

    def _on_revoke(self, _: Consumer, taken: list[TopicPartition]) -> None:
        partitions = [Partition(part.topic, part.partition) for part in taken]
        self._guarded(lambda: self._revoke(partitions))
        self._drop(partitions, "partitions_revoked")

    def _revoke(self, partitions: list[Partition]) -> None:
        self._finish(partitions)
        bases = {part: base for part in partitions if (base := self._assignment.settled_base(part)) is not None}
        if not (bases and self._clean):
            return
        try:
            self.commit(bases, self._stamp(True))
        except KafkaException as error:
            log.warning("clean_mark_failed", error=error.args[0].name(), reason=error.args[0].str())

    def _on_lost(self, _: Consumer, taken: list[TopicPartition]) -> None:
        self._drop([Partition(part.topic, part.partition) for part in taken], "partitions_lost")

    def _drop(self, partitions: list[Partition], event: str) -> None:
        self._assignment.end(partitions)
        self._assigned.difference_update(partitions)
        self._gone.difference_update(partitions)
        self._forget(partitions)
        self._guarded(lambda: self._consumer.incremental_unassign([TopicPartition(*part) for part in partitions]))
        if partitions:
            log.info(event, partitions=[str(partition) for partition in partitions])

    def _apply_pause(self, partitions: Collection[Partition]) -> None:
        parts = [TopicPartition(*partition) for partition in partitions]
        if self._paused:
            self._consumer.pause(parts)
        else:
            self._consumer.resume(parts)

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
        "queued.max.messages.kbytes": 16_384,
        **settings.consumer_properties,
        "group.id": settings.group_id,
        "group.protocol": settings.group_protocol,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
    }
    if settings.instance_id:
        properties["group.instance.id"] = settings.instance_id
    if settings.group_protocol == "classic":
        properties["partition.assignment.strategy"] = "cooperative-sticky"
    return properties


def _partition_of(message: Message[bytes, bytes]) -> Partition:
    return Partition(_known(message.topic()), _known(message.partition()))


def _known(value: Value | None) -> Value:
    # A message without an error always has a topic, a partition and an offset.
    assert value is not None
    return value


def _headers(message: Message[bytes, bytes]) -> Headers | None:
    try:
        headers = message.headers() or []
    except (SystemError, UnicodeDecodeError):
        return None  # seen where a header's name is not UTF-8: the client fails to make a string of it
    pairs = headers.items() if isinstance(headers, dict) else headers
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs)

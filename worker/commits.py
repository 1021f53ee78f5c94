"""The group's commits: read stably, written with a checkpoint."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, TopicPartition

from worker import checkpoint
from worker.checkpoint import Checkpoint
from worker.records import Partition

TIMEOUT_S = 5.0


class Commit(NamedTuple):
    """What is committed for a partition; the checkpoint is None where another program wrote it."""

    offset: int
    checkpoint: Checkpoint | None


def read_commits(client: Consumer, partitions: Iterable[Partition]) -> dict[Partition, Commit | None]:
    """Return each partition's stable commit; None where nothing is committed.

    Stable: while a transaction that is still open holds an offset, the call waits. (The admin client's call of the
    same meaning crashes the process when a coordinator is not available: librdkafka 2.16.0, seen.)

    Raises:
        KafkaException: the broker didn't say in time.
    """
    found: dict[Partition, Commit | None] = {}
    for answer in client.committed([TopicPartition(*partition) for partition in partitions], timeout=TIMEOUT_S):
        if answer.error:
            raise KafkaException(answer.error)
        known = answer.offset != OFFSET_INVALID
        found[Partition(answer.topic, answer.partition)] = (
            Commit(answer.offset, checkpoint.decode(answer.metadata)) if known else None
        )
    return found


def write_commits(client: Consumer, offsets: Mapping[Partition, int], stamps: Mapping[Partition, Checkpoint]) -> None:
    """Commit offsets, each with its checkpoint, and wait for the broker's answer.

    Raises:
        KafkaException: the broker refused it, or didn't say.
    """
    for answer in client.commit(offsets=commit_points(offsets, stamps), asynchronous=False):
        if answer.error:
            raise KafkaException(answer.error)


def commit_points(offsets: Mapping[Partition, int], stamps: Mapping[Partition, Checkpoint]) -> list[TopicPartition]:
    """Return offsets in the client's form, each with its checkpoint as the metadata."""
    return [
        TopicPartition(*partition, offset, checkpoint.encode(stamps[partition]))
        for partition, offset in offsets.items()
    ]

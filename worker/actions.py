"""What the stream wants done: each action is a value, performed by whoever runs the stream."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from worker.answers import Written
from worker.batcher import MicroBatch
from worker.checkpoint import Checkpoint
from worker.records import Partition, Record
from worker.tasks import Task


@dataclass(frozen=True, slots=True)
class Read:
    """Read an assigned partition from this offset on; what was read of it before is void.

    Attributes:
        anew: a new epoch begins: nothing that is in hand may be published any more.
    """

    partition: Partition
    offset: int
    anew: bool


@dataclass(frozen=True, slots=True)
class Prepare:
    """Tokenise records."""

    records: Sequence[Record]


@dataclass(frozen=True, slots=True)
class Forward:
    """Run a forward over a micro-batch."""

    batch: MicroBatch[Task]


@dataclass(frozen=True, slots=True)
class Canary:
    """Run a text known to be harmless, in a child process or in this one, to see whether the model is sound."""

    in_child: bool


@dataclass(frozen=True, slots=True)
class Trial:
    """Run one suspect record, alone."""

    record: Record
    in_child: bool


@dataclass(frozen=True, slots=True)
class Publish:
    """Publish messages and commit the offsets they answer.

    Attributes:
        answers: what to publish; nothing where only the checkpoints are to be written.
        ends: the offset to commit for each partition.
        stamps: each commit's checkpoint.
    """

    answers: Sequence[Written]
    ends: Mapping[Partition, int]
    stamps: Mapping[Partition, Checkpoint]


def mark(commits: Mapping[Partition, tuple[int, Checkpoint]]) -> Publish:
    """Return what commits these offsets with these checkpoints, and no message."""
    ends = {partition: base for partition, (base, _) in commits.items()}
    return Publish((), ends, {partition: stamp for partition, (_, stamp) in commits.items()})


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask for the stable committed offsets of partitions: a commit of theirs may have succeeded unseen."""

    partitions: Sequence[Partition]


Action: TypeAlias = Read | Prepare | Forward | Canary | Trial | Publish | Ask

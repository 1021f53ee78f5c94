"""Progress, partition by partition: which one has something to read and commits nothing. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from worker.records import Partition


@dataclass(slots=True)
class _Mark:
    base: int
    since: float


class Progress:
    """Remembers for each partition when its committed offset last moved, or there was nothing to do."""

    def __init__(self) -> None:
        self._marks: dict[Partition, _Mark] = {}

    def note(self, now: float, bases: Mapping[Partition, int], behind: Iterable[Partition]) -> None:
        """Take note of how far the partitions are.

        Args:
            now: the time in seconds.
            bases: the committed offset of each partition that is held.
            behind: those of them that have something in hand or left to read.
        """
        busy = set(behind)
        marks = {}
        for partition, base in bases.items():
            mark = self._marks.get(partition)
            still = mark is not None and mark.base == base and partition in busy
            marks[partition] = mark if still and mark else _Mark(base, now)
        self._marks = marks

    def stalled(self, now: float) -> dict[Partition, float]:
        """Return for each partition for how many seconds it has made no progress though it could."""
        return {partition: now - mark.since for partition, mark in self._marks.items()}

"""Which partitions are this worker's, and since which assignment.

Brokers check the generation of a group member, not that it owns the partitions whose offsets it commits: a commit
for a partition that was lost and regained would be accepted (measured). So every record carries the epoch of the
assignment under which it was read, and a commit is made only while that epoch holds.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from worker.records import Partition


@dataclass(slots=True)
class _Share:
    epoch: int
    base: int
    settled: bool = True


class Assignment:
    """The partitions held now, each with its epoch and its base (the offset that is committed).

    Not locked: it belongs to the polling thread, which makes the commits and in which the rebalance callbacks run,
    so that no partition can go between the check of an epoch and the commit.
    """

    def __init__(self) -> None:
        self._held: dict[Partition, _Share] = {}
        self._rewinds: dict[Partition, int] = {}
        self._epochs = 0

    def begin(self, partition: Partition, base: int) -> int:
        """Hold a partition from now on, its committed offset being `base`; returns the new epoch."""
        self._epochs += 1
        self._held[partition] = _Share(self._epochs, base)
        self._rewinds.pop(partition, None)
        return self._epochs

    def end(self, partitions: Iterable[Partition]) -> None:
        """Hold these partitions no more."""
        for partition in partitions:
            self._held.pop(partition, None)
            self._rewinds.pop(partition, None)

    def rewind(self, partition: Partition, base: int) -> None:
        """End the epoch of a partition that is still assigned: it is to be read again from `base`."""
        if self._held.pop(partition, None) is not None:
            self._rewinds[partition] = base

    def take_rewinds(self) -> dict[Partition, int]:
        """Return the partitions that are to be read again, each with its offset, and forget them."""
        rewinds, self._rewinds = self._rewinds, {}
        return rewinds

    def epoch(self, partition: Partition) -> int | None:
        """Return the epoch under which records of the partition are read now; None where none are."""
        share = self._held.get(partition)
        return share.epoch if share else None

    def holds(self, partition: Partition, epoch: int) -> bool:
        """Return whether the partition is still held under that epoch."""
        return self.epoch(partition) == epoch

    def base(self, partition: Partition) -> int | None:
        """Return the committed offset of a held partition, as last known."""
        share = self._held.get(partition)
        return share.base if share else None

    def settled_base(self, partition: Partition) -> int | None:
        """Return the committed offset of a held partition, or None while a commit's outcome isn't known."""
        share = self._held.get(partition)
        return share.base if share and share.settled else None

    def unsettle(self, partitions: Iterable[Partition]) -> None:
        """Note that a commit is under way: until it is settled the committed offset of these isn't known."""
        for partition in partitions:
            if share := self._held.get(partition):
                share.settled = False

    def settle(self, partition: Partition, base: int) -> None:
        """Note that `base` is the committed offset of the partition now, if it is still held."""
        if share := self._held.get(partition):
            share.base, share.settled = base, True

"""Which partitions are this worker's, since which assignment, and what is committed for them. Pure.

Brokers check the generation of a group member, not that it owns the partitions whose offsets it commits: a commit
for a partition that was lost and regained would be accepted (measured). So every record carries the epoch of the
assignment under which it was read, and a commit is made only while that epoch holds.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from worker.checkpoint import Checkpoint
from worker.isolation import Suspicion
from worker.records import Partition


@dataclass(slots=True)
class _Share:
    """A partition that is held.

    Attributes:
        base: the committed offset, as last known.
        position: the offset that may be admitted next.
        written: the checkpoint of the last commit under this epoch; None before the first.
        settled: no commit is under way whose outcome isn't known.
    """

    epoch: int
    base: int
    position: int
    suspicion: Suspicion | None
    written: Checkpoint | None = None
    settled: bool = True


class Assignment:
    """The partitions held now, each with its epoch and its base (the offset that is committed).

    Not locked: it belongs to the polling thread, which makes the commits and in which the rebalance callbacks run,
    so that no partition can go between the check of an epoch and the commit.

    Args:
        run: name of this process, for its checkpoints.
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._held: dict[Partition, _Share] = {}
        self._rewinds: dict[Partition, int] = {}
        self._epochs = 0

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._held)

    def begin(self, partition: Partition, base: int, suspicion: Suspicion | None = None) -> int:
        """Hold a partition from now on, its committed offset being `base`; returns the new epoch.

        No record of it may be touched before a commit has said so: see `reach`.
        """
        self._epochs += 1
        self._held[partition] = _Share(self._epochs, base, base, suspicion)
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

    def take_rewind(self) -> tuple[Partition, int] | None:
        """Return a partition that is to be read again, with its offset, and forget that; None where there is none."""
        return self._rewinds.popitem() if self._rewinds else None

    def epoch(self, partition: Partition) -> int | None:
        """Return the epoch under which records of the partition are read now; None where none are."""
        share = self._held.get(partition)
        return share.epoch if share else None

    def holds(self, partition: Partition, epoch: int) -> bool:
        """Return whether the partition is still held under that epoch."""
        return self.epoch(partition) == epoch

    def admits(self, partition: Partition, epoch: int, offset: int) -> bool:
        """Return whether a record is the next, or a later one, to be read of a partition; it is not twice."""
        share = self._held.get(partition)
        if share is None or share.epoch != epoch or offset < share.position:
            return False
        share.position = offset + 1
        return True

    def reposition(self, partition: Partition, offset: int) -> None:
        """Read a held partition again from `offset` on, under the same epoch."""
        self._held[partition].position = offset

    def base(self, partition: Partition) -> int | None:
        """Return the committed offset of a held partition, as last known."""
        share = self._held.get(partition)
        return share.base if share else None

    def settled_base(self, partition: Partition) -> int | None:
        """Return the committed offset of a held partition, or None while a commit's outcome isn't known."""
        share = self._held.get(partition)
        return share.base if share and share.settled else None

    def reach(self, partition: Partition) -> int:
        """Return the offset from which on no record of a held partition may be touched before the next commit."""
        share = self._held[partition]
        return share.base if share.written is None or share.written.until is None else share.written.until

    def written(self, partition: Partition) -> Checkpoint | None:
        """Return the checkpoint of the last commit under the present epoch."""
        return self._held[partition].written

    def suspicion(self, partition: Partition) -> Suspicion | None:
        """Return what is held against the next records of a held partition."""
        share = self._held.get(partition)
        return share.suspicion if share else None

    def count_trials(self, partition: Partition, trials: int) -> None:
        """Note how many trials the record at the base of a suspect partition has had."""
        share = self._held[partition]
        assert share.suspicion is not None
        share.suspicion = replace(share.suspicion, trials=trials)

    def acquit(self, partition: Partition) -> None:
        """Hold nothing more against a partition: none of its suspect records is there any more."""
        self._held[partition].suspicion = None

    def unsettle(self, partitions: Iterable[Partition]) -> None:
        """Note that a commit is under way: until it is settled the committed offset of these isn't known."""
        for partition in partitions:
            if share := self._held.get(partition):
                share.settled = False

    def settle(self, partition: Partition, base: int, written: Checkpoint | None = None) -> None:
        """Note that `base` is the committed offset of the partition now, if it is still held.

        Args:
            partition: the partition.
            base: the offset.
            written: the commit's checkpoint; None where nothing new was committed.
        """
        share = self._held.get(partition)
        if share is None:
            return
        if share.suspicion and base != share.base:
            share.suspicion = replace(share.suspicion, trials=0) if base < share.suspicion.until else None
        share.base, share.settled = base, True
        share.written = written or share.written

    def stamp(self, partition: Partition, base: int, until: int, batch: int, *, clean: bool = False) -> Checkpoint:
        """Return the checkpoint of a commit of `base`.

        Args:
            partition: a held partition.
            base: the offset that is committed.
            until: the offset from which on no record is to be touched before the next commit.
            batch: micro-batches answered by this process.
            clean: the partition is left in good order.
        """
        share = self._held[partition]
        suspicion = share.suspicion
        if suspicion and base < suspicion.until:
            trials = suspicion.trials if base == share.base else 0
            return Checkpoint(self._run, batch, clean, suspicion.until, suspicion.deaths, trials)
        # The reach never shrinks: records up to it may be touched already, or will be if this commit succeeds unseen.
        return Checkpoint(self._run, batch, clean, until if clean else max(until, self.reach(partition)))

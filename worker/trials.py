"""The trials of suspect records: where one runs, what is written before it, when one is given up. Pure.

A harmless text, the canary, goes first: a broken model or device is never held against a record. In the worker itself
a trial is counted before it runs, as its death would take the count along; in a child process after the child's death.
"""

from collections.abc import Mapping
from dataclasses import replace

from worker.assignment import Assignment
from worker.checkpoint import Checkpoint
from worker.isolation import Suspicion
from worker.records import Partition, Record
from worker.tasks import Failure


class Trials:
    """What is known of the trials of one worker.

    Args:
        assignment: says what is held against which partition, and learns of trials.
        most: deaths during a record's own trials after which it is given up.
        children: records may run in a child process.
    """

    def __init__(self, assignment: Assignment, most: int, *, children: bool) -> None:
        self._assignment = assignment
        self._most = most
        self._children = children
        self._sound: set[bool] = set()
        self._counted: tuple[Partition, int | None, int] | None = None
        self._turns: dict[Partition, int] = {}
        self._trials = 0

    def over(self) -> None:
        """Note that nothing is suspect at the moment: before the next trial the canary goes again."""
        self._sound.clear()

    def found(self, in_child: bool, *, sound: bool) -> None:
        """Note what became of a canary: it lived; or no child process can be had."""
        if sound:
            self._sound.add(in_child)
        else:
            self._children = False

    def needs_canary(self, in_child: bool) -> bool:
        """Return whether the canary has to go first."""
        return in_child not in self._sound

    def turn(self, partition: Partition) -> int:
        """Return when a partition had its last trial, so that those with many suspects hold up no other."""
        return self._turns.get(partition, 0)

    def begun(self, partition: Partition) -> None:
        """Note that a trial of a partition's next record begins."""
        self._trials += 1
        self._turns[partition] = self._trials

    def in_child(self, suspicion: Suspicion) -> bool:
        """Return whether the next trial is to run in a child process."""
        return suspicion.in_child and self._children

    def given_up(self, record: Record) -> Failure | None:
        """Return why a suspect record is not tried any more; None while it is."""
        suspicion = self._suspicion(record.partition)
        if suspicion.trials < self._most or self._counted == self._key(record.partition):
            return None
        reason = f"{suspicion.trials} times a process died while this record ran alone"
        return Failure("crash", "ProcessDied", reason, attempts=suspicion.trials)

    def mark(self, partition: Partition, batch: int) -> tuple[int, Checkpoint] | None:
        """Return what to commit before the trial of a partition's next record; None where it is written already."""
        suspicion, base = self._suspicion(partition), self._assignment.base(partition)
        assert base is not None
        stamp = self._assignment.stamp(partition, base, suspicion.until, batch)
        beforehand = suspicion.counts_beforehand or not self.in_child(suspicion)
        if beforehand and self._counted != self._key(partition):
            stamp = replace(stamp, trials=stamp.trials + 1)
        written = self._assignment.written(partition)
        return None if written and replace(stamp, batch=written.batch) == written else (base, stamp)

    def marked(self, stamps: Mapping[Partition, Checkpoint]) -> None:
        """Note that these checkpoints are committed."""
        for partition, stamp in stamps.items():
            suspicion = self._assignment.suspicion(partition)
            if suspicion and stamp.trials > suspicion.trials:
                self._assignment.count_trials(partition, stamp.trials)
                self._counted = self._key(partition)

    def died(self, record: Record) -> None:
        """Note that a child process died in the trial of a record."""
        self._sound.discard(True)
        if not self._assignment.holds(record.partition, record.epoch):
            return
        self._counted = None
        suspicion = self._suspicion(record.partition)
        if not suspicion.counts_beforehand:
            self._assignment.count_trials(record.partition, suspicion.trials + 1)

    def left(self, partition: Partition, stamp: Checkpoint) -> Checkpoint:
        """Return the checkpoint of a partition that is left in good order.

        A trial that was counted beforehand and that nothing died in is not counted: however often workers come and
        go, it costs no record.
        """
        return replace(stamp, trials=stamp.trials - 1) if self._counted == self._key(partition) else stamp

    def _suspicion(self, partition: Partition) -> Suspicion:
        suspicion = self._assignment.suspicion(partition)
        assert suspicion is not None
        return suspicion

    def _key(self, partition: Partition) -> tuple[Partition, int | None, int]:
        base = self._assignment.base(partition)
        assert base is not None
        return partition, self._assignment.epoch(partition), base

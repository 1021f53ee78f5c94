"""Faults put into the workers on purpose: a simulator that can't find them shows nothing by finding none."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from unittest.mock import patch

import worker.delivery
from tests.simulation import process
from worker.assignment import Assignment
from worker.checkpoint import Checkpoint
from worker.delivery import Delivery
from worker.isolation import Suspicion
from worker.records import Partition, Record
from worker.stream import Stream

_failed, _refused, _stamp = Delivery.failed, Delivery.refused, Assignment.stamp


def _without_doubt(self: Delivery, now: float, took_s: float) -> None:
    _failed(self, now, took_s)
    for queue in (self._queue, *self._troubled.values()):
        for batch in queue:
            batch.doubtful = False


def _settled_though_failed(self: Delivery, now: float, took_s: float) -> None:
    assert self._tried is not None
    batch = self._tried[0]
    for written in batch.answers:
        record = written.answer.task.record
        self._assignment.settle(record.partition, record.offset + 1, batch.stamps.get(record.partition))
    _failed(self, now, took_s)


def _halves_swapped(self: Delivery, reasons: Mapping[int, str]) -> None:
    assert self._tried is not None
    several = len(self._tried[0].answers) > 1
    _refused(self, reasons)
    if several:
        self._tried[0], self._tried[1] = self._tried[1], self._tried[0]


def _shrinking_reach(
    self: Assignment, partition: Partition, base: int, until: int, batch: int, *, clean: bool = False
) -> Checkpoint:
    stamp = _stamp(self, partition, base, until, batch, clean=clean)
    return stamp if stamp.deaths else Checkpoint(stamp.run, batch, clean, until)


def _held_under_any_epoch(self: Assignment, partition: Partition, _: int) -> bool:
    return self.epoch(partition) is not None


def _all_allowed(_: Stream, __: Record) -> bool:
    return True


def _always(_: Suspicion) -> bool:
    return True


def _never(_: Suspicion) -> bool:
    return False


def _nothing(*_: object) -> None:
    return None


MUTANTS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "the epoch isn't checked": lambda: patch.object(Assignment, "holds", _held_under_any_epoch),
    "published again without asking": lambda: patch.object(Delivery, "failed", _without_doubt),
    "a failed commit is settled": lambda: patch.object(Delivery, "failed", _settled_though_failed),
    "refused halves change places": lambda: patch.object(Delivery, "refused", _halves_swapped),
    "a bad partition is never tried alone": lambda: patch.object(worker.delivery, "TOGETHER", 10**9),
    "records are touched beyond the reach": lambda: patch.object(Stream, "_allowed", _all_allowed),
    "the reach shrinks": lambda: patch.object(Assignment, "stamp", _shrinking_reach),
    "nothing is suspect": lambda: patch.object(process, "suspicion_of", _nothing),
    "a worker's death counts in a child's trial": lambda: patch.object(
        Suspicion, "counts_beforehand", property(_always)
    ),
    "no trial runs in a child": lambda: patch.object(Suspicion, "in_child", property(_never)),
}

"""The stream between the topics: what was read, what is in a forward, what is to be published, what to do next.

Pure: events in, actions out, the clock an argument (seconds of one monotonic clock). `loop.py` performs the actions;
the simulator of the tests does so without a broker. Everything is lost with the process, and may be: what counts is
what the commits say.

A record goes through intake (raw), batcher (tokenised), forward and delivery. It is touched, that is tokenised, only
below the reach of its partition, which the last commit's checkpoint names: so whoever gets the partition after an
unclean end knows which records can have been in hand. These are suspect, and run one by one (see `isolation.py`).
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import structlog

from worker.actions import Action, Ask, Canary, Forward, Prepare, Publish, Read, Trial, mark
from worker.answers import Written
from worker.assignment import Assignment
from worker.backpressure import Backpressure
from worker.batcher import MicroBatcher
from worker.breaker import Breaker
from worker.checkpoint import Checkpoint
from worker.delivery import Delivery
from worker.forecast import ForwardTimes
from worker.forward import Answer
from worker.intake import Intake
from worker.isolation import Suspicion
from worker.reach import Reach
from worker.records import Partition, Record
from worker.tasks import Failure, Task
from worker.trials import Trials

log = structlog.get_logger()

CLOSED_AHEAD = 2
"""Forwards that may be running or waiting: one runs, and one that is full is ready for when it ends."""
IN_FLIGHT = 4
"""Micro-batches between closed and committed: more would only wait for a slow broker."""
PREPARED_BUDGETS = 2
"""Budgets of tokens made ready: from one the next micro-batch is closed."""
PREPARE_RECORDS = 256
PREPARE_BYTES = 500_000
"""What is made ready at once, at about a megabyte a second: a finished forward waits for no more than that."""
MARK_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class Limits:
    """How much the stream may hold and how patient it is.

    Attributes:
        buffer_records: records in hand from which on no more are taken.
        buffer_bytes: bytes of records in hand, likewise.
        trials: deaths during a record's own trial after which it is dead-lettered.
        children: suspect records may run in a child process.
    """

    buffer_records: int
    buffer_bytes: int
    trials: int
    children: bool


@dataclass(frozen=True, slots=True)
class _Running:
    """What the forwards' thread has to do."""

    partitions: frozenset[Partition]
    records: int
    size: int


class Stream:
    """The state of one worker's stream.

    Args:
        assignment: the partitions held.
        batcher: closes micro-batches.
        write: makes a message of an answer.
        times: learns how long forwards take.
        breaker: says when too many records go to the dead letters.
        limits: see `Limits`.
        budget_tokens: token budget of a micro-batch.
    """

    def __init__(
        self,
        assignment: Assignment,
        batcher: MicroBatcher[Task],
        write: Callable[[Answer], Written],
        times: ForwardTimes,
        breaker: Breaker,
        limits: Limits,
        *,
        budget_tokens: int,
    ) -> None:
        self._assignment = assignment
        self._batcher = batcher
        self._times = times
        self._breaker = breaker
        self._budget_tokens = budget_tokens
        self._intake = Intake()
        self._delivery = Delivery(assignment, write, self._stamp)
        self._backpressure = Backpressure(limits.buffer_records, limits.buffer_bytes)
        self._running: deque[_Running] = deque()
        self._rereads: dict[Partition, int] = {}
        self._trials = Trials(assignment, limits.trials, children=limits.children)
        self._reach = Reach(budget_tokens, limits.buffer_records)
        self._marking: Publish | None = None
        self._mark_due = 0.0
        self.batches = 0

    # What is asked

    def __len__(self) -> int:
        """Return how many records are in hand."""
        running = sum(job.records for job in self._running)
        return len(self._intake) + len(self._batcher) + running + len(self._delivery.waiting)

    @property
    def size(self) -> int:
        """Bytes of the records in hand."""
        waiting = sum(answer.task.size for answer in self._delivery.waiting)
        return self._intake.size + self._batcher.size + sum(job.size for job in self._running) + waiting

    @property
    def in_flight(self) -> int:
        """Micro-batches that are closed and not committed yet."""
        return len(self._running) + len(self._delivery)

    @property
    def idle(self) -> bool:
        """Whether nothing that was touched is still to be committed."""
        return not (len(self._batcher) or self.in_flight)

    def holds(self, partition: Partition) -> bool:
        """Return whether anything of a partition is in hand."""
        return (
            self._intake.head(partition) is not None
            or self._batcher.holds(partition)
            or self._is_in_flight([partition])
        )

    def paused(self, now: float) -> frozenset[Partition]:
        """Return the partitions of which no more are to be taken now."""
        # What is stuck is bounded, as no more of its partitions is taken; counted, it would in time pause all others.
        stuck = self._delivery.stuck
        records, size = len(self) - len(stuck), self.size - sum(answer.task.size for answer in stuck)
        if self._backpressure.paused(records, size) or self._breaker.is_open(now):
            return frozenset(self._assignment)
        return frozenset(self._delivery.troubled)

    @property
    def troubled(self) -> Collection[Partition]:
        """The partitions whose answers can't be published at the moment."""
        return self._delivery.troubled

    def breaker_open(self, now: float) -> bool:
        """Return whether too many records became dead letters, so that the stream pauses."""
        return self._breaker.is_open(now)

    def deadline(self, now: float) -> float | None:
        """Return when the next forward has to start; None where nothing waits for one."""
        return None if self._breaker.is_open(now) else self._batcher.deadline()

    def drained(self, partitions: Collection[Partition]) -> bool:
        """Return whether nothing of these partitions is closed and not committed."""
        return not self._is_in_flight(partitions)

    # What happens to partitions and records

    def begin(self, partition: Partition, base: int, suspicion: Suspicion | None = None) -> None:
        """Read a partition that was assigned, from its committed offset."""
        self.forget([partition])
        self._assignment.begin(partition, base, suspicion)

    def end(self, partitions: Collection[Partition]) -> None:
        """Give partitions up, with all that is in hand of them."""
        self._assignment.end(partitions)
        self.forget(partitions)

    def forget(self, partitions: Collection[Partition]) -> None:
        """Drop what only waits of these partitions; what is in a forward or answered stays."""
        for partition in partitions:
            self._intake.drop(partition)
            self._batcher.drop(partition)
            self._rereads.pop(partition, None)

    def take(self, records: Sequence[Record]) -> None:
        """Add records that were read; those read under another assignment, or twice, are left out."""
        for record in records:
            if self._assignment.admits(record.partition, record.epoch, record.offset):
                self._intake.add(record)

    def prepared(self, tasks: Sequence[Task]) -> None:
        """Add what `Prepare` made of its records."""
        for task in tasks:
            if self._assignment.holds(task.partition, task.record.epoch):
                self._batcher.add(task)

    # What became of actions

    def forwarded(self, answers: Sequence[Answer], tokens: int, seconds: float, now: float) -> None:
        """Add the answers of the oldest `Forward` that is running."""
        self._running.popleft()
        self._times.observe(tokens, seconds)
        if answers:
            self._reach.observe(tokens, len(answers))
        self._answered(answers, now)

    def tried(self, record: Record, answer: Answer | None, now: float) -> None:
        """Add the answer of a `Trial`; None where the child process died."""
        self._running.popleft()
        if answer is None:
            self._trials.died(record)
        elif self._assignment.holds(record.partition, record.epoch):
            # What waits of the partition may have been dropped meanwhile, as it is being given up.
            if self._intake.head(record.partition) == record:
                self._intake.pop(record.partition)
            self._answered([answer], now)

    def sound(self, in_child: bool, found: bool) -> None:
        """Note that the `Canary` lived; `found` is False where no child process can be had."""
        self._running.popleft()
        self._trials.found(in_child, sound=found)

    def published(self, now: float) -> list[Answer]:
        """Note that a `Publish` is committed; returns the answers that it published."""
        if self._marking:
            for partition, stamp in self._marking.stamps.items():
                self._assignment.settle(partition, self._marking.ends[partition], stamp)
            self._trials.marked(self._marking.stamps)
            self._marking = None
            return []
        return self._done(self._delivery.committed(), now)

    def failed(self, now: float, took_s: float) -> None:
        """Note that the outcome of a `Publish` is unknown, or that an `Ask` got no answer."""
        if self._marking:
            self._marking = None
            self._mark_due = now + max(MARK_PAUSE_S, took_s)
        else:
            self._delivery.failed(now, took_s)

    def refused(self, reasons: Mapping[int, str]) -> None:
        """Note that the broker refused messages of a `Publish` for good, see `Delivery.refused`."""
        self._delivery.refused(reasons)

    def asked(self, committed: Mapping[Partition, int], now: float) -> list[Answer]:
        """Take note of the answer to an `Ask`; returns the answers that turn out to be published."""
        return self._done(self._delivery.asked(committed), now)

    # What to do

    def deliver(self, now: float) -> Publish | Ask | None:
        """Return what to do next for what is answered already."""
        return self._delivery.next(now)

    def next(self, now: float, *, idle: bool = False, draining: bool = False) -> Action | None:
        """Return what to do next; its outcome is to be reported before the next call, a forward's whenever it ends.

        Args:
            now: the time in seconds.
            idle: the source has nothing more to give at the moment.
            draining: nothing that isn't tokenised yet is to be started.
        """
        if rewind := self._assignment.take_rewind():
            return Read(*rewind, anew=True)
        action = self.deliver(now)
        if action:
            return action
        self._leave_troubled()
        while self._rereads:
            partition, offset = self._rereads.popitem()
            if self._assignment.base(partition) is not None:
                return Read(partition, offset, anew=False)
        if self._breaker.is_open(now) and not draining:
            return None
        if draining:
            return self._close(now, idle=idle, draining=True)
        if (suspect := self._suspect()) is not None:
            return self._isolate(suspect, now)
        self._trials.over()
        return self._open(now) or self._prepare() or self._close(now, idle=idle, draining=False)

    def clean_stamps(self, partitions: Collection[Partition]) -> dict[Partition, tuple[int, Checkpoint]]:
        """Return what to commit when these partitions are left in good order: offset and checkpoint.

        A partition with a commit whose outcome isn't known is left out.
        """
        bases = {part: base for part in partitions if (base := self._assignment.settled_base(part)) is not None}
        return {
            part: (base, self._trials.left(part, self._assignment.stamp(part, base, base, self.batches, clean=True)))
            for part, base in bases.items()
        }

    # Inside

    def _answered(self, answers: Sequence[Answer], now: float) -> None:
        self._delivery.add(answers, now)
        self.batches += 1

    def _done(self, answers: list[Answer], now: float) -> list[Answer]:
        reasons = [_reason(answer) for answer in answers]
        if (reason := self._breaker.note(now, reasons)) is not None:
            log.error(
                "breaker_open",
                reason=f"most records of the last minute became dead letters for the same reason ({reason}); pausing",
            )
        return answers

    def _is_in_flight(self, partitions: Collection[Partition]) -> bool:
        running = any(not job.partitions.isdisjoint(partitions) for job in self._running)
        return running or self._delivery.touches(partitions)

    def _stamp(self, partition: Partition, base: int) -> Checkpoint:
        return self._assignment.stamp(partition, base, base + self._reach.ahead, self.batches)

    def _leave_troubled(self) -> None:
        """Let go of what only waits of troubled partitions, to be read again: it would fill the buffer of all."""
        for partition in self._delivery.troubled:
            raw, task = self._intake.head(partition), self._batcher.head(partition)
            heads = [record.offset for record in (task.record if task else None, raw) if record]
            if heads:
                self.forget([partition])
                self._assignment.reposition(partition, min(heads))
                self._rereads[partition] = min(heads)

    def _suspect(self) -> Partition | None:
        """Return the partition whose next record is to run alone, if there is one; they take turns."""
        suspects = []
        for head in self._intake.heads:
            partition = head.partition
            suspicion = self._assignment.suspicion(partition)
            if suspicion is None or partition in self._delivery.troubled:
                continue
            if head.offset < suspicion.until:
                suspects.append(partition)
            elif self._assignment.settled_base(partition) is not None and not self._is_in_flight([partition]):
                self._assignment.acquit(partition)
        return min(suspects, key=self._trials.turn, default=None)

    def _isolate(self, partition: Partition, now: float) -> Action | None:
        """Return the next step towards the trial of a partition's next record, with nothing else in hand."""
        if self._running:
            return None
        if len(self._batcher):
            return self._close(now, idle=True, draining=True)
        record = self._intake.head(partition)
        suspicion = self._assignment.suspicion(partition)
        assert record is not None
        assert suspicion is not None
        if self._assignment.settled_base(partition) is None or self._delivery.touches([partition]):
            return None
        if failure := self._trials.given_up(record):
            self._intake.pop(partition)
            self._answered([Answer(Task(record), failure)], now)
            return self.deliver(now)
        in_child = self._trials.in_child(suspicion)
        if self._trials.needs_canary(in_child):
            self._running.append(_Running(frozenset(), 0, 0))
            return Canary(in_child)
        if commit := self._trials.mark(partition, self.batches):
            return self._mark({partition: commit}, now)
        self._trials.begun(partition)
        # It stays at the head of the intake, and is counted there.
        self._running.append(_Running(frozenset([partition]), 0, 0))
        return Trial(record, in_child)

    def _open(self, now: float) -> Publish | None:
        """Return a commit of the checkpoints of partitions whose next record lies beyond their reach."""
        wanted: dict[Partition, tuple[int, Checkpoint]] = {}
        for head in self._intake.heads:
            partition = head.partition
            base = self._assignment.settled_base(partition)
            touched = self._batcher.holds(partition) or self._is_in_flight([partition])
            if base is not None and head.offset >= self._assignment.reach(partition) and not touched:
                until = head.offset + self._reach.ahead
                wanted[partition] = base, self._assignment.stamp(partition, base, until, self.batches)
        return self._mark(wanted, now) if wanted else None

    def _mark(self, wanted: Mapping[Partition, tuple[int, Checkpoint]], now: float) -> Publish | None:
        if now < self._mark_due:
            return None
        self._marking = mark(wanted)
        return self._marking

    def _prepare(self) -> Prepare | None:
        missing = PREPARED_BUDGETS * self._budget_tokens - self._batcher.tokens
        if missing <= 0:
            return None
        most = min(self._reach.records(missing), PREPARE_RECORDS)
        records = self._intake.take(most, PREPARE_BYTES, self._allowed)
        return Prepare(records) if records else None

    def _allowed(self, record: Record) -> bool:
        return record.offset < self._assignment.reach(record.partition)

    def _close(self, now: float, *, idle: bool, draining: bool) -> Forward | None:
        if len(self._running) >= CLOSED_AHEAD or len(self._running) + self._delivery.in_turn >= IN_FLIGHT:
            return None
        batch = self._batcher.close(now, idle=idle, draining=draining, full_only=bool(self._running))
        if batch is None:
            return None
        partitions = frozenset(task.partition for task in batch.items)
        self._running.append(_Running(partitions, len(batch.items), sum(task.size for task in batch.items)))
        return Forward(batch)


def _reason(answer: Answer) -> str | None:
    match answer.outcome:
        case Failure() as failure:
            return f"{failure.stage}: {failure.exception}"
        case _:
            return None

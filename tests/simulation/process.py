"""A worker process: the real stream, driven as the worker's loop drives it, its two threads as two generators.

A generator gives the seconds until it goes on; between two steps the process can be killed, lose its membership, and
all others go on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from packing import Result
from tests.simulation.cluster import Member, RefusedByGroupError, Transaction, UnstableError
from tests.simulation.plan import MOST_BYTES, Entry, Kind
from worker import checkpoint
from worker.actions import Action, Ask, Canary, Forward, Prepare, Publish, Read, Trial, mark
from worker.answers import Written
from worker.assignment import Assignment
from worker.batcher import MicroBatcher
from worker.breaker import Breaker
from worker.checkpoint import Checkpoint
from worker.forecast import ForwardTimes
from worker.forward import Answer
from worker.isolation import suspicion_of
from worker.records import OutgoingMessage, Partition, Record
from worker.stream import Limits, Stream
from worker.tasks import Failure, Task

if TYPE_CHECKING:
    from tests.simulation.simulate import Simulation

Steps: TypeAlias = Generator[float, None, None]

BUSY_S = 0.05
IDLE_S = 0.6
SLOW_S = 4.0
CALL_S = 5.0
FOUND = Result((), 1, 1)


class ProcessDiedError(Exception):
    """The process is dead."""


class EngineBrokenError(Exception):
    """The worker gives up: its model fails on a harmless text."""


class RefusedError(Exception):
    """The broker refused messages for good."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__()
        self.reasons = reasons


@dataclass(frozen=True, slots=True)
class _Prepared:
    tokens: int
    windows: int = 1


_Job: TypeAlias = Forward | Trial | Canary


class Process:
    """One worker process, from its start to its end.

    Args:
        sim: the run it belongs to.
        name: unique.
    """

    def __init__(self, sim: Simulation, name: str) -> None:
        plan = sim.plan
        self._sim = sim
        self._rng = sim.rng
        self._cluster = sim.cluster
        self._ledger = sim.ledger
        self.name = name
        self.alive = True
        self.stop = False
        self.member: Member | None = None
        self._assignment = Assignment(name)
        times = ForwardTimes()
        batcher: MicroBatcher[Task] = MicroBatcher(
            budget_tokens=plan.budget_tokens, max_latency_s=plan.max_latency_s, forward_seconds=times.predict
        )
        limits = Limits(plan.buffer_records, plan.buffer_bytes, plan.trials, plan.children)
        breaker = Breaker(plan.breaker_share, 3.0)
        self.stream = Stream(
            self._assignment, batcher, _write, times, breaker, limits, budget_tokens=plan.budget_tokens
        )
        self._positions: dict[Partition, int] = {}
        self._jobs: deque[_Job] = deque()
        self._running: _Job | None = None
        self._done: deque[Callable[[], None]] = deque()
        self._child = False
        self._unsettled: Transaction | None = None
        self._leave_by = float("inf")
        self._clean = True

    # The polling thread

    def work(self) -> Steps:
        try:
            yield from self._loop()
        except EngineBrokenError:
            self._sim.trace(self, "gives up: the engine is broken")
            self._clean, self._leave_by = False, 0.0
        yield from self._leave(list(self._positions))
        self._end(list(self._positions))
        if self.member:
            self._cluster.remove(self.member)
        self._sim.trace(self, "has left")
        raise ProcessDiedError

    def _loop(self) -> Steps:
        sim, stream = self._sim, self.stream
        while not self._drained():
            paused = frozenset(self._assignment) if self.stop else stream.paused(sim.now)
            records = yield from self._take(paused)
            if records:
                stream.take(records)
                self._check_memory()
            self._collect()
            while action := stream.next(sim.now, idle=not records, draining=self.stop):
                yield from self._perform(action)

    def _drained(self) -> bool:
        if not self.stop:
            return False
        self._leave_by = min(self._leave_by, self._sim.now + self._sim.plan.drain_s)
        return self.stream.idle or self._sim.now >= self._leave_by

    def _check_memory(self) -> None:
        """Check that no more is held than may be, twice: what is stuck may come on top of what fills the buffer.

        A take may go beyond by what it takes, and so may each partition that is assigned in it.
        """
        plan, partitions = self._sim.plan, len(self._cluster.logs)
        takes = 1 + partitions
        most = 2 * (plan.buffer_records + takes * plan.take_records)
        self._ledger.expect(len(self.stream) < most, "too many records in hand", self.name, len(self.stream))
        most = 2 * (plan.buffer_bytes + takes * plan.take_records * MOST_BYTES)
        self._ledger.expect(self.stream.size < most, "too many bytes in hand", self.name, self.stream.size)

    def _take(self, paused: Collection[Partition]) -> Generator[float, None, list[Record]]:
        cluster = self._cluster
        busy = self.stream.in_flight or self._done or self.stop
        yield self._some(BUSY_S if busy else IDLE_S)
        if cluster.down:
            return []
        if self.member not in cluster.members:
            self._end(list(self._positions))
            self.member = cluster.join(self.name)
        assert self.member is not None
        self.member.generation = cluster.generation
        if revoked := cluster.wanted_back(self.member):
            yield from self._leave(revoked)
            self._end(revoked)
            cluster.release(self.member, revoked)
        for partition in cluster.given(self.member):
            yield from self._start(partition)
        return self._fetch(paused)

    def _fetch(self, paused: Collection[Partition]) -> list[Record]:
        records: list[Record] = []
        for partition in self._rng.sample(list(self._positions), len(self._positions)):
            if partition in paused:
                continue
            position = self._positions[partition]
            most = self._rng.randint(0, self._sim.plan.take_records - len(records))
            for entry in self._cluster.fetch(partition, position, most):
                self._positions[partition] = entry.offset + 1
                epoch = self._assignment.epoch(partition)
                if epoch is not None:
                    value = None if entry.kind is Kind.TOMBSTONE else b"t" * entry.size
                    records.append(Record(partition, entry.offset, epoch, None, None, value, (), self._sim.now))
        return records

    def _start(self, partition: Partition) -> Steps:
        """Begin a partition where its commit says, as `starts.find_starts` does."""
        cluster = self._cluster
        while True:
            yield self._some(BUSY_S)
            try:
                if not cluster.down:
                    found = cluster.stable(partition)
                    break
            except UnstableError:
                pass
        assert self.member is not None
        if found is None:
            if self.member not in cluster.members:
                return
            # The client hears of a new generation in the background, also while its callbacks run.
            self.member.generation = cluster.generation
            found = 0, checkpoint.encode(Checkpoint(self.name, 0, clean=True, first_start=1))
            cluster.commit_plainly(self.member, partition, *found)
        base, metadata = found
        suspicion = suspicion_of(checkpoint.decode(metadata), base, cluster.end(partition))
        self._sim.trace(self, "begins", partition, base, metadata, suspicion)
        if self._owns(partition):
            self._ledger.began(partition, base, metadata, suspicion)
        self._positions[partition] = base
        self.stream.begin(partition, base, suspicion)

    def _leave(self, partitions: Collection[Partition]) -> Steps:
        sim, stream = self._sim, self.stream
        sim.trace(self, "leaves", partitions)
        stream.forget(partitions)
        leave_by = min(self._leave_by, sim.now + sim.plan.drain_s)
        while sim.now < leave_by and not stream.drained(partitions):
            yield self._some(BUSY_S)
            self._collect()
            while action := stream.deliver(sim.now):
                yield from self._perform(action)
        self._note_what_is_let_go(partitions)
        stamps = stream.clean_stamps(partitions) if self._clean else {}
        if stamps:
            yield from self._publish(mark(stamps))

    def _note_what_is_let_go(self, partitions: Collection[Partition]) -> None:
        for job in (self._running, *self._jobs):
            for record in _records_of(job):
                if record.partition in partitions:
                    self._ledger.let_go(record.partition, record.offset)

    def _end(self, partitions: Collection[Partition]) -> None:
        if partitions:
            self._sim.trace(self, "ends", partitions)
        self.stream.end(partitions)
        for partition in partitions:
            self._positions.pop(partition, None)

    def _perform(self, action: Action) -> Steps:
        self._sim.trace(self, action)
        match action:
            case Prepare():
                yield from self._prepare(action.records)
            case Forward() | Canary() | Trial():
                self._put(action)
            case Read():
                if action.anew:
                    owned = self._owns(action.partition)
                    self._ledger.expect(not owned, "an owner's commit was moved by another", self.name, action)
                    self.stream.begin(action.partition, action.offset, None)
                self._positions[action.partition] = action.offset
            case Publish():
                yield from self._deliver(action)
            case Ask():
                yield from self._ask(action)

    def _prepare(self, records: Sequence[Record]) -> Steps:
        for record in records:
            self._touch(record, alone=False)
        yield self._some(BUSY_S)
        for record in records:
            if self._entry(record).kind is Kind.KILLS_PREPARE:
                self._die_of(record)
        self.stream.prepared([self._task(record) for record in records])

    def _deliver(self, action: Publish) -> Steps:
        started = self._sim.now
        try:
            committed = yield from self._publish(action)
        except RefusedError as refused:
            self.stream.refused(refused.reasons)
            return
        if committed:
            self.stream.published(self._sim.now)
        else:
            self.stream.failed(self._sim.now, self._sim.now - started)

    def _ask(self, action: Ask) -> Steps:
        started = self._sim.now
        yield self._some(BUSY_S)
        found: dict[Partition, int] = {}
        try:
            if self._cluster.down:
                raise UnstableError
            for partition in action.partitions:
                if commit := self._cluster.stable(partition):
                    found[partition] = commit[0]
        except UnstableError:
            yield self._some(CALL_S)
            self.stream.failed(self._sim.now, self._sim.now - started)
            return
        self.stream.asked(found, self._sim.now)

    # The producer

    def _publish(self, action: Publish) -> Generator[float, None, bool]:
        """Publish in one transaction; returns whether that is certainly committed.

        Raises:
            RefusedError: the broker refused messages for good.
        """
        cluster, rng, rates = self._cluster, self._rng, self._sim.rates
        yield self._some(BUSY_S)
        if cluster.down:
            yield self._some(CALL_S)
            return False
        if self._unsettled:
            # A new producer of the same id settles what the last one left open, before anything else.
            cluster.settle(self._unsettled, commits=self._unsettled.commits)
            self._unsettled = None
        if reasons := self._refusals(action.answers):
            raise RefusedError(reasons)
        if any(written.answer.task.partition in cluster.failing for written in action.answers):
            yield self._some(1.0)
            return False
        assert self.member is not None
        if self.member in cluster.members and rng.random() < 0.5:
            # The client hears of a new generation in the background, before its callbacks run.
            self.member.generation = cluster.generation
        transaction = Transaction(self.member, action.answers, action.ends, action.stamps)
        try:
            cluster.send(transaction)
        except RefusedByGroupError:
            return False
        self._unsettled = transaction
        yield self._some(BUSY_S)
        draw = rng.random()
        if draw < rates.limbo:
            # Whether the broker got it nobody knows before somebody settles it.
            transaction.commits = rng.random() < 0.5
            self._sim.settle_later(transaction)
            return False
        self._unsettled = None
        draw = rng.random()
        commits = draw >= rates.aborted
        cluster.settle(transaction, commits=commits)
        self._sim.trace(self, "committed" if commits else "aborted", action.ends)
        yield self._some(BUSY_S)
        return commits and rng.random() >= rates.applied_unseen

    def abandon(self) -> Transaction | None:
        """Return the transaction that a dead process leaves open."""
        return self._unsettled

    def _refusals(self, answers: Sequence[Written]) -> dict[int, str]:
        bad = {
            written.answer.task.partition
            for written in answers
            if _is_refused(written.answer, self._entry(written.answer.task.record).refusals)
        }
        # The broker refuses the whole record batch in which one record is wrong.
        return {index: "refused" for index, written in enumerate(answers) if written.answer.task.partition in bad}

    # The forwards' thread

    def _put(self, job: _Job) -> None:
        if isinstance(job, Trial):
            self._ledger.expect(not (self._jobs or self._running), "a trial is not alone", self.name, job)
            self._touch(job.record, alone=True)
        self._jobs.append(job)
        if self._running is None:
            self._running = self._jobs[0]
            self._sim.start(self._run_jobs(), self)

    def _run_jobs(self) -> Steps:
        while self._jobs:
            job = self._running = self._jobs.popleft()
            yield self._some(BUSY_S)
            done = yield from self._run_job(job)
            self._done.append(done)
        self._running = None

    def _run_job(self, job: _Job) -> Generator[float, None, Callable[[], None]]:
        match job:
            case Forward(batch):
                self._child = False
                started = self._sim.now
                yield from self._run_records([task.record for task in batch.items])
                answers = [self._answer(task.record) for task in batch.items]
                seconds = self._sim.now - started
                return lambda: self.stream.forwarded(answers, batch.tokens, seconds, self._sim.now)
            case Canary(in_child):
                found = not in_child or self._rng.random() >= self._sim.rates.no_child
                if in_child:
                    self._child = found
                return lambda: self.stream.sound(in_child, found)
            case Trial(record, in_child):
                if self._rng.random() < self._sim.rates.kill_in_trial:
                    self._sim.kill_soon(self)
                yield from self._try(record, in_child=in_child)
                if in_child and not self._child:
                    return lambda: self.stream.tried(record, None, self._sim.now)
                return lambda: self.stream.tried(record, self._answer(record), self._sim.now)

    def _try(self, record: Record, *, in_child: bool) -> Steps:
        if not in_child:
            yield from self._run_records([record])
            return
        self._ledger.expect(self._child, "a trial in a child that nobody started", self.name, record)
        kind = self._entry(record).kind
        yield self._seconds([record])
        if kind is Kind.KILLS_BOTH:
            self._die_of(record)
        natural = kind in (Kind.KILLS_FORWARD, Kind.KILLS_PREPARE) or (kind is Kind.FLAKY and self._rng.random() < 0.5)
        if natural or self._rng.random() < self._sim.rates.kill_child:
            self._child = False
            self._sim.trace(self, "child dies", record.partition, record.offset)
            self._ledger.killed_child(record.partition, record.offset, (self.name, record.epoch))

    def _run_records(self, records: Sequence[Record]) -> Steps:
        yield self._seconds(records)
        if self._rng.random() < self._sim.rates.sick_engine:
            self._done.append(_give_up)
        for record in records:
            kind = self._entry(record).kind
            deadly = kind in (Kind.KILLS_FORWARD, Kind.KILLS_BOTH, Kind.KILLS_PREPARE)
            if deadly or (kind is Kind.FLAKY and self._rng.random() < 0.5):
                self._die_of(record)

    def _collect(self) -> None:
        while self._done:
            self._done.popleft()()

    # Records

    def _touch(self, record: Record, *, alone: bool) -> None:
        if self._owns(record.partition) and self._assignment.holds(record.partition, record.epoch):
            self._ledger.touched(record, self._cluster.committed[record.partition], alone=alone)

    def _owns(self, partition: Partition) -> bool:
        return self.member is not None and self._cluster.owners[partition] is self.member

    def _die_of(self, record: Record) -> None:
        self._sim.trace(self, "is killed by", record.partition, record.offset)
        self._ledger.killed_worker(record.partition, record.offset)
        raise ProcessDiedError

    def _entry(self, record: Record) -> Entry:
        return self._ledger.entry(record.partition, record.offset)

    def _task(self, record: Record) -> Task:
        return Task(record, prepared=None if record.value is None else _Prepared(self._entry(record).tokens))

    def _answer(self, record: Record) -> Answer:
        match self._entry(record).kind:
            case Kind.TOMBSTONE:
                return Answer(self._task(record), None)
            case Kind.RAISES:
                return Answer(self._task(record), Failure("infer", "RuntimeError", "it raises"))
            case _:
                return Answer(self._task(record), FOUND)

    def _seconds(self, records: Sequence[Record]) -> float:
        slow = any(self._entry(record).kind is Kind.SLOW for record in records)
        return self._some(SLOW_S if slow else 0.3)

    def _some(self, seconds: float) -> float:
        return seconds * (0.1 + 1.4 * self._rng.random())


def _give_up() -> None:
    raise EngineBrokenError


def _records_of(job: _Job | None) -> list[Record]:
    match job:
        case Forward(batch):
            return [task.record for task in batch.items]
        case Trial(record):
            return [record]
        case _:
            return []


def _is_refused(answer: Answer, refusals: int) -> bool:
    """Return whether the broker refuses this form of an answer; a dead letter's last form it always takes."""
    if not isinstance(answer.outcome, Failure):
        return refusals > 0
    return not answer.refused and refusals > (answer.outcome.stage == "result_refused")


def _write(answer: Answer) -> Written:
    record = answer.task.record
    topic = "texts-dlq" if isinstance(answer.outcome, Failure) else "entities"
    return Written(answer, OutgoingMessage(topic, record.partition.number, None, None, None, ()))

"""The ledger of a run: what happened to every record, and whether that keeps what the worker promises."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.simulation.plan import KILLERS, Entry, Kind, Plan
from worker import checkpoint
from worker.answers import Written
from worker.checkpoint import Checkpoint
from worker.forward import Answer
from worker.isolation import PATIENT_DEATHS, Suspicion
from worker.records import Partition, Record
from worker.tasks import Failure

METADATA_BYTES = 1024


class BrokenPromiseError(AssertionError):
    """The worker did what it must never do."""


class Move(NamedTuple):
    """What a transaction made of a partition's commit: offset and metadata before and after."""

    partition: Partition
    before: tuple[int, str]
    after: tuple[int, str]


@dataclass(slots=True)
class _Trial:
    """A trial that was counted before it ran, and whether a death of the worker in it may count."""

    offset: int
    counts: bool


@dataclass(slots=True)
class _Share:
    """What is known of one partition.

    Attributes:
        touched: the offset after the last record touched under the present assignment.
        suspect: the offset after the last record that was in hand when a worker ended uncleanly.
        was_suspect: the same as of the last assignment: none below may run with others.
        last: the last offset answered.
    """

    log: dict[int, Entry]
    touched: int = 0
    suspect: int = 0
    was_suspect: int = 0
    last: int = -1
    counted: _Trial | None = None


@dataclass(slots=True)
class _Case:
    """What happened to one record.

    Attributes:
        worker_deaths: workers that it killed.
        child_deaths: child processes that died while it was on trial, whatever killed them.
        lost_counts: assignments in which a child died; the last death of each may not have been written down.
        trial_ends: workers that ended uncleanly in a trial of it that was counted beforehand.
        let_go: workers that left the partition in good order with the record still running.
    """

    worker_deaths: int = 0
    child_deaths: int = 0
    lost_counts: set[tuple[str, int]] = field(default_factory=set)
    trial_ends: int = 0
    let_go: int = 0


class Ledger:
    """Checks each step of a run.

    Args:
        plan: the run's.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._shares = {
            Partition("texts", number): _Share({entry.offset: entry for entry in log})
            for number, log in enumerate(plan.logs)
        }
        self._cases: dict[tuple[Partition, int], _Case] = {}
        self._answers: dict[tuple[Partition, int], Answer] = {}
        self._records = sum(len(log) for log in plan.logs)
        self.kinds: Counter[str] = Counter()

    @property
    def complete(self) -> bool:
        return len(self._answers) == self._records

    def missing(self) -> list[str]:
        """Return the records that have no answer yet."""
        every = ((partition, offset) for partition, share in self._shares.items() for offset in share.log)
        return [f"{partition}@{offset}" for partition, offset in every if not self.answered(partition, offset)]

    def entry(self, partition: Partition, offset: int) -> Entry:
        return self._shares[partition].log[offset]

    def answered(self, partition: Partition, offset: int) -> bool:
        return (partition, offset) in self._answers

    def expect(self, holds: bool, what: str, *details: object) -> None:
        if not holds:
            raise BrokenPromiseError(f"{what}: {', '.join(str(detail) for detail in details)}")

    # At the broker

    def applied(self, moves: Sequence[Move], answers: Sequence[Written]) -> None:
        """Check a transaction that was committed."""
        ends = {move.partition: move.after[0] for move in moves}
        for written in answers:
            self._answer(written.answer, ends)
        for move in moves:
            self._moved(move)

    def _answer(self, answer: Answer, ends: dict[Partition, int]) -> None:
        record = answer.task.record
        partition, offset = record.partition, record.offset
        key = partition, offset
        share = self._shares[partition]
        self.expect(key not in self._answers, "answered twice", *key)
        self.expect(offset > share.last, "answered out of order", *key, f"after {share.last}")
        self.expect(offset < ends.get(partition, 0), "an answer without its commit", *key)
        share.last = offset
        self._answers[key] = answer
        self._check_kind(share.log[offset], answer, self._case(partition, offset))

    def _check_kind(self, entry: Entry, answer: Answer, case: _Case) -> None:
        failure = answer.outcome if isinstance(answer.outcome, Failure) else None
        stage = failure.stage if failure else answer.kind
        self.kinds[stage] += 1
        if failure and stage == "crash":
            deaths = case.child_deaths + case.trial_ends
            self.expect(failure.attempts >= self._plan.trials, "a crash letter after too few trials", entry, failure)
            self.expect(failure.attempts <= deaths, "a trial counted that nothing died in", entry, failure, case)
            return
        natural = {Kind.TOMBSTONE: "tombstones", Kind.RAISES: "infer"}.get(entry.kind, "events")
        if entry.refusals and natural != "infer":
            natural = "result_refused"
        self.expect(stage == natural and entry.kind not in KILLERS, "a wrong answer", entry, answer)

    def _moved(self, move: Move) -> None:
        share = self._shares[move.partition]
        before, after = move.before[0], move.after[0]
        self.expect(after >= before, "the committed offset went back", *move)
        passed = [offset for offset in share.log if before <= offset < after]
        lost = [offset for offset in passed if not self.answered(move.partition, offset)]
        self.expect(not lost, "committed beyond records without an answer", *move, lost)
        stamp, earlier = checkpoint.decode(move.after[1]), checkpoint.decode(move.before[1])
        assert earlier is not None
        self.expect(stamp is not None, "metadata that can't be read", *move)
        assert stamp is not None
        self.expect(len(move.after[1].encode()) < METADATA_BYTES, "metadata too large", *move)
        # Until the commit after it, whoever comes next knows from this one alone what was in hand.
        covered = stamp.clean or share.touched <= max(after, stamp.until or 0)
        self.expect(covered, "a commit that does not cover what is in hand", *move, f"touched to {share.touched}")
        if after > before:
            share.counted = None
        elif stamp.trials > earlier.trials:
            self._counted(move.partition, after, stamp)

    def _counted(self, partition: Partition, base: int, stamp: Checkpoint) -> None:
        offset = min(offset for offset in self._shares[partition].log if offset >= base)
        case = self._case(partition, offset)
        if stamp.trials <= case.child_deaths + case.trial_ends:
            return
        # Counted before it runs. Whoever kills workers at random must not be able to fill the count of a record whose
        # trials run in a child.
        in_child = self._plan.children and not self._plan.rates.no_child and stamp.deaths > 1
        counts = not in_child or stamp.deaths > PATIENT_DEATHS
        self._shares[partition].counted = _Trial(offset, counts)

    # In the workers

    def began(self, partition: Partition, base: int, metadata: str, suspicion: Suspicion | None) -> None:
        """Check what a worker knows that was just assigned a partition."""
        share = self._shares[partition]
        stamp = checkpoint.decode(metadata)
        assert stamp is not None
        if share.counted and not stamp.clean and share.counted.counts:
            self._case(partition, share.counted.offset).trial_ends += 1
        share.counted = None
        if not stamp.clean:
            share.suspect = max(share.suspect, share.touched)
        left = [offset for offset in share.log if base <= offset < share.suspect]
        if left:
            known = suspicion is not None and suspicion.until > left[-1]
            self.expect(known, "a record that was in hand at an unclean end is not suspect", partition, left, suspicion)
        share.touched, share.was_suspect = 0, left[-1] + 1 if left else 0

    def touched(self, record: Record, committed: tuple[int, str], *, alone: bool) -> None:
        """Check that a worker may touch a record of a partition that it owns."""
        partition, offset = record.partition, record.offset
        share = self._shares[partition]
        stamp = checkpoint.decode(committed[1])
        assert stamp is not None
        self.expect(not stamp.clean, "touched while the commit says that all is in order", partition, offset)
        self.expect(offset < (stamp.until or 0), "touched beyond the committed reach", partition, offset, stamp)
        if not alone:
            suspect = offset < share.was_suspect
            self.expect(not suspect, "a suspect record is not alone", partition, offset, f"below {share.was_suspect}")
        share.touched = max(share.touched, offset + 1)

    def let_go(self, partition: Partition, offset: int) -> None:
        self._case(partition, offset).let_go += 1

    def killed_worker(self, partition: Partition, offset: int) -> None:
        """Check that a record has not killed more workers than isolation allows."""
        case = self._case(partition, offset)
        case.worker_deaths += 1
        kind = self._shares[partition].log[offset].kind
        one_by_one = 1 + self._plan.trials
        if kind is Kind.KILLS_BOTH:
            most = one_by_one + PATIENT_DEATHS
        elif self._plan.children and not self._plan.rates.no_child:
            most = 2
        else:
            most = one_by_one
        self.expect(
            case.worker_deaths <= most + case.let_go, "a record killed too many workers", partition, offset, case
        )

    def killed_child(self, partition: Partition, offset: int, epoch: tuple[str, int]) -> None:
        """Check that a record's trials come to an end."""
        case = self._case(partition, offset)
        case.child_deaths += 1
        case.lost_counts.add(epoch)
        most = self._plan.trials + len(case.lost_counts)
        self.expect(case.child_deaths <= most, "a record killed too many child processes", partition, offset, case)

    def _case(self, partition: Partition, offset: int) -> _Case:
        return self._cases.setdefault((partition, offset), _Case())

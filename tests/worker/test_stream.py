from collections.abc import Sequence

from tests.worker.answered import answer, write
from tests.worker.records import record
from worker.actions import Action, Ask, Canary, Forward, Prepare, Publish, Read, Trial
from worker.assignment import Assignment
from worker.batcher import MicroBatcher
from worker.breaker import LEAST, Breaker
from worker.checkpoint import Checkpoint
from worker.forecast import ForwardTimes
from worker.isolation import Suspicion
from worker.records import Partition, Record
from worker.stream import Limits, Stream
from worker.tasks import Failure, Task

A, B = Partition("texts", 0), Partition("texts", 1)


class Desk:
    """A stream, with the hands to do what it says; the broker takes all that is published.

    Attributes:
        commits: the last commit of each partition.
        letters: the failures among the answers that were published.
    """

    def __init__(self, *, trials: int = 3, buffer_records: int = 1000, breaker_share: float = 0) -> None:
        self.assignment = Assignment("run")
        times = ForwardTimes()
        batcher: MicroBatcher[Task] = MicroBatcher(budget_tokens=100, max_latency_s=0, forward_seconds=times.predict)
        limits = Limits(buffer_records, 1_000_000, trials, children=True)
        breaker = Breaker(breaker_share, 10)
        self.stream = Stream(self.assignment, batcher, write, times, breaker, limits, budget_tokens=100)
        self.commits: dict[Partition, tuple[int, Checkpoint]] = {}
        self.letters: list[Failure] = []

    def begin(self, partition: Partition, base: int = 0, suspicion: Suspicion | None = None) -> None:
        self.stream.begin(partition, base, suspicion)

    def take(self, partition: Partition, *offsets: int) -> None:
        epoch = self.assignment.epoch(partition)
        assert epoch is not None
        self.stream.take([record(b"text", partition=partition, offset=offset, epoch=epoch) for offset in offsets])

    def next(self, now: float = 0, *, draining: bool = False) -> Action | None:
        return self.stream.next(now, idle=True, draining=draining)

    def publish(self, action: Action | None, now: float = 0) -> Publish:
        assert isinstance(action, Publish)
        self.commits |= {partition: (end, action.stamps[partition]) for partition, end in action.ends.items()}
        published = self.stream.published(now)
        self.letters += [done.outcome for done in published if isinstance(done.outcome, Failure)]
        return action

    def prepare(self, action: Action | None) -> list[int]:
        assert isinstance(action, Prepare)
        self.stream.prepared([Task(taken) for taken in action.records])
        return [taken.offset for taken in action.records]

    def finish(self, action: Forward, now: float = 0) -> None:
        answers = [answer(task.partition, task.record.offset, task.record.epoch) for task in action.batch.items]
        self.stream.forwarded(answers, action.batch.tokens, 0.1, now)

    def forward(self) -> Forward:
        """Do what comes before the next forward, and return that."""
        while not isinstance(action := self.next(), Forward):
            if isinstance(action, Prepare):
                self.prepare(action)
            else:
                self.publish(action)
        return action

    def trial(self) -> Trial:
        """Do what comes before the next trial, and return that."""
        while not isinstance(action := self.next(), Trial):
            if isinstance(action, Canary):
                self.stream.sound(action.in_child, found=True)
            else:
                self.publish(action)
        return action

    def survive(self, trial: Trial) -> None:
        tried = trial.record
        self.stream.tried(tried, answer(tried.partition, tried.offset, tried.epoch), 0)


def offsets(records: Sequence[Record]) -> list[int]:
    return [one.offset for one in records]


def test_before_anything_is_touched_a_commit_says_how_far_that_may_go() -> None:
    desk = Desk()
    desk.begin(A, 7)
    desk.take(A, 7, 8)
    mark = desk.publish(desk.next())
    assert (mark.answers, mark.ends) == ((), {A: 7})
    assert not mark.stamps[A].clean
    assert (mark.stamps[A].until or 0) > 8
    assert desk.prepare(desk.next()) == [7, 8]


def test_a_mark_that_failed_starts_nothing() -> None:
    desk = Desk()
    desk.begin(A)
    desk.take(A, 0)
    assert isinstance(desk.next(), Publish)
    desk.stream.failed(0, 0)
    assert desk.next() is None
    assert isinstance(desk.next(1), Publish)


def test_what_lies_beyond_the_reach_waits_for_the_next_commit() -> None:
    desk = Desk()
    desk.begin(A)
    desk.take(A, 0, 900)
    desk.publish(desk.next())
    assert desk.prepare(desk.next()) == [0]
    desk.finish(desk.forward())
    assert desk.publish(desk.next()).ends == {A: 1}
    mark = desk.publish(desk.next())
    assert (mark.ends, (mark.stamps[A].until or 0) > 900) == ({A: 1}, True)
    assert desk.prepare(desk.next()) == [900]


def test_the_reach_holds_though_a_commit_with_a_lesser_one_may_have_succeeded_unseen() -> None:
    desk = Desk()
    desk.begin(A)
    desk.take(A, 0)
    desk.finish(desk.forward())
    reach = desk.publish(desk.next()).stamps[A].until or 0
    assert reach > 200
    desk.take(A, 1)
    forward = desk.forward()
    desk.stream.forwarded([answer(A, 1, forward.batch.items[0].record.epoch)], 10_000, 0.1, 0)
    unseen = desk.next()
    assert isinstance(unseen, Publish)
    desk.stream.failed(0, 0)
    desk.take(A, reach - 1)
    assert desk.prepare(desk.next()) == [reach - 1]
    assert (unseen.stamps[A].until or 0) >= reach


def test_suspects_run_one_by_one_each_counted_before_it_runs_and_the_canary_first() -> None:
    desk = Desk()
    desk.begin(A, 0, Suspicion(1, 2, 0))
    desk.begin(B)
    desk.take(A, 0, 1, 2)
    desk.take(B, 0)
    assert desk.next() == Canary(in_child=False)
    desk.stream.sound(in_child=False, found=True)
    assert desk.publish(desk.next()).stamps[A].trials == 1
    trial = desk.next()
    assert isinstance(trial, Trial)
    assert (trial.record.offset, trial.in_child) == (0, False)
    assert desk.next() is None
    desk.survive(trial)
    done = desk.publish(desk.next())
    assert (done.ends, done.stamps[A].trials) == ({A: 1}, 0)
    assert desk.trial().record.offset == 1
    assert desk.commits[A][1].trials == 1


def test_partitions_with_suspects_take_turns() -> None:
    desk = Desk()
    desk.begin(A, 0, Suspicion(2, 2, 0))
    desk.begin(B, 0, Suspicion(2, 2, 0))
    desk.take(A, 0, 1)
    desk.take(B, 0, 1)
    run = []
    for _ in range(4):
        trial = desk.trial()
        run.append((trial.record.partition, trial.record.offset))
        desk.survive(trial)
    assert run == [(A, 0), (B, 0), (A, 1), (B, 1)]


def test_what_is_in_hand_is_finished_before_a_suspect_runs() -> None:
    desk = Desk()
    desk.begin(B)
    desk.take(B, 0)
    desk.publish(desk.next())
    desk.prepare(desk.next())
    desk.begin(A, 0, Suspicion(1, 2, 0))
    desk.take(A, 0)
    forward = desk.next()
    assert isinstance(forward, Forward)
    assert desk.next() is None
    desk.finish(forward)
    assert desk.publish(desk.next()).ends == {B: 1}
    assert desk.next() == Canary(in_child=False)


def test_over_a_gap_where_suspects_were_a_partition_is_acquitted() -> None:
    desk = Desk()
    desk.begin(A, 0, Suspicion(1, 5, 0))
    desk.take(A, 7)
    mark = desk.publish(desk.next())
    assert (mark.stamps[A].deaths, (mark.stamps[A].until or 0) > 7) == (0, True)
    assert desk.prepare(desk.next()) == [7]


def test_in_a_child_a_trial_counts_once_the_child_has_died_and_the_last_makes_a_dead_letter() -> None:
    desk = Desk(trials=3)
    desk.begin(A, 0, Suspicion(2, 2, 0))
    desk.take(A, 0, 1)
    for deaths in range(3):
        assert desk.next() == Canary(in_child=True), "after each death of a child the next one is tried out first"
        desk.stream.sound(in_child=True, found=True)
        assert desk.publish(desk.next()).stamps[A].trials == deaths
        trial = desk.next()
        assert isinstance(trial, Trial)
        assert (trial.record.offset, trial.in_child) == (0, True)
        desk.stream.tried(trial.record, None, 0)
    assert desk.publish(desk.next()).ends == {A: 1}
    assert [(letter.stage, letter.attempts) for letter in desk.letters] == [("crash", 3)]
    assert desk.trial().record.offset == 1


def test_where_no_child_can_be_had_a_suspect_runs_in_the_worker_and_is_counted_before() -> None:
    desk = Desk()
    desk.begin(A, 0, Suspicion(2, 2, 1))
    desk.take(A, 0)
    assert desk.next() == Canary(in_child=True)
    desk.stream.sound(in_child=True, found=False)
    assert desk.next() == Canary(in_child=False)
    desk.stream.sound(in_child=False, found=True)
    assert desk.publish(desk.next()).stamps[A].trials == 2
    assert isinstance(desk.next(), Trial)


def test_a_record_that_had_its_trials_is_not_tried_again() -> None:
    desk = Desk(trials=3)
    desk.begin(A, 0, Suspicion(4, 1, 3))
    desk.take(A, 0)
    assert desk.publish(desk.next()).ends == {A: 1}
    assert [(letter.stage, letter.attempts) for letter in desk.letters] == [("crash", 3)]


def test_a_worker_that_leaves_in_the_middle_of_a_trial_takes_the_count_back() -> None:
    desk = Desk()
    desk.begin(A, 0, Suspicion(1, 2, 1))
    desk.take(A, 0)
    desk.trial()
    assert desk.commits[A][1].trials == 2
    base, left = desk.stream.clean_stamps([A])[A]
    assert (base, left.clean, left.deaths, left.trials) == (0, True, 1, 1)


def test_a_trial_that_ends_while_its_partition_is_given_up_is_still_published() -> None:
    desk = Desk()
    desk.begin(A, 0, Suspicion(1, 2, 0))
    desk.take(A, 0)
    trial = desk.trial()
    desk.stream.forget([A])
    assert not desk.stream.drained([A])
    desk.survive(trial)
    assert desk.publish(desk.stream.deliver(0)).ends == {A: 1}
    assert desk.stream.drained([A])


def test_a_child_that_died_after_its_partition_was_gone_is_not_taken_for_alive() -> None:
    desk = Desk()
    desk.begin(A, 0, Suspicion(2, 2, 0))
    desk.take(A, 0)
    trial = desk.trial()
    desk.stream.end([A])
    desk.stream.tried(trial.record, None, 0)
    desk.begin(B, 0, Suspicion(2, 2, 0))
    desk.take(B, 0)
    assert desk.next() == Canary(in_child=True)


def test_draining_finishes_what_is_touched_and_starts_nothing() -> None:
    desk = Desk()
    desk.begin(A)
    desk.begin(B)
    desk.take(A, 0)
    desk.publish(desk.next())
    desk.prepare(desk.next())
    desk.take(B, 0)
    forward = desk.next(draining=True)
    assert isinstance(forward, Forward)
    assert offsets([task.record for task in forward.batch.items]) == [0]
    desk.finish(forward)
    desk.publish(desk.next(draining=True))
    assert desk.stream.idle
    assert desk.next(draining=True) is None


def test_a_flood_of_dead_letters_pauses_all_until_the_breaker_closes() -> None:
    desk = Desk(breaker_share=0.5)
    desk.begin(A)
    desk.take(A, *range(LEAST))
    forward = desk.forward()
    failure = Failure("infer", "RuntimeError", "it fails")
    answers = [answer(A, task.record.offset, task.record.epoch, failure) for task in forward.batch.items]
    assert len(answers) == LEAST
    desk.stream.forwarded(answers, forward.batch.tokens, 0.1, 0)
    desk.publish(desk.next())
    desk.take(A, LEAST)
    assert desk.next() is None
    assert desk.stream.paused(0) == {A}
    assert desk.stream.deadline(0) is None
    assert isinstance(desk.next(10), Prepare)
    assert desk.stream.paused(10) == frozenset()


def test_what_is_stuck_behind_one_partition_stops_no_other() -> None:
    desk = Desk(buffer_records=4)
    desk.begin(A)
    desk.begin(B)
    desk.take(A, 0, 1, 2, 3)
    desk.finish(desk.forward())
    for now in (0, 10):
        while isinstance(action := desk.next(now), Ask):
            desk.stream.asked({A: 0}, now)
        assert isinstance(action, Publish)
        desk.stream.failed(now, 0)
    desk.take(A, 4)
    assert desk.stream.paused(10) == {A}
    assert desk.next(10) == Read(A, 4, anew=False)
    desk.take(B, 0)
    assert desk.forward().batch.items[0].partition == B


def test_all_partitions_whose_commits_moved_are_read_anew() -> None:
    desk = Desk()
    desk.begin(A)
    desk.begin(B)
    desk.take(A, 0)
    desk.take(B, 0)
    desk.finish(desk.forward())
    assert isinstance(desk.next(), Publish)
    desk.stream.failed(0, 0)
    assert isinstance(desk.next(1), Ask)
    desk.stream.asked({A: 7, B: 8}, 1)
    read = [desk.next(1), desk.next(1)]
    assert sorted(read, key=str) == [Read(A, 7, anew=True), Read(B, 8, anew=True)]

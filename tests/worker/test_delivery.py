from collections.abc import Collection

import pytest

from tests.worker.answered import answer, write
from worker.actions import Ask, Publish
from worker.assignment import Assignment
from worker.checkpoint import Checkpoint
from worker.delivery import TOGETHER, Delivery, UndeliverableError
from worker.records import Partition
from worker.tasks import Failure

A, B = Partition("texts", 0), Partition("texts", 1)


class Desk:
    """A delivery of which two partitions are held, from offset 0 on."""

    def __init__(self) -> None:
        self.assignment = Assignment("run")
        self.epochs = {partition: self.assignment.begin(partition, 0) for partition in (A, B)}
        self.delivery = Delivery(self.assignment, write, _stamp)

    def add(self, *places: tuple[Partition, int]) -> None:
        self.delivery.add([answer(partition, offset, self.epochs[partition]) for partition, offset in places], 0.0)

    def publish(self, now: float) -> Publish:
        action = self.delivery.next(now)
        assert isinstance(action, Publish)
        return action

    def ask(self, now: float) -> Ask:
        action = self.delivery.next(now)
        assert isinstance(action, Ask)
        return action

    def try_all(self, now: float, failing: Collection[Partition]) -> list[tuple[Partition, int]]:
        """Do all that is due while some partitions' outputs fail; returns what is published."""
        published = []
        while action := self.delivery.next(now):
            if isinstance(action, Ask):
                self.delivery.asked(
                    {partition: self.assignment.base(partition) or 0 for partition in action.partitions}
                )
            elif any(partition in failing for partition in action.ends):
                self.delivery.failed(now, 0.0)
            else:
                published += offsets(action)
                self.delivery.committed()
        return published


def _stamp(_: Partition, base: int) -> Checkpoint:
    return Checkpoint("run", 1, False, base)


def offsets(action: Publish) -> list[tuple[Partition, int]]:
    records = [written.answer.task.record for written in action.answers]
    return [(record.partition, record.offset) for record in records]


def test_what_is_published_settles_where_each_partition_stands() -> None:
    desk = Desk()
    desk.add((A, 0), (B, 4), (A, 2))
    assert desk.publish(0).ends == {A: 3, B: 5}
    assert desk.assignment.settled_base(A) is None
    desk.delivery.committed()
    assert (desk.assignment.settled_base(A), desk.assignment.settled_base(B)) == (3, 5)
    assert desk.delivery.next(0) is None


def test_after_an_unknown_outcome_nothing_is_published_before_the_broker_was_asked() -> None:
    desk = Desk()
    desk.add((A, 0))
    desk.publish(0)
    desk.delivery.failed(0, 0.0)
    assert desk.delivery.next(0) is None
    assert desk.ask(9) == Ask((A,))
    desk.delivery.asked({A: 0})
    assert offsets(desk.publish(9)) == [(A, 0)]


def test_what_turns_out_to_be_committed_is_not_published_again() -> None:
    desk = Desk()
    desk.add((A, 0))
    desk.publish(0)
    desk.delivery.failed(0, 0.0)
    desk.ask(9)
    assert len(desk.delivery.asked({A: 1})) == 1
    assert desk.delivery.next(9) is None
    assert desk.assignment.settled_base(A) == 1
    written = desk.assignment.written(A)
    assert written is not None
    assert written.until == 1


def test_a_commit_that_somebody_else_moved_ends_the_epoch() -> None:
    desk = Desk()
    desk.add((A, 0))
    desk.publish(0)
    desk.delivery.failed(0, 0.0)
    desk.ask(9)
    assert desk.delivery.asked({A: 7}) == []
    assert desk.assignment.take_rewind() == (A, 7)
    assert desk.delivery.next(9) is None


def test_the_next_try_waits_for_as_long_as_the_last_one_took() -> None:
    desk = Desk()
    desk.add((A, 0))
    desk.publish(0)
    desk.delivery.failed(10, 4.0)
    assert desk.delivery.next(13.9) is None
    desk.ask(14)


def test_answers_of_an_assignment_that_ended_are_dropped() -> None:
    desk = Desk()
    desk.add((A, 0), (B, 0))
    desk.assignment.end([A])
    desk.assignment.begin(A, 0)
    assert offsets(desk.publish(0)) == [(B, 0)]


def test_after_two_failures_each_partition_is_tried_alone_and_a_good_one_goes_on() -> None:
    desk = Desk()
    desk.add((A, 0), (B, 0))
    assert desk.try_all(0, failing=[A]) == []
    assert not desk.delivery.troubled
    desk.try_all(10, failing=[A])
    assert desk.try_all(20, failing=[A]) == [(B, 0)]
    assert set(desk.delivery.troubled) == {A}
    desk.add((B, 1))
    assert desk.try_all(20, failing=[A]) == [(B, 1)]
    assert desk.delivery.in_turn == 0
    assert [stuck.task.partition for stuck in desk.delivery.stuck] == [A]
    assert desk.try_all(40, failing=[]) == [(A, 0)]
    assert not desk.delivery.troubled


def test_what_comes_after_an_answer_in_trouble_stays_behind_it() -> None:
    desk = Desk()
    desk.add((A, 0))
    for attempt in range(TOGETHER):
        desk.try_all(10 * attempt, failing=[A])
    desk.add((A, 1), (B, 0))
    assert desk.try_all(20, failing=[A]) == [(B, 0)]
    assert desk.try_all(40, failing=[]) == [(A, 0), (A, 1)]


def test_a_refused_answer_is_found_in_halves_and_alone_becomes_a_dead_letter() -> None:
    desk = Desk()
    desk.add(*((A, offset) for offset in range(4)))
    bad = (A, 2)
    published: list[tuple[Partition, int]] = []
    letters: list[tuple[Partition, int]] = []
    while action := desk.delivery.next(0):
        assert isinstance(action, Publish)
        refused = bad in offsets(action) and not letters
        if refused and len(action.answers) == 1:
            letters.append(bad)
        if refused:
            desk.delivery.refused(dict.fromkeys(range(len(action.answers)), "too large"))
            assert desk.assignment.settled_base(A) == len(published)
        else:
            desk.delivery.committed()
            published += offsets(action)
    assert published == [(A, offset) for offset in range(4)]


def test_an_answer_that_not_even_its_last_dead_letter_delivers_is_an_error() -> None:
    desk = Desk()
    desk.add((A, 0))
    forms = []
    for _ in range(3):
        written = desk.publish(0).answers[0]
        outcome = written.answer.outcome
        forms.append((outcome.stage if isinstance(outcome, Failure) else "event", written.answer.refused))
        if len(forms) < 3:
            desk.delivery.refused({0: "too large"})
    assert forms == [("event", 0), ("result_refused", 0), ("result_refused", 1)]
    with pytest.raises(UndeliverableError, match="texts-0, offset 0: even its dead letter is refused: too large"):
        desk.delivery.refused({0: "too large"})

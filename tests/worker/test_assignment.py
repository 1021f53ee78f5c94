from worker.assignment import Assignment
from worker.records import Partition

A, B = Partition("texts", 0), Partition("texts", 1)


def test_a_partition_lost_and_regained_is_a_new_epoch() -> None:
    assignment = Assignment("run")
    first = assignment.begin(A, 10)
    assignment.end([A])
    assert not assignment.holds(A, first)
    second = assignment.begin(A, 10)
    assert assignment.holds(A, second)
    assert not assignment.holds(A, first)


def test_the_base_moves_with_what_is_committed() -> None:
    assignment = Assignment("run")
    assignment.begin(A, 10)
    assignment.settle(A, 15)
    assert assignment.base(A) == 15
    assert assignment.base(B) is None


def test_while_a_commit_is_under_way_there_is_no_settled_base() -> None:
    assignment = Assignment("run")
    assignment.begin(A, 10)
    assignment.unsettle([A])
    assert assignment.settled_base(A) is None
    assert assignment.base(A) == 10
    assignment.settle(A, 12)
    assert assignment.settled_base(A) == 12


def test_a_rewind_ends_the_epoch_at_once_and_is_handed_over_once() -> None:
    assignment = Assignment("run")
    epoch = assignment.begin(A, 10)
    assignment.rewind(A, 12)
    assert not assignment.holds(A, epoch)
    assert assignment.take_rewind() == (A, 12)
    assert assignment.take_rewind() is None


def test_a_partition_that_goes_takes_its_rewind_along() -> None:
    assignment = Assignment("run")
    assignment.begin(A, 10)
    assignment.rewind(A, 12)
    assignment.end([A])
    assert assignment.take_rewind() is None


def test_a_partition_that_is_gone_is_neither_rewound_nor_settled() -> None:
    assignment = Assignment("run")
    assignment.rewind(A, 12)
    assignment.settle(A, 12)
    assert assignment.take_rewind() is None
    assert assignment.base(A) is None


def test_of_two_rewinds_none_is_forgotten() -> None:
    assignment = Assignment("run")
    assignment.begin(A, 10)
    assignment.begin(B, 20)
    assignment.rewind(A, 12)
    assignment.rewind(B, 22)
    assert {assignment.take_rewind(), assignment.take_rewind()} == {(A, 12), (B, 22)}

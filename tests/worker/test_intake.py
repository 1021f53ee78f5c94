from tests.worker.records import record
from worker.intake import Intake
from worker.records import Partition, Record

A, B = Partition("texts", 0), Partition("texts", 1)


def all_of(_: Record) -> bool:
    return True


def make(partition: Partition, offset: int, arrived: float) -> Record:
    return record(b"0123456789", partition=partition, offset=offset, key=None, headers=(), arrived=arrived)


def filled(*records: Record) -> Intake:
    intake = Intake()
    for one in records:
        intake.add(one)
    return intake


def test_records_leave_in_the_order_they_came_across_partitions() -> None:
    intake = filled(make(A, 0, 1), make(B, 0, 2), make(A, 1, 3))
    taken = intake.take(10, 1000, all_of)
    assert [(one.partition, one.offset) for one in taken] == [(A, 0), (B, 0), (A, 1)]
    assert len(intake) == intake.size == 0


def test_one_that_may_not_go_holds_up_its_own_partition_alone() -> None:
    intake = filled(make(A, 0, 1), make(A, 1, 2), make(B, 0, 3))
    taken = intake.take(10, 1000, lambda one: one.partition == B)
    assert [one.partition for one in taken] == [B]
    head = intake.head(A)
    assert head is not None
    assert head.offset == 0


def test_a_take_ends_at_its_bounds() -> None:
    records = [make(A, offset, 1) for offset in range(4)]
    assert len(filled(*records).take(3, 1000, all_of)) == 3
    assert len(filled(*records).take(10, 20, all_of)) == 2
    assert len(filled(*records).take(10, 1, all_of)) == 1


def test_what_is_dropped_counts_no_more() -> None:
    intake = filled(make(A, 0, 1), make(B, 0, 2), make(A, 1, 3))
    intake.drop(A)
    intake.drop(A)
    assert (len(intake), intake.size) == (1, 10)
    assert intake.head(A) is None
    assert [one.partition for one in intake.heads] == [B]

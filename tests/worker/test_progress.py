from worker.progress import Progress
from worker.records import Partition

A, B = Partition("texts", 0), Partition("texts", 1)


def test_a_partition_that_has_something_to_read_and_commits_nothing_stalls() -> None:
    progress = Progress()
    progress.note(0, {A: 10, B: 10}, [A, B])
    progress.note(7, {A: 10, B: 12}, [A, B])
    assert progress.stalled(9) == {A: 9, B: 2}


def test_a_partition_read_to_its_end_does_not_stall() -> None:
    progress = Progress()
    progress.note(0, {A: 10}, [A])
    progress.note(7, {A: 10}, [])
    progress.note(8, {A: 10}, [A])
    assert progress.stalled(9) == {A: 2}


def test_a_partition_that_went_is_not_held_against_anybody() -> None:
    progress = Progress()
    progress.note(0, {A: 10}, [A])
    progress.note(5, {}, [])
    assert progress.stalled(9) == {}
    progress.note(10, {A: 10}, [A])
    assert progress.stalled(11) == {A: 1}

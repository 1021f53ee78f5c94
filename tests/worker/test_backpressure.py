import pytest

from worker.backpressure import Backpressure


@pytest.mark.parametrize(("records", "size"), [(4, 0), (0, 400), (9, 900)])
def test_the_source_pauses_at_either_bound(records: int, size: int) -> None:
    assert Backpressure(4, 400).paused(records, size)


def test_a_pause_lasts_until_half_has_gone_of_both() -> None:
    made = Backpressure(4, 400)
    assert not made.paused(3, 399)
    assert made.paused(4, 10)
    assert made.paused(3, 10)
    assert made.paused(2, 201)
    assert not made.paused(2, 200)
    assert not made.paused(3, 399)

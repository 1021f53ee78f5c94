from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from packing.plan import plan


def test_the_tightest_room_is_taken() -> None:
    # 6 opens a pack with 4 free, 5 one with 5 free; 4 fits both and goes where it fills up, 3 to the other
    assert plan([3, 4, 5, 6], 10) == [[3, 1], [2, 0]]


def test_a_sequence_over_the_capacity_is_alone() -> None:
    assert plan([2, 12, 8], 10) == [[1], [2, 0]]


def test_equal_lengths_keep_their_order() -> None:
    assert plan([5, 5, 5], 10) == [[0, 1], [2]]


def test_nothing_to_plan() -> None:
    assert plan([], 10) == []


@given(st.lists(st.integers(1, 700), max_size=200), st.integers(1, 2048))
def test_every_sequence_is_in_one_pack_and_packs_hold_no_more_than_they_may(lengths: list[int], capacity: int) -> None:
    packs = plan(lengths, capacity)
    assert sorted(i for members in packs for i in members) == list(range(len(lengths)))
    for members in packs:
        assert len(members) == 1 or sum(lengths[i] for i in members) <= capacity
        assert [lengths[i] for i in members] == sorted((lengths[i] for i in members), reverse=True)
    # no two packs could be one
    totals = sorted(sum(lengths[i] for i in members) for members in packs)
    assert len(totals) < 2 or totals[0] + totals[1] > capacity

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from packing.pack import ROUNDING, Group, pack
from packing.tokenizer import IntArray


def ids(*values: int) -> IntArray:
    return np.array(values, np.int32)


def test_a_tiny_pack_worked_by_hand() -> None:
    packed = pack([ids(7, 8), ids(9), ids(1, 2, 3), ids(4, 5)], [0, 1, 2, 3], fill=99)
    assert packed.order == (2, 0, 3, 1)
    assert packed.lengths == (3, 2, 2, 1)
    assert packed.ids.tolist() == [1, 2, 3, 7, 8, 4, 5, 9] + [99] * 8
    assert packed.position_ids.tolist() == [0, 1, 2, 0, 1, 0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7]
    assert packed.cu_seqlens.tolist() == [0, 3, 5, 7, 8]
    assert packed.groups == (Group(0, 1, 3), Group(3, 2, 2), Group(7, 1, 1))
    assert packed.starts.tolist() == [0, 3, 5, 7]
    assert packed.tokens == 8


def test_only_the_members_are_taken() -> None:
    packed = pack([ids(1), ids(2, 2), ids(3)], [2, 1])
    assert packed.order == (1, 2)
    assert packed.ids.tolist()[:3] == [2, 2, 3]


def test_a_full_multiple_is_not_rounded_up() -> None:
    packed = pack([ids(*range(ROUNDING))], [0])
    assert packed.ids.shape == (ROUNDING,)
    assert pack([ids(*range(ROUNDING + 1))], [0]).ids.shape == (2 * ROUNDING,)


@given(st.lists(st.integers(1, 90), min_size=1, max_size=40))
def test_every_token_is_there_once_and_positions_restart(lengths: list[int]) -> None:
    sequences = [np.arange(length, dtype=np.int32) + 1000 * number for number, length in enumerate(lengths)]
    packed = pack(sequences, range(len(lengths)))
    assert len(packed.ids) % ROUNDING == 0
    assert len(packed.ids) - sum(lengths) < ROUNDING
    for start, length, number in zip(packed.starts, packed.lengths, packed.order, strict=True):
        assert packed.ids[start : start + length].tolist() == sequences[number].tolist()
        assert packed.position_ids[start : start + length].tolist() == list(range(length))
    covered = [token for at, count, length in packed.groups for token in range(at, at + count * length)]
    assert covered == list(range(sum(lengths)))

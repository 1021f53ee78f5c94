"""The windows that share one forward, as one flat stream of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from packing.tokenizer import IntArray

ROUNDING = 16
"""A pack's total is rounded up to a multiple of this, so that matrix products meet few different shapes. Rounding
every segment instead would cost 8 % (measured)."""


class Group(NamedTuple):
    """Neighbouring segments of equal length: tokens `start` to `start + segments * length`."""

    start: int
    segments: int
    length: int


@dataclass(frozen=True)
class Pack:
    """Segments end to end, the longest first; `B` of them, `T` tokens with the rounding at the end.

    Attributes:
        ids: Sub-tokens, int64 `[T]`; the rounding's are `fill`.
        position_ids: Positions, which restart in every segment, int64 `[T]`; the rounding's start anew.
        cu_seqlens: Where segments start, and the last one ends, int32 `[B + 1]`.
        lengths: Tokens of each segment, at least 1.
        order: Which of the sequences given each segment is.
    """

    ids: Tensor
    position_ids: Tensor
    cu_seqlens: Tensor
    lengths: tuple[int, ...]
    order: tuple[int, ...]

    @cached_property
    def starts(self) -> IntArray:
        """Return where each segment starts, int32 `[B]`."""
        return np.cumsum((0, *self.lengths[:-1]), dtype=np.int32)

    @cached_property
    def tokens(self) -> int:
        """Return how many tokens there are without the rounding."""
        return sum(self.lengths)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Return the segments by equal length, in order; together they cover all tokens but the rounding's."""
        made: list[Group] = []
        start = 0
        for length, members in groupby(self.lengths):
            count = sum(1 for _ in members)
            made.append(Group(start, count, length))
            start += count * length
        return tuple(made)


def pack(sequences: Sequence[IntArray], members: Sequence[int], *, fill: int = 0, device: str = "cpu") -> Pack:
    """Lay sequences end to end.

    Args:
        sequences: Ids, int32, each `[at least 1]`.
        members: Positions of those to take.
        fill: The id of the tokens that round the total up.
        device: Where the tensors shall be.
    """
    order = tuple(sorted(members, key=lambda i: -len(sequences[i])))
    lengths = tuple(len(sequences[i]) for i in order)
    total = sum(lengths)
    rounding = -total % ROUNDING
    ids = np.full(total + rounding, fill, np.int64)
    np.concatenate([sequences[i] for i in order], out=ids[:total], casting="safe")
    bounds = np.cumsum((0, *lengths), dtype=np.int64)
    starts = np.repeat(bounds, (*lengths, rounding))
    positions = np.arange(total + rounding) - starts
    return Pack(
        ids=torch.from_numpy(ids).to(device),
        position_ids=torch.from_numpy(positions).to(device),
        cu_seqlens=torch.from_numpy(bounds.astype(np.int32)).to(device),
        lengths=lengths,
        order=order,
    )

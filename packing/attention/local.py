"""Local attention on the flat stream: every token sees the tokens of its own segment near to it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from packing.attention import segments
from packing.pack import Group

BLOCK = 128
"""Queries of a block; its keys are `BLOCK + 2 * reach` at most, so the cost grows with the length, not its square."""


def attend(qkv: Tensor, groups: Sequence[Group], heads: int, reach: int) -> Tensor:
    """Return each token's attention over the tokens of its segment at most `reach` positions away.

    Args:
        qkv: Queries, keys and values side by side, `[T, 3 * H * D]`, contiguous.
        groups: The segments, the longest first; tokens outside of them get zeros.
        heads: `H`.
        reach: The farthest distance that is seen, to either side.

    Returns:
        `[T, H * D]`, in the dtype of `qkv`.
    """
    long = sum(1 for group in groups if group.length > reach + 1)
    out = segments.attend(qkv, groups[long:], heads)
    for group in groups[:long]:
        q, k, v, context = segments.by_head(qkv, out, group, heads)
        for start in range(0, group.length, BLOCK):
            end = min(group.length, start + BLOCK)
            first, last = max(0, start - reach), min(group.length, end + reach)
            seen = _band(reach, qkv.dtype, qkv.device)[: end - start, first - start + reach : last - start + reach]
            keys, values = k[:, :, first:last], v[:, :, first:last]
            segments.fill(context[:, :, start:end], q[:, :, start:end], keys, values, seen)
    return out


@lru_cache(maxsize=16)
def _band(reach: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return what is added to the scores of a block's queries, 0 or minus infinity, `[BLOCK, BLOCK + 2 * reach]`.

    The keys are those from `reach` before the block to `reach` after it.
    """
    queries = torch.arange(BLOCK, device=device)[:, None]
    keys = torch.arange(-reach, BLOCK + reach, device=device)
    band = torch.zeros(BLOCK, BLOCK + 2 * reach, dtype=dtype, device=device)
    return band.masked_fill_((queries - keys).abs() > reach, float("-inf"))

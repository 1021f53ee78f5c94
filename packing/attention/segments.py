"""Full attention on the flat stream: every token sees its own segment."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from packing.pack import Group

SCORES = 2**21
"""Scores in memory at a time where they are laid out at all, over segments and heads: 4 MB in bfloat16."""


def attend(qkv: Tensor, groups: Sequence[Group], heads: int) -> Tensor:
    """Return each token's attention over its own segment, `softmax(q k / sqrt(D)) v`.

    Args:
        qkv: Queries, keys and values side by side, `[T, 3 * H * D]`, contiguous.
        groups: The segments; tokens outside of them get zeros.
        heads: `H`.

    Returns:
        `[T, H * D]`, in the dtype of `qkv`.
    """
    out = qkv.new_empty(qkv.shape[0], qkv.shape[1] // 3)
    end = 0
    for group in groups:
        start, count, length = group
        q, k, v, context = by_head(qkv, out, group, heads)
        fill(context, q, k, v)
        end = start + count * length
    out[end:] = 0
    return out


def by_head(qkv: Tensor, out: Tensor, group: Group, heads: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return a group's queries, keys, values and place in `out`, views `[n, H, L, D]`."""
    start, count, length = group
    end = start + count * length
    q, k, v = qkv[start:end].view(count, length, 3, heads, -1).permute(2, 0, 3, 1, 4).unbind()
    return q, k, v, out[start:end].view(count, length, heads, -1).transpose(1, 2)


def fill(context: Tensor, q: Tensor, k: Tensor, v: Tensor, added: Tensor | None = None) -> None:
    """Write the attention of queries over keys and values.

    Args:
        context: Where to, `[n, H, L, D]`.
        q: `[n, H, L, D]`.
        k: `[n, H, S, D]`.
        v: `[n, H, S, D]`.
        added: To the scores, in the dtype of the others, `[L, S]`.
    """
    # torch's fused kernel is faster in float32 (up to 2 times) and slower in bfloat16 (1 to 1.7 times), on a CPU.
    scores = q.shape[1] * q.shape[2] * k.shape[2]
    if q.dtype == torch.bfloat16 and q.device.type == "cpu" and scores <= SCORES:
        at_once = SCORES // scores
        for first in range(0, len(q), at_once):
            some = slice(first, first + at_once)
            context[some] = _by_products(q[some], k[some], v[some], added)
    else:
        context.copy_(F.scaled_dot_product_attention(q, k, v, added))


def _by_products(q: Tensor, k: Tensor, v: Tensor, added: Tensor | None) -> Tensor:
    length, depth = q.shape[2:]
    queries = (q * (1 / math.sqrt(depth))).reshape(-1, length, depth)
    keys, values = (x.reshape(-1, x.shape[2], depth) for x in (k, v))
    scores = torch.bmm(queries, keys.transpose(1, 2))
    if added is not None:
        scores += added
    torch.softmax(scores, -1, out=scores)
    return torch.bmm(scores, values).view(q.shape)

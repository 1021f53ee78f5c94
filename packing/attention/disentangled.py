"""DeBERTa's attention on the flat stream: content to content, content to position, position to content.

The score of query `i` for key `j` is `q_i k_j + q_i K[i - j] + k_j Q[i - j]`, with a projected position table for each
of the last two terms (He et al. 2021, "DeBERTa", section 3.1). A product with a whole stretch of a table gives, in row
`i`, the distances in order; read with a row stride of one less than the row's length, that is the matrix wanted. So
nothing is gathered and no `L x L` index is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from packing.pack import Group

TILE = 64
"""Rows of a tile in long segments: products with the tables cover `length + TILE` distances instead of twice the
length."""

TILED_FROM = 192
"""Tokens of a segment from which tiles pay on a CPU."""

SCORES = 2**21
"""Scores in memory at a time, over segments and heads: 8 MB in float32."""


@dataclass(frozen=True, slots=True)
class PositionTables:
    """A layer's projected relative positions, by bucket of the distance.

    Attributes:
        keys: For content to position, `[P, H, D]`; None where the model has no such term.
        queries: For position to content, `[P, H, D]`, with the softmax's scale in it; or None.
        buckets: Tokens of a segment, `L` -> positions in `P` of its distances, from query to key, int64 `[2 L - 1]`:
            from the greatest, `L - 1`, down to `1 - L`.
    """

    keys: Tensor | None
    queries: Tensor | None
    buckets: Callable[[int], Tensor]

    def around(self, length: int) -> tuple[Tensor | None, Tensor | None]:
        """Return both tables by distance, `[H, D, 2 * length - 1]`: descending for keys, ascending for queries.

        Whole rows are gathered, which takes a thousandth of a layer's time; to keep them would take a tenth of the
        model's memory.
        """
        buckets = self.buckets(length)
        return (
            None if self.keys is None else self.keys[buckets].permute(1, 2, 0),
            None if self.queries is None else self.queries[buckets.flip(0)].permute(1, 2, 0),
        )


def attend(qkv: Tensor, groups: Sequence[Group], heads: int, tables: PositionTables | None) -> Tensor:
    """Return each token's attention over its own segment.

    Args:
        qkv: Queries (with the softmax's scale in them), keys and values side by side, `[T, 3 * H * D]`.
        groups: The segments, the longest first; tokens outside of them get zeros.
        heads: `H`.
        tables: The layer's; None of a model without relative positions.

    Returns:
        `[T, H * D]`, in the dtype of `qkv`.
    """
    total, width = qkv.shape[0], qkv.shape[1] // 3
    out = qkv.new_empty(total, width)
    longest = groups[0].length
    keys, queries = tables.around(longest) if tables else (None, None)
    end = 0
    for start, count, length in groups:
        own = slice(longest - length, longest + length - 1)
        own_keys = None if keys is None else keys[:, :, own]
        own_queries = None if queries is None else queries[:, :, own]
        # as many segments at a time as the scores' memory allows, and of a long one as many heads
        at_once = max(1, SCORES // (heads * length * length))
        end = start + count * length
        for first in range(start, end, at_once * length):
            last = min(end, first + at_once * length)
            _segments(qkv[first:last], out[first:last], length, heads, own_keys, own_queries)
    out[end:] = 0
    return out


def _segments(qkv: Tensor, out: Tensor, length: int, heads: int, keys: Tensor | None, queries: Tensor | None) -> None:
    rows = qkv.shape[0]
    # [H, n * L, D] each, without a copy
    q, k, v = qkv.view(rows, 3, heads, -1).permute(1, 2, 0, 3).unbind()
    context = out.view(rows, heads, -1).permute(1, 0, 2)
    heads_at_once = max(1, SCORES // (length * rows))
    for head in range(0, heads, heads_at_once):
        some = slice(head, head + heads_at_once)
        context[some] = _heads(
            q[some],
            k[some],
            v[some],
            None if keys is None else keys[some],
            None if queries is None else queries[some],
            length,
        )


def _heads(q: Tensor, k: Tensor, v: Tensor, keys: Tensor | None, queries: Tensor | None, length: int) -> Tensor:
    """Return the context of some heads of segments of one length, `[h, n * L, D]` from as much."""
    heads, rows, depth = q.shape
    count = rows // length
    scores = q.new_empty(heads, count, length, length)
    tile = TILE if count == 1 and length >= TILED_FROM else length
    # Copying into columns first, then adding rows: a copy may cross the strides cheaply, an addition may not.
    if queries is not None:
        for at in range(0, length, tile):
            size = min(tile, length - at)
            scores[..., at : at + size] = _by_key(k, queries, at, size, length)
    if keys is not None:
        for at in range(0, length, tile):
            size = min(tile, length - at)
            by_query = _by_query(q, keys, at, size, length)
            if queries is None:
                scores[:, :, at : at + size] = by_query
            else:
                scores[:, :, at : at + size] += by_query
    batch = (heads * count, length, depth)
    flat = scores.view(heads * count, length, length)
    beta = 0 if keys is None and queries is None else 1
    torch.baddbmm(flat, q.reshape(batch), k.reshape(batch).transpose(1, 2), beta=beta, out=flat)
    torch.softmax(flat, -1, out=flat)
    return torch.bmm(flat, v.reshape(batch)).view(heads, rows, depth)


def _by_query(q: Tensor, keys: Tensor, at: int, size: int, length: int) -> Tensor:
    """Return the content-to-position scores of the queries `at` to `at + size`, a view `[h, n, size, L]`."""
    heads, rows, _ = q.shape
    count = rows // length
    width = length + size - 1
    # query i, key j is in column (L - 1 - i + j), from the tile's first column on
    first = length - at - size
    some = q if size == length else q[:, at : at + size]
    product = torch.bmm(some, keys[:, :, first : first + width])
    strides = (count * size * width, size * width, width - 1, 1)
    return product.as_strided((heads, count, size, length), strides, size - 1)


def _by_key(k: Tensor, queries: Tensor, at: int, size: int, length: int) -> Tensor:
    """Return the position-to-content scores of the keys `at` to `at + size`, a view `[h, n, L, size]`."""
    heads, rows, _ = k.shape
    count = rows // length
    width = length + size - 1
    # query i, key j is in column (L - 1 + i - j), from the tile's first column on
    first = length - at - size
    some = k if size == length else k[:, at : at + size]
    product = torch.bmm(some, queries[:, :, first : first + width])
    strides = (count * size * width, size * width, 1, width - 1)
    return product.as_strided((heads, count, length, size), strides, size - 1)

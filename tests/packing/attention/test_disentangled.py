from __future__ import annotations

import pytest
import torch
from torch import Tensor

from packing.attention import disentangled
from packing.attention.disentangled import PositionTables, attend
from packing.pack import Group

HEADS, DEPTH, SPAN = 3, 8, 40


def bucket(distances: Tensor) -> Tensor:
    """Exact up to 30, then every third distance a bucket, up to the span."""
    far = 30 + torch.div(distances.abs() - 30, 3, rounding_mode="floor")
    sized = torch.where(distances.abs() <= 30, distances.abs(), far) * distances.sign()
    return (sized + SPAN).clamp(0, 2 * SPAN - 1)


def tables(keys: bool = True, queries: bool = True) -> PositionTables:
    generator = torch.Generator().manual_seed(5)
    by_key, by_query = (torch.randn(2 * SPAN, HEADS, DEPTH, generator=generator) for _ in range(2))
    return PositionTables(
        by_key if keys else None,
        by_query if queries else None,
        lambda length: bucket(torch.arange(length - 1, -length, -1)),
    )


def word_by_word(qkv: Tensor, start: int, length: int, given: PositionTables | None) -> Tensor:
    """The formula as it is written, for one segment."""
    q, k, v = qkv[start : start + length].view(length, 3, HEADS, DEPTH).permute(1, 2, 0, 3).unbind()
    scores = q @ k.transpose(1, 2)
    distance = torch.arange(length)[:, None] - torch.arange(length)
    if given is not None and given.keys is not None:
        scores += torch.einsum("hid,ijhd->hij", q, given.keys[bucket(distance)])
    if given is not None and given.queries is not None:
        scores += torch.einsum("hjd,ijhd->hij", k, given.queries[bucket(distance)])
    return (scores.softmax(-1) @ v).permute(1, 0, 2).reshape(length, HEADS * DEPTH)


def check(lengths: list[int], given: PositionTables | None) -> None:
    groups, start = [], 0
    for length in sorted(set(lengths), reverse=True):
        count = lengths.count(length)
        groups.append(Group(start, count, length))
        start += count * length
    total = start + 5
    qkv = torch.randn(total, 3 * HEADS * DEPTH, generator=torch.Generator().manual_seed(total))
    ours = attend(qkv, groups, HEADS, given)
    for at, count, length in groups:
        for first in range(at, at + count * length, length):
            right = word_by_word(qkv, first, length, given)
            assert torch.allclose(ours[first : first + length], right, atol=5e-6), (length, first)
    assert not ours[start:].any()


@pytest.mark.parametrize("keys", [True, False])
@pytest.mark.parametrize("queries", [True, False])
def test_every_length_and_term(keys: bool, queries: bool) -> None:
    check([1, 2, 2, 2, 3, 17, 64, 64, 150], tables(keys, queries))


def test_a_model_without_relative_positions() -> None:
    check([5, 5, 80], None)


@pytest.mark.parametrize("length", [191, 192, 193, 192 + 95, 192 + 96, 192 + 97])
def test_lengths_around_a_tile(length: int) -> None:
    check([length, length, 7], tables())


@pytest.mark.parametrize("scores", [1, 300, 20_000])
def test_little_memory_for_scores_gives_the_same(monkeypatch: pytest.MonkeyPatch, scores: int) -> None:
    monkeypatch.setattr(disentangled, "SCORES", scores)
    check([6] * 9 + [40, 200], tables())

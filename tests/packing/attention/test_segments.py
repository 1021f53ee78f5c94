from __future__ import annotations

import pytest
import torch
from torch import Tensor

from packing.attention import segments
from packing.attention.segments import attend
from packing.pack import Group

HEADS, DEPTH = 4, 8


def stream(tokens: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(tokens, 3 * HEADS * DEPTH, generator=generator).to(dtype)


def by_hand(qkv: Tensor, groups: list[Group]) -> Tensor:
    """The definition, in float64, one segment and head at a time."""
    out = torch.zeros(len(qkv), HEADS * DEPTH, dtype=torch.float64)
    q, k, v = qkv.double().view(len(qkv), 3, HEADS, DEPTH).unbind(1)
    for start, count, length in groups:
        for segment in range(count):
            at = slice(start + segment * length, start + (segment + 1) * length)
            for head in range(HEADS):
                scores = (q[at, head] @ k[at, head].T / DEPTH**0.5).softmax(-1)
                out[at, head * DEPTH : (head + 1) * DEPTH] = scores @ v[at, head]
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "groups",
    [
        [Group(0, 1, 1)],
        [Group(0, 1, 600)],
        [Group(0, 1, 40), Group(40, 3, 7), Group(61, 20, 1)],
        [Group(0, 40, 33)],
    ],
)
def test_it_is_the_definition(groups: list[Group], dtype: torch.dtype) -> None:
    qkv = stream(sum(count * length for _, count, length in groups), dtype)
    context = attend(qkv, groups, HEADS)
    assert context.dtype == dtype
    bound = 1e-5 if dtype == torch.float32 else 0.05
    assert (context.double() - by_hand(qkv, groups)).abs().max() < bound


def test_scores_laid_out_a_few_segments_at_a_time_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [Group(0, 7, 12)]
    qkv = stream(84, torch.bfloat16)
    at_once = attend(qkv, groups, HEADS)
    monkeypatch.setattr(segments, "SCORES", 3 * HEADS * 12 * 12)
    assert torch.equal(attend(qkv, groups, HEADS), at_once)
    monkeypatch.setattr(segments, "SCORES", 1)  # now the fused kernel
    assert torch.allclose(attend(qkv, groups, HEADS).float(), at_once.float(), atol=0.05)


def test_tokens_outside_of_the_segments_get_zeros() -> None:
    context = attend(stream(16), [Group(0, 1, 5), Group(5, 2, 3)], HEADS)
    assert torch.equal(context[11:], torch.zeros(5, HEADS * DEPTH))
    assert (context[:11] != 0).all()


def test_a_segment_does_not_see_its_neighbours() -> None:
    groups = [Group(0, 2, 6), Group(12, 1, 4)]
    qkv = stream(16)
    before = attend(qkv, groups, HEADS)
    qkv[6:12] = stream(6, seed=1)
    after = attend(qkv, groups, HEADS)
    assert torch.equal(before[:6], after[:6])
    assert torch.equal(before[12:], after[12:])
    assert not torch.allclose(before[6:12], after[6:12], atol=0.1)

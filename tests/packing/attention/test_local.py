from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers.masking_utils import sliding_window_bidirectional_overlay

from packing.attention import segments
from packing.attention.local import BLOCK, attend
from packing.pack import Group

HEADS, DEPTH = 4, 8


def stream(tokens: int, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(tokens)
    return torch.randn(tokens, 3 * HEADS * DEPTH, generator=generator).to(dtype)


def by_hand(qkv: Tensor, groups: list[Group], reach: int) -> Tensor:
    """The definition with the model library's mask, in float64, one segment at a time."""
    out = torch.zeros(len(qkv), HEADS, DEPTH, dtype=torch.float64)
    q, k, v = qkv.double().view(len(qkv), 3, HEADS, DEPTH).permute(1, 2, 0, 3).unbind()
    mask = sliding_window_bidirectional_overlay(reach)
    for start, count, length in groups:
        position = torch.arange(length)
        seen = mask(0, 0, position[:, None], position[None, :])
        for first in range(start, start + count * length, length):
            at = slice(first, first + length)
            scores = q[:, at] @ k[:, at].transpose(1, 2) / DEPTH**0.5
            out[at] = (scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v[:, at]).transpose(0, 1)
    return out.view(len(qkv), -1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("reach", [0, 1, 8, 64, 200])
@pytest.mark.parametrize(
    "groups",
    [
        [Group(0, 1, 1)],
        [Group(0, 1, 2 * BLOCK + 1), Group(2 * BLOCK + 1, 1, 2 * BLOCK)],
        [Group(0, 2, 300), Group(600, 3, 65), Group(795, 2, 9), Group(813, 4, 1)],
        [Group(0, 1, 640), Group(640, 1, 129)],
    ],
)
def test_it_is_the_definition_with_the_librarys_mask(groups: list[Group], reach: int, dtype: torch.dtype) -> None:
    qkv = stream(sum(count * length for _, count, length in groups), dtype)
    context = attend(qkv, groups, HEADS, reach)
    assert context.dtype == dtype
    bound = 2e-5 if dtype == torch.float32 else 0.05
    assert (context.double() - by_hand(qkv, groups, reach)).abs().max() < bound


@pytest.mark.parametrize("distance", [63, 64, 65])
@pytest.mark.parametrize("query", [0, 70, 127, 128, 200, 255, 256, 299])
def test_a_window_of_128_sees_64_to_either_side(distance: int, query: int) -> None:
    groups = [Group(0, 1, 300)]
    qkv = stream(300)
    before = attend(qkv, groups, HEADS, 64)[query]
    for key in (query - distance, query + distance):
        if 0 <= key < 300:
            changed = qkv.clone()
            changed[key, HEADS * DEPTH :] += 3  # its key and value
            same = torch.equal(attend(changed, groups, HEADS, 64)[query], before)
            assert same == (distance > 64)


def test_no_product_has_more_keys_than_a_block_and_its_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = []
    attention = F.scaled_dot_product_attention

    def counted(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        scores.append(q.shape[2] * k.shape[2])
        return attention(q, k, v, mask)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counted)
    attend(stream(4000), [Group(0, 1, 4000)], HEADS, 64)
    assert max(scores) == BLOCK * (BLOCK + 128)
    assert sum(scores) <= 4000 * (BLOCK + 128)


def test_a_reach_over_everything_is_full_attention() -> None:
    groups = [Group(0, 1, 300), Group(300, 2, 40)]
    qkv = stream(384)
    full = segments.attend(qkv, groups, HEADS)
    assert torch.equal(attend(qkv, groups, HEADS, 299), full)
    almost = attend(qkv, groups, HEADS, 298)  # only the two ends of the longest don't see each other
    assert torch.allclose(almost[1:299], full[1:299], atol=1e-6)
    assert torch.equal(almost[300:], full[300:])
    assert not torch.allclose(almost[0], full[0], atol=1e-5)


def test_tokens_outside_of_the_segments_get_zeros() -> None:
    for groups in ([Group(0, 1, 30)], [Group(0, 1, 20), Group(20, 2, 5)]):
        context = attend(stream(32), groups, HEADS, 6)
        assert torch.equal(context[30:], torch.zeros(2, HEADS * DEPTH))
        assert (context[:30] != 0).all()

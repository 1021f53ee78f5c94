"""Words and labels -> three logits for every word and label: start, end and inside of an entity.

The library's `Scorer` projects a word to `[t; t']` and a label to `[l; l']`, and gives the pair
`W2 relu(W1 [t; l; t' * l'] + b1) + b2`. `W1` times that is the sum of a part of the word and a part of the label, each
computed once, the projections folded in, and a part of the product, the only one computed for every pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from packing.heads.two_layers import ends
from packing.linear import Linear

BLOCK_PAIRS = {"cpu": 512, "cuda": 16384}
"""Pairs of a word and a label scored at once."""

SCORES = 3
"""Start, end, inside."""


class TokenScorer:
    """`Scorer` of a model, laid out anew."""

    def __init__(self, model: Any, dtype: torch.dtype) -> None:
        """Copy the weights of a library's token-level model."""
        scorer = model.scorer
        first, last = ends(scorer.out_mlp)
        of_word, of_label, of_product = first.weight.float().chunk(3, dim=1)  # [4 H, H] each
        self._inner, self._hidden = of_product.shape
        self._words = _folded(of_word, first.bias, scorer.proj_token, dtype)
        self._labels = _folded(of_label, None, scorer.proj_label, dtype)
        self._product = Linear(of_product, None, dtype)
        self._last = Linear.of(dtype, last)

    def label_weights(self, labels: Tensor) -> Tensor:
        """Return each label's part of the inner layer, and its factors of the product, `[C, 4 H + H]`.

        Args:
            labels: Their vectors, contiguous `[C, H]`.
        """
        return self._labels(labels)

    def __call__(
        self, words: Tensor, lengths: Sequence[int], weights: Tensor, labels: Sequence[slice], out: Sequence[Tensor]
    ) -> None:
        """Write each segment's logits.

        Args:
            words: All segments' words end to end, contiguous `[W, H]`.
            lengths: Words of each segment.
            weights: All labels' weights, `[C, 5 H]`.
            labels: Which of them are each segment's.
            out: Where to: contiguous float32 `[W_b, C_b, 3]` for each segment.
        """
        of_words = self._words(words)
        counts = [len(logits[0]) for logits in out]
        most = max(BLOCK_PAIRS[words.device.type], *counts)
        factors = words.new_empty(most, self._hidden)
        inner = words.new_empty(most, self._inner)
        for block in blocks(lengths, counts, most):
            filled = 0
            targets = []
            for segment, at, first, number in block:
                own = of_words[first : first + number, None]
                label = weights[labels[segment]]
                pairs = slice(filled, filled + number * len(label))
                shape = (number, len(label), -1)
                torch.add(own[..., : self._inner], label[:, : self._inner], out=inner[pairs].view(shape))
                torch.mul(own[..., self._inner :], label[:, self._inner :], out=factors[pairs].view(shape))
                targets.append(out[segment][at : at + number].view(-1, SCORES))
                filled = pairs.stop
            scores = self._last(self._product.added_to(inner[:filled], factors[:filled]).relu_())
            for target, own in zip(targets, scores.split_with_sizes([len(target) for target in targets]), strict=True):
                target.copy_(own)


def blocks(lengths: Sequence[int], counts: Sequence[int], most: int) -> Iterator[list[tuple[int, int, int, int]]]:
    """Distribute the words of all segments over blocks of at most `most` pairs with their labels.

    Args:
        lengths: Words of each segment.
        counts: Labels of each segment, at most `most`.
        most: Pairs in a block.

    Yields:
        For each run of words in a block: its segment, its first word in the segment, the same among all segments'
        words, and how many words it has.
    """
    block: list[tuple[int, int, int, int]] = []
    room, start = most, 0
    for segment, (length, count) in enumerate(zip(lengths, counts, strict=True)):
        at = 0
        while at < length:
            number = min(length - at, room // count)
            if number:
                block.append((segment, at, start + at, number))
                at += number
                room -= number * count
            if at < length:
                yield block
                block, room = [], most
        start += length
    if block:
        yield block


def _folded(inner: Tensor, bias: Tensor | None, projection: nn.Linear, dtype: torch.dtype) -> Linear:
    """Return the layer that gives `inner` of the projection's first half, and its second half as it is."""
    (first, second), (first_bias, second_bias) = projection.weight.float().chunk(2), projection.bias.float().chunk(2)
    inner_bias = inner @ first_bias
    if bias is not None:
        inner_bias = inner_bias + bias.float()
    return Linear(torch.cat([inner @ first, second]), torch.cat([inner_bias, second_bias]), dtype)

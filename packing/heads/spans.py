"""Words and labels -> a logit for every span of up to `K` words and every label.

The library's `SpanMarkerV0` gives a span from word `s` to word `e` the vector `W2 relu(W1 [start_s; end_e] + b1) + b2`,
and a label's logit is that vector times the label's. `W1` times a pair is the sum of a part of the start and a part of
the end, each computed once per word; what follows the ReLU is linear, so the label's vector goes into `W2`. No vector
of a span is formed: there is a sum, a ReLU and one product with all labels, for a few words at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from packing.heads.two_layers import TwoLayers, ends
from packing.linear import Linear

BLOCK_WORDS = {"cpu": 32, "cuda": 1024}
"""Words whose spans are formed at once. On a CPU these shall stay in the cache, and the shapes of products be few: for
each new one oneDNN makes code, which takes longer than to run it."""


class SpanScorer:
    """`SpanMarkerV0` and the label projection of a model, laid out anew.

    Attributes:
        width: Most words of a span, `K`.
    """

    def __init__(self, model: Any, dtype: torch.dtype) -> None:
        """Copy the weights of a library's span model."""
        marker = model.span_rep_layer.span_rep_layer
        self.width: int = marker.max_width
        self._start, self._end = TwoLayers(marker.project_start, dtype), TwoLayers(marker.project_end, dtype)
        first, last = ends(marker.out_project)
        starts, ends_ = first.weight.chunk(2, dim=1)
        self._of_start, self._of_end = Linear(starts, first.bias, dtype), Linear(ends_, None, dtype)
        self._labels = TwoLayers(model.prompt_rep_layer, dtype)
        self._fold = Linear(torch.cat([last.weight.t(), last.bias[None]]), None, dtype)

    def label_weights(self, labels: Tensor) -> Tensor:
        """Return the weights, and at the end the bias, that a logit has for each label, `[C, 4 H + 1]`.

        Args:
            labels: Their vectors, contiguous `[C, H]`.
        """
        return self._fold(self._labels(labels))

    def __call__(
        self, words: Tensor, lengths: Sequence[int], weights: Tensor, labels: Sequence[slice], out: Sequence[Tensor]
    ) -> None:
        """Write each segment's logits.

        Args:
            words: All segments' words end to end, contiguous `[W, H]`.
            lengths: Words of each segment.
            weights: All labels' weights, `[C, 4 H + 1]`.
            labels: Which of them are each segment's.
            out: Where to: contiguous float32 `[W_b, K, C_b]` for each segment, zero where nothing is written: spans
                of more words than the segment has. Those past its end otherwise are any numbers.
        """
        starts = self._of_start(self._start(words, "relu"))
        # The last words' spans reach past the pack.
        stops = F.pad(self._of_end(self._end(words, "relu")), (0, 0, 0, self.width - 1))
        first = 0
        for length, of_segment, logits in zip(lengths, labels, out, strict=True):
            self._score(starts[first : first + length], stops[first:], weights[of_segment], logits)
            first += length

    def _score(self, starts: Tensor, stops: Tensor, weights: Tensor, out: Tensor) -> None:
        """Score a segment: its starts `[W, 4 H]`, and its stops, of at least `K - 1` words more."""
        length, inner = starts.shape
        width = min(self.width, length)
        weights, bias = weights[:, :-1], weights[:, -1].float()
        block = BLOCK_WORDS[starts.device.type]
        for at in range(0, length, block):
            words = min(block, length - at)
            spans = starts.new_empty(words, width, inner)
            windows = stops[at:].as_strided((words, width, inner), (inner, inner, 1))
            torch.add(starts[at : at + words, None], windows, out=spans).relu_()
            scores = _product(spans.view(-1, inner), weights).view(words, width, -1)
            torch.add(scores, bias, out=out[at : at + words, :width])


def _product(spans: Tensor, weights: Tensor) -> Tensor:
    """Return `[S, C]`, the product of `[S, N]` and `[C, N]`: labels are few, so a product is fast one way round only.

    Measured for 5 and 25 labels on two cores: the way that isn't taken takes 1.4 to 2 times as long.
    """
    if spans.dtype == torch.bfloat16 and spans.device.type == "cpu":
        return (weights @ spans.t()).t()
    return F.linear(spans, weights)

"""The whole way from an encoder's output to logits, for every kind of model that is packed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from packing.forward import Row
from packing.heads import supported
from packing.heads.labels import LabelWeights
from packing.heads.layout import Layout, Pooling, lay_out
from packing.heads.spans import SpanScorer
from packing.heads.tokens import SCORES, TokenScorer
from packing.heads.words import Words
from packing.pack import Pack

Shape = tuple[int, int, int]


class Head:
    """A model's head on the flat stream, with its own weights.

    Attributes:
        width: Most words of a span; None of a token-level model.
        label_weights: A bi-encoder's labels; None of a uni-encoder, whose labels are in each sequence.
    """

    def __init__(self, gliner: Any, dtype: torch.dtype, encode_labels: Callable[[Pack], Tensor] | None) -> None:
        """See `build`."""
        config, model = gliner.config, gliner.model
        bi_encoder = encode_labels is not None
        self._pooling: Pooling = getattr(config, "subtoken_pooling", "first")
        self._label_offset = 0 if getattr(config, "embed_ent_token", True) else 1
        # A bi-encoder has an LSTM too where the configuration asks for one, but its forward passes it by.
        self._words = Words(model, dtype, pooling=self._pooling, lstm=hasattr(model, "rnn") and not bi_encoder)
        self._score: SpanScorer | TokenScorer
        self.width: int | None = None
        if config.span_mode == "token_level":
            self._score = TokenScorer(model, dtype)
        else:
            self._score = SpanScorer(model, dtype)
            self.width = self._score.width
        self.label_weights: LabelWeights | None = None
        if encode_labels is not None:
            self.label_weights = LabelWeights(gliner, dtype, encode_labels, self._score.label_weights)

    def layout(self, pack: Pack, rows: Sequence[Row]) -> Layout:
        """Return which tokens of a pack are read, given what its segments are made of, in its order."""
        return lay_out(pack, rows, pooling=self._pooling, label_offset=self._label_offset)

    def __call__(self, states: Tensor, layout: Layout, rows: Sequence[Row]) -> tuple[Tensor, list[Shape]]:
        """Score a pack.

        Args:
            states: The encoder's output for what the layout reads, `[R, D]`.
            layout: The pack's.
            rows: What its segments are made of, in its order.

        Returns:
            The segments' logits end to end, float32 `[N]`, and their shapes: `[W, K, C]` of a span model (those of
            spans past the last word are any numbers), `[W, C, 3]` of a token-level one.
        """
        words, labels = self._words(states, layout)
        if self.label_weights is None:
            weights = self._score.label_weights(labels)
            bounds = np.cumsum([0, *layout.label_lengths]).tolist()
            slices = [slice(start, end) for start, end in pairwise(bounds)]
        else:
            weights, slices = self.label_weights([row.prompt for row in rows])
        lengths: list[int] = layout.word_lengths.tolist()
        counts: list[int] = layout.label_lengths.tolist()
        shapes = [self._shape(length, count) for length, count in zip(lengths, counts, strict=True)]
        sizes = [math.prod(shape) for shape in shapes]
        logits = states.new_zeros(sum(sizes), dtype=torch.float32)
        out = [own.view(shape) for own, shape in zip(logits.split_with_sizes(sizes), shapes, strict=True)]
        self._score(words, lengths, weights, slices, out)
        return logits, shapes

    def _shape(self, words: int, labels: int) -> Shape:
        return (words, labels, SCORES) if self.width is None else (words, self.width, labels)


def build(gliner: Any, dtype: torch.dtype, encode_labels: Callable[[Pack], Tensor] | None = None) -> Head:
    """Copy the weights of a model's head.

    Args:
        gliner: The library's object; nothing of it is kept.
        dtype: To compute in, that of the encoder's output.
        encode_labels: A bi-encoder's label encoder: packs of labels -> `[T, D]`; None for a uni-encoder.

    Raises:
        Unpackable: The model is of a kind that isn't covered.
    """
    supported.check(gliner)
    if (encode_labels is not None) != bool(getattr(gliner.config, "labels_encoder", None)):
        raise ValueError("a bi-encoder's labels, and only those, have an encoder of their own")
    return Head(gliner, dtype, encode_labels)

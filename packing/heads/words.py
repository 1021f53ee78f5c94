"""Hidden states of tokens -> vectors of words and of labels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from packing.heads.layout import Layout, Pooling
from packing.heads.lstm import Lstm
from packing.linear import Linear


class Words:
    """What lies between the encoder and the scores: projection, pooling, LSTM; of the tokens read alone."""

    def __init__(self, model: Any, dtype: torch.dtype, *, pooling: Pooling, lstm: bool) -> None:
        """Copy the weights of a library's model.

        Args:
            model: The library's module.
            dtype: To compute in.
            pooling: How a word's sub-tokens become one vector.
            lstm: Whether the model's forward runs its LSTM.
        """
        projection = getattr(model.token_rep_layer, "projection", None)
        self._projection = None if projection is None else Linear.of(dtype, projection)
        self._lstm = Lstm(model.rnn.lstm, dtype) if lstm else None
        self._pooling = pooling

    def __call__(self, states: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Return the words, `[W, H]`, and the labels, `[C, H]`, either with rows of its rounding at the end.

        Args:
            states: The encoder's output for what the layout reads, `[R, D]`.
            layout: Which tokens these are.
        """
        count = layout.texts
        if layout.word_starts is None:
            read = self._projected(states)
            words, labels = read[:count], read[count:]
        else:
            starts = torch.from_numpy(layout.word_starts).long().to(states.device)
            tokens = torch.arange(count, device=states.device)
            if self._pooling == "mean":  # of the projections is the projection of the mean
                words = F.embedding_bag(tokens, states, starts, mode="mean")
                read = self._projected(torch.cat([words, states[count:]]))
                words, labels = read[: len(starts)], read[len(starts) :]
            else:
                read = self._projected(states)
                words, labels = F.embedding_bag(tokens, read, starts, mode="max"), read[count:]
        if self._lstm is not None:
            words = self._lstm(words, layout.word_lengths)
        return words, labels

    def _projected(self, states: Tensor) -> Tensor:
        return states if self._projection is None else self._projection(states)

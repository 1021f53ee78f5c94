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

    def __call__(self, hidden: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Return the words, `[W, H]`, and the labels, `[C, H]`, in the order of the layout.

        Args:
            hidden: The encoder's output, `[T, D]`.
            layout: Where words and labels are.
        """
        tokens = torch.from_numpy(layout.tokens).to(hidden.device)
        labels = hidden[torch.from_numpy(layout.labels).to(hidden.device)]
        if layout.word_starts is None:
            words, labels = self._projected(hidden[tokens], labels)
        else:
            starts = torch.from_numpy(layout.word_starts).to(hidden.device)
            if self._pooling == "mean":  # of the projections is the projection of the mean
                words, labels = self._projected(F.embedding_bag(tokens, hidden, starts, mode="mean"), labels)
            else:
                read, labels = self._projected(hidden[tokens], labels)
                words = F.embedding_bag(torch.arange(len(read), device=read.device), read, starts.long(), mode="max")
        if self._lstm is not None:
            words = self._lstm(words, layout.word_lengths)
        return words, labels

    def _projected(self, words: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        if self._projection is None:
            return words, labels
        both = self._projection(torch.cat([words, labels]))
        return both[: len(words)], both[len(words) :]

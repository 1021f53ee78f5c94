"""The LSTM over each segment's words, without padding."""

from __future__ import annotations

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from packing.tokenizer import IntArray


class Lstm:
    """A copy of a model's LSTM, run over words end to end."""

    def __init__(self, module: nn.LSTM, dtype: torch.dtype) -> None:
        """Copy the module's weights in `dtype`."""
        self._lstm = copy.deepcopy(module).to(dtype).eval().requires_grad_(False)

    def __call__(self, words: Tensor, lengths: IntArray) -> Tensor:
        """Read each segment by itself, in both directions.

        Args:
            words: Vectors of all segments' words end to end, `[W, H]`.
            lengths: Words of each segment, at least 1, in any order, int32 `[B]`.

        Returns:
            `[W, H]`, in the order of `words`.
        """
        places, sizes = by_step(lengths)
        index = torch.from_numpy(places).to(words.device)
        read, _ = self._lstm(PackedSequence(words[index], torch.from_numpy(sizes)))
        out = torch.empty_like(read.data)
        out[index] = read.data
        return out


def by_step(lengths: IntArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Order words as a `PackedSequence` holds them: all segments' first words, then all second ones, and so on.

    Returns:
        Which word is at each place, `[W]`, and how many segments have a word at each step, descending, `[steps]`.
    """
    starts = lengths.cumsum(dtype=np.int64) - lengths
    longest_first = np.argsort(-lengths, kind="stable")
    steps, segments = np.nonzero(np.arange(lengths.max())[:, None] < lengths[longest_first])
    return starts[longest_first][segments] + steps, np.bincount(steps)

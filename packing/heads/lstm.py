"""The LSTM over each segment's words, without padding."""

from __future__ import annotations

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from packing.linear import Linear
from packing.tokenizer import IntArray

Index = NDArray[np.int64]


class Lstm:
    """A model's bidirectional LSTM, run over words end to end.

    On a CPU the two directions make their steps together, each step one batched product, and what the gates have of
    the input is one product for all words; measured on two cores this takes 0.6 of the time of `nn.LSTM` with a
    `PackedSequence`, whose steps are of one direction each. Elsewhere it is `nn.LSTM`, a kernel of its own on a GPU.
    """

    def __init__(self, module: nn.LSTM, dtype: torch.dtype) -> None:
        """Copy the module's weights in `dtype`."""
        self._on_cpu = module.weight_ih_l0.device.type == "cpu"
        self._layers = [_Layer(module, number, dtype) for number in range(module.num_layers)] if self._on_cpu else []
        self._lstm = None if self._on_cpu else copy.deepcopy(module).to(dtype).eval().requires_grad_(False)

    def __call__(self, words: Tensor, lengths: IntArray) -> Tensor:
        """Read each segment by itself, in both directions.

        Args:
            words: Vectors of all segments' words end to end, and any others behind them, contiguous `[W, H]`.
            lengths: Words of each segment, at least 1, in any order, int32 `[B]`.

        Returns:
            `[W, H]`, in the order of `words`; zero for the others.
        """
        forwards, backwards, sizes = by_step(lengths)
        if self._lstm is None:
            index = torch.from_numpy(np.stack([forwards, backwards]))
            for layer in self._layers:
                words = layer(words, index, sizes.tolist())
            return words
        there = torch.from_numpy(forwards).to(words.device)
        read, _ = self._lstm(PackedSequence(words[there], torch.from_numpy(sizes)))
        out = words.new_zeros(len(words), read.data.shape[1])
        out[there] = read.data
        return out


class _Layer:
    """One layer, both directions; `H` is the size of a direction's state.

    A gate is a part of the rows of the weights. The library's order is input, forget, cell, output; here the cell's
    comes last, so that the other three, which are sigmoids, lie together.
    """

    def __init__(self, module: nn.LSTM, number: int, dtype: torch.dtype) -> None:
        names = [f"l{number}", f"l{number}_reverse"]
        with torch.no_grad():
            inputs = torch.cat([_gates(getattr(module, f"weight_ih_{name}")) for name in names])
            states = torch.stack([_gates(getattr(module, f"weight_hh_{name}")) for name in names])
            biases = [
                _gates(getattr(module, f"bias_ih_{name}").float() + getattr(module, f"bias_hh_{name}").float())
                for name in names
            ]
        self._input = Linear(inputs, torch.cat(biases), dtype)
        self._state = states.to(dtype).transpose(1, 2)  # [2, H, 4 H]

    def __call__(self, words: Tensor, index: Tensor, sizes: list[int]) -> Tensor:
        """Return `[W, 2 H]`; `index` `[2, W]` and `sizes` are as `by_step` gives them."""
        size = self._state.shape[1]
        gates = self._input(words).view(len(words), 2, 4 * size)
        gates = torch.stack([gates[index[0], 0], gates[index[1], 1]])
        states = gates.new_empty(2, index.shape[1], size)
        cells = gates.new_zeros(2, sizes[0], size)
        at = before = 0
        for step, count in enumerate(sizes):
            own = gates[:, at : at + count]
            if step:
                own = torch.baddbmm(own, states[:, before : before + count], self._state)
            kept = cells[:, :count]
            three = own[..., : 3 * size].sigmoid_()
            kept.mul_(three[..., size : 2 * size]).addcmul_(three[..., :size], own[..., 3 * size :].tanh_())
            torch.mul(three[..., 2 * size :], kept.tanh(), out=states[:, at : at + count])
            before, at = at, at + count
        out = words.new_zeros(len(words), 2, size)
        for direction in (0, 1):
            out[index[direction], direction] = states[direction]
        return out.view(len(words), 2 * size)


def by_step(lengths: IntArray) -> tuple[Index, Index, Index]:
    """Order words as a `PackedSequence` holds them: all segments' first words, then all second ones, and so on.

    Returns:
        Which word is at each place, `[W]`, when segments are read from their beginnings; the same when they are read
        from their ends; and how many segments have a word at each step, descending, `[steps]`.
    """
    starts = lengths.cumsum(dtype=np.int64) - lengths
    longest_first = np.argsort(-lengths, kind="stable")
    steps, segments = np.nonzero(np.arange(lengths.max())[:, None] < lengths[longest_first])
    chosen = longest_first[segments]
    return starts[chosen] + steps, starts[chosen] + lengths[chosen] - 1 - steps, np.bincount(steps)


def _gates(weights: Tensor) -> Tensor:
    """Return weights `[4 H, ...]` with the cell's gate last."""
    first, forget, cell, last = weights.detach().chunk(4)
    return torch.cat([first, forget, last, cell])

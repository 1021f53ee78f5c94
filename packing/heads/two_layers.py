"""The library's projection layer: wide, ReLU, narrow."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from packing.linear import Activation, Linear


class TwoLayers:
    """`narrow(relu(wide(x)))`."""

    def __init__(self, module: nn.Sequential, dtype: torch.dtype) -> None:
        """Copy the weights of a linear layer, a ReLU, dropout and a linear layer."""
        first, last = ends(module)
        self._wide, self._narrow = Linear.of(dtype, first), Linear.of(dtype, last)

    def __call__(self, x: Tensor, activation: Activation = "none") -> Tensor:
        """Return `[M, N]` of a contiguous `[M, K]`, with another activation at the end.

        A row of `x` that holds a number that is NaN or infinite gives NaN.
        """
        y = self._narrow(self._wide(x, "relu"), activation)
        # oneDNN's ReLU gives 0 for NaN.
        if x.device.type == "cpu" and not math.isfinite(x.sum().item()):
            y[~x.isfinite().all(1)] = math.nan
        return y


def ends(module: nn.Sequential) -> tuple[nn.Linear, nn.Linear]:
    """Return a `Sequential`'s first and last layer, both linear."""
    first, last = module[0], module[-1]
    if not isinstance(first, nn.Linear) or not isinstance(last, nn.Linear):
        raise TypeError(f"a linear layer at each end is expected, not {module}")
    return first, last

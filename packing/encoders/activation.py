"""The activations between the two linear layers of a feed-forward block."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from torch import Tensor
from torch.nn import functional as F

from packing.encoders.unpackable import Unpackable
from packing.linear import Linear

_TANH_GELU = partial(F.gelu, approximate="tanh")

_OTHERS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "gelu_fast": _TANH_GELU,
    "gelu_new": _TANH_GELU,
    "gelu_pytorch_tanh": _TANH_GELU,
    "silu": F.silu,
    "swish": F.silu,
}


def activated(name: str) -> Callable[[Linear, Tensor], Tensor]:
    """Return a function that gives the activation of a linear layer's output, `[M, N]` of `[M, K]`.

    Args:
        name: As configurations name it.

    Raises:
        Unpackable: It isn't one of those known.
    """
    if name == "gelu":
        return lambda linear, x: linear(x, "gelu")
    if name == "relu":
        return lambda linear, x: linear(x, "relu")
    if name in _OTHERS:
        other = _OTHERS[name]
        return lambda linear, x: other(linear(x))
    raise Unpackable(f"the activation {name} isn't packed")

"""The layer norm of the flat encoders."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True, slots=True)
class Norm:
    """A layer norm's weights, `[D]` each."""

    weight: Tensor
    bias: Tensor | None
    epsilon: float

    @classmethod
    def of(cls, module: nn.LayerNorm, dtype: torch.dtype) -> Norm:
        """Copy a module's weights in `dtype`."""
        bias: Tensor | None = module.bias  # torch's own annotation leaves out that there may be none
        return cls(
            weight=module.weight.detach().to(dtype),
            bias=None if bias is None else bias.detach().to(dtype),
            epsilon=module.eps,
        )

    def __call__(self, x: Tensor) -> Tensor:
        """Return the normalised rows of `[M, D]`."""
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)

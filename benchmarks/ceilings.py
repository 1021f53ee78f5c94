"""The least that an encoder can take: the products of its linear layers and of its attention, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional as F

from packing.linear import Linear
from packing.pack import Pack

Products = Callable[[], None]

_TILE: Final = 96
_TILED_FROM: Final = 192
"""Longer segments meet the relative positions in tiles of so many tokens, as fewer products then are for nothing."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Of an encoder: `relative` is whether positions have products of their own, as in DeBERTa."""

    layers: int
    hidden: int
    wide: int
    heads: int
    relative: bool


def linear_products(packs: Sequence[Pack], shape: Shape, dtype: torch.dtype, *, prepacked: bool = False) -> Products:
    """Return what runs the linear layers' products for packs, each layer with weights of its own.

    Query, key and value are one product.

    Args:
        packs: What the encoder reads.
        shape: Of the encoder.
        dtype: Of weights and inputs.
        prepacked: By `packing.linear.Linear`, whose weights are laid out for the product; else by torch's own.
    """
    sizes = [
        (shape.hidden, 3 * shape.hidden),
        (shape.hidden, shape.hidden),
        (shape.hidden, shape.wide),
        (shape.wide, shape.hidden),
    ]
    layers = [_linear(i, o, dtype, prepacked) for _ in range(shape.layers) for i, o in sizes]
    inputs = {
        (len(pack.ids), width): torch.randn(len(pack.ids), width, dtype=dtype)
        for pack in packs
        for width in (shape.hidden, shape.wide)
    }

    def run() -> None:
        for pack in packs:
            for width, product in layers:
                product(inputs[len(pack.ids), width])

    return torch.inference_mode()(run)


def attention_products(packs: Sequence[Pack], shape: Shape, dtype: torch.dtype) -> Products:
    """Return what runs attention's products for packs, layer by layer.

    Queries with keys, weights with values; where positions are relative, also queries with the positions' keys and
    keys with the positions' queries.
    """
    depth = shape.hidden // shape.heads
    table = torch.randn(shape.heads, depth, 2 * max(pack.lengths[0] for pack in packs) - 1, dtype=dtype)
    groups = [
        [torch.randn(count * shape.heads, length, depth, dtype=dtype) for _, count, length in pack.groups]
        for pack in packs
    ]

    def run() -> None:
        for segments in groups:
            for _ in range(shape.layers):
                for x in segments:
                    torch.bmm(torch.bmm(x, x.transpose(1, 2)), x)
                    if shape.relative:
                        _positions(x, table, shape.heads)
                        _positions(x, table, shape.heads)

    return torch.inference_mode()(run)


def _positions(x: Tensor, table: Tensor, heads: int) -> None:
    """Multiply `[n * H, L, D]` with the relative positions that its tokens have, `[H, D, 2 * L - 1]` for all."""
    length, depth = x.shape[1:]
    if length < _TILED_FROM:
        torch.bmm(x.view(heads, -1, depth), table[:, :, : 2 * length - 1])
        return
    for one in x.view(-1, heads, length, depth):
        for at in range(0, length, _TILE):
            tile = one[:, at : at + _TILE]
            torch.bmm(tile, table[:, :, : length + tile.shape[1] - 1])


def _linear(inputs: int, outputs: int, dtype: torch.dtype, prepacked: bool) -> tuple[int, Callable[[Tensor], Tensor]]:
    weight, bias = torch.randn(outputs, inputs), torch.randn(outputs)
    if prepacked:
        return inputs, Linear(weight, bias, dtype)
    plain_weight, plain_bias = weight.to(dtype), bias.to(dtype)
    return inputs, lambda x: F.linear(x, plain_weight, plain_bias)

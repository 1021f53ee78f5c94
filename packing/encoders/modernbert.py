"""ModernBERT and ettin on the flat stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from packing.attention import local, segments
from packing.encoders.activation import activated
from packing.encoders.norm import Norm
from packing.encoders.unpackable import Unpackable
from packing.linear import Linear
from packing.pack import Pack

ROTARY: Final = ("default", "linear", "yarn")
"""Kinds of rotary positions whose frequencies are fixed once; others depend on the length of the sequence."""


@dataclass(frozen=True, slots=True)
class Rotary:
    """One kind of layer's rotary positions.

    Attributes:
        frequencies: Radians per position, of each pair of features, float32 `[D / 2]`.
        scale: What queries and keys are multiplied by.
    """

    frequencies: Tensor
    scale: float

    def turns(self, positions: Tensor) -> Tensor:
        """Return each position's turn of each pair, complex64 `[T, 1, D / 2]`."""
        angles = positions[:, None].float() * self.frequencies
        return torch.polar(torch.full_like(angles, self.scale), angles)[:, None]


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's weights; the first has no norm before its attention."""

    kind: str
    attention_norm: Norm | None
    qkv: Linear
    attention_out: Linear
    norm: Norm
    wide: Linear
    gate: Linear
    narrow: Linear


class ModernBertEncoder:
    """The model's own weights, laid out for the flat stream."""

    def __init__(self, model: Any, dtype: torch.dtype) -> None:
        """Lay out the weights of a `ModernBertModel`."""
        config, embeddings = model.config, model.embeddings
        self._activated = activated(config.hidden_activation)
        self._heads = int(config.num_attention_heads)
        self._reach = int(config.sliding_window)
        self._dtype = dtype
        self._rotary = {kind: _rotary(model.rotary_emb, kind) for kind in sorted(set(config.layer_types))}
        self._words = embeddings.tok_embeddings.weight.detach().to(dtype).contiguous()
        self._norm = Norm.of(embeddings.norm, torch.float32)
        self._layers = [_layer(layer, self._heads, dtype) for layer in model.layers]
        self._last_norm = Norm.of(model.final_norm, dtype)

    def __call__(self, pack: Pack, read: Tensor | None = None) -> Tensor:
        """See `Encoder`."""
        turns = {kind: rotary.turns(pack.position_ids) for kind, rotary in self._rotary.items()}
        states = self._norm(F.embedding(pack.ids, self._words).float()).to(self._dtype)
        for layer in self._layers:
            normed = states if layer.attention_norm is None else layer.attention_norm(states)
            qkv = layer.qkv(normed)
            turn(qkv, turns[layer.kind], self._heads)
            if layer.kind == "sliding_attention":
                context = local.attend(qkv, pack.groups, self._heads, self._reach)
            else:
                context = segments.attend(qkv, pack.groups, self._heads)
            if layer is self._layers[-1] and read is not None:
                states, context = states[read], context[read]
            states = layer.attention_out.added_to(states, context)
            normed = layer.norm(states)
            states = layer.narrow.added_to(states, self._activated(layer.wide, normed).mul_(layer.gate(normed)))
        return self._last_norm(states)


def build(model: Any, dtype: torch.dtype) -> ModernBertEncoder:
    """Lay out a `ModernBertModel`.

    Raises:
        Unpackable: Its positions, its activation or a layer's kind isn't covered.
    """
    return ModernBertEncoder(model, dtype)


def turn(qkv: Tensor, turns: Tensor, heads: int) -> None:
    """Turn queries and keys by their positions, in place.

    A pair of neighbouring features is a complex number here, so a turn is one product (Su et al. 2021, "RoFormer",
    section 3.2).

    Args:
        qkv: Queries, keys and values side by side, `[T, 3 * H * D]`.
        turns: complex64 `[T, 1, D / 2]`.
        heads: `H`.
    """
    total, width = qkv.shape
    turned = qkv[:, : width // 3 * 2]
    pairs = turned.view(total, 2 * heads, -1, 2)
    if qkv.dtype == torch.float32:
        torch.view_as_complex(pairs).mul_(turns)
    else:
        pairs.copy_(torch.view_as_real(torch.view_as_complex(pairs.float()).mul_(turns)))


def _rotary(module: Any, kind: str) -> Rotary:
    if kind not in ("full_attention", "sliding_attention"):
        raise Unpackable(f"layers of the kind {kind} aren't packed")
    if module.rope_type[kind] not in ROTARY:
        raise Unpackable(f"rotary positions of the type {module.rope_type[kind]} aren't packed")
    frequencies = getattr(module, f"{kind}_inv_freq").detach().float().clone()
    return Rotary(frequencies, float(getattr(module, f"{kind}_attention_scaling")))


def _layer(module: Any, heads: int, dtype: torch.dtype) -> Layer:
    first = isinstance(module.attn_norm, nn.Identity)
    wide, gate = _halves(module.mlp.Wi)
    return Layer(
        kind=module.attention_type,
        attention_norm=None if first else Norm.of(module.attn_norm, dtype),
        qkv=_paired(module.attn.Wqkv, heads, dtype),
        attention_out=Linear.of(dtype, module.attn.Wo),
        norm=Norm.of(module.mlp_norm, dtype),
        wide=Linear(*wide, dtype),
        gate=Linear(*gate, dtype),
        narrow=Linear.of(dtype, module.mlp.Wo),
    )


def _halves(linear: nn.Linear) -> list[tuple[Tensor, Tensor | None]]:
    weights = linear.weight.detach().chunk(2)
    biases = (None, None) if linear.bias is None else linear.bias.detach().chunk(2)
    return list(zip(weights, biases, strict=True))


def _paired(linear: nn.Linear, heads: int, dtype: torch.dtype) -> Linear:
    """Return the projection with those features of queries and keys next to each other that turn together.

    In the module they are half a head apart. Their products don't depend on the order, as it is the same in both.
    """
    rows = torch.arange(linear.out_features, device=linear.weight.device)
    width = linear.out_features // 3
    rows[: 2 * width] = rows[: 2 * width].view(2 * heads, 2, -1).transpose(1, 2).reshape(-1)
    bias = None if linear.bias is None else linear.bias.detach()[rows]
    return Linear(linear.weight.detach()[rows], bias, dtype)

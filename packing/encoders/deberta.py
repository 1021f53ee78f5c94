"""DeBERTa-v2 and v3 on the flat stream."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers.activations import ACT2FN

from packing.attention.disentangled import PositionTables, attend
from packing.encoders.activation import activated
from packing.encoders.norm import Norm
from packing.encoders.unpackable import Unpackable
from packing.linear import Linear
from packing.pack import Pack

Relative = tuple[Tensor, Callable[[int], Tensor]]
"""Relative positions' embeddings, and `PositionTables.buckets`; all layers share them."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's weights."""

    qkv: Linear
    tables: PositionTables | None
    attention_out: Linear
    attention_norm: Norm
    wide: Linear
    narrow: Linear
    norm: Norm


@dataclass(frozen=True, slots=True)
class Convolution:
    """The convolution that some models add after their first layer."""

    weight: Tensor
    bias: Tensor
    groups: int
    activation: Callable[[Tensor], Tensor]
    norm: Norm

    def __call__(self, embeddings: Tensor, states: Tensor, pack: Pack) -> Tensor:
        """Return `norm(states + activation(conv(embeddings)))`; no segment sees another."""
        reach = self.weight.shape[2] // 2
        # As many rows of zeros between segments as the kernel reaches, then one convolution over all.
        segment = torch.repeat_interleave(
            torch.arange(len(pack.lengths), device=embeddings.device), torch.tensor(pack.lengths).to(embeddings.device)
        )
        place = torch.arange(pack.tokens, device=embeddings.device) + (segment + 1) * reach
        spread = embeddings.new_zeros(pack.tokens + (len(pack.lengths) + 1) * reach, embeddings.shape[1])
        spread[place] = embeddings[: pack.tokens]
        convolved = F.conv1d(spread.t()[None], self.weight, self.bias, padding=reach, groups=self.groups)[0].t()
        out = states.clone()
        out[: pack.tokens] += self.activation(convolved[place])
        return self.norm(out)


class DebertaEncoder:
    """The model's own weights, laid out for the flat stream."""

    def __init__(self, model: Any, dtype: torch.dtype) -> None:
        """Lay out the weights of a `DebertaV2Model`."""
        config, embeddings, encoder = model.config, model.embeddings, model.encoder
        self._heads = int(config.num_attention_heads)
        self._dtype = dtype
        self._words = _held(embeddings.word_embeddings.weight, dtype)
        absolute = embeddings.position_embeddings if embeddings.position_biased_input else None
        self._positions = None if absolute is None else _held(absolute.weight, dtype)
        kinds = embeddings.token_type_embeddings
        self._kind = None if kinds is None else _held(kinds.weight[0], dtype)
        projection = embeddings.embed_proj
        self._projection = None if projection is None else Linear.of(dtype, projection)
        self._norm = Norm.of(embeddings.LayerNorm, torch.float32)
        self._activated = activated(config.hidden_act)
        relative = encoder.get_rel_embedding()
        shared = None if relative is None else (relative, _buckets(encoder.layer[0].attention.self))
        self._layers = [_layer(layer, shared, dtype) for layer in encoder.layer]
        self._convolution = None if encoder.conv is None else _convolution(encoder.conv, dtype)

    def __call__(self, pack: Pack, read: Tensor | None = None) -> Tensor:
        """See `Encoder`."""
        states = embeddings = self._embed(pack)
        for number, layer in enumerate(self._layers):
            context = attend(layer.qkv(states), pack.groups, self._heads, layer.tables)
            if layer is self._layers[-1] and read is not None:
                states, context = states[read], context[read]
            states = layer.attention_norm(layer.attention_out.added_to(states, context))
            states = layer.norm(layer.narrow.added_to(states, self._activated(layer.wide, states)))
            if number == 0 and self._convolution is not None:
                states = self._convolution(embeddings, states, pack)
        return states

    def _embed(self, pack: Pack) -> Tensor:
        states = F.embedding(pack.ids, self._words)
        if self._positions is not None:
            states = states + F.embedding(pack.position_ids, self._positions)
        if self._kind is not None:
            states = states + self._kind
        if self._projection is not None:
            states = self._projection(states)
        return self._norm(states.float()).to(self._dtype)


def build(model: Any, dtype: torch.dtype) -> DebertaEncoder:
    """Lay out a `DebertaV2Model`.

    Raises:
        Unpackable: Its activation isn't covered, or a convolution follows its last layer.
    """
    if model.encoder.conv is not None and len(model.encoder.layer) == 1:
        raise Unpackable("a convolution after the last layer isn't packed")
    return DebertaEncoder(model, dtype)


def _layer(module: Any, relative: Relative | None, dtype: torch.dtype) -> Layer:
    attention, output = module.attention.self, module.attention.output
    terms = 1 + ("c2p" in attention.pos_att_type) + ("p2c" in attention.pos_att_type)
    scale = 1 / math.sqrt(attention.attention_head_size * terms)
    query, key, value = attention.query_proj, attention.key_proj, attention.value_proj
    return Layer(
        qkv=Linear(
            torch.cat([query.weight * scale, key.weight, value.weight]),
            torch.cat([query.bias * scale, key.bias, value.bias]),
            dtype,
        ),
        tables=None if relative is None else _tables(attention, *relative, scale, dtype),
        attention_out=Linear.of(dtype, output.dense),
        attention_norm=Norm.of(output.LayerNorm, dtype),
        wide=Linear.of(dtype, module.intermediate.dense),
        narrow=Linear.of(dtype, module.output.dense),
        norm=Norm.of(module.output.LayerNorm, dtype),
    )


def _tables(
    attention: Any, relative: Tensor, buckets: Callable[[int], Tensor], scale: float, dtype: torch.dtype
) -> PositionTables:
    """Project the relative positions, once instead of in every forward."""
    span = int(attention.pos_ebd_size)
    relative = relative.detach()[: 2 * span]
    keys = queries = None
    if "c2p" in attention.pos_att_type:
        project = attention.key_proj if attention.share_att_key else attention.pos_key_proj
        keys = _by_head(project(relative), attention.num_attention_heads, dtype)
    if "p2c" in attention.pos_att_type:
        project = attention.query_proj if attention.share_att_key else attention.pos_query_proj
        queries = _by_head(project(relative) * scale, attention.num_attention_heads, dtype)
    return PositionTables(keys, queries, buckets)


def _buckets(attention: Any) -> Callable[[int], Tensor]:
    """Return `PositionTables.buckets`; it remembers the lengths last met."""
    span, device = int(attention.pos_ebd_size), attention.query_proj.weight.device
    count, farthest = int(attention.position_buckets), int(attention.max_relative_positions)

    @lru_cache(maxsize=64)
    def buckets(length: int) -> Tensor:
        distances = torch.arange(length - 1, -length, -1)
        near = log_bucket(distances, count, farthest) if count > 0 else distances
        return (near + span).clamp(0, 2 * span - 1).to(device)

    return buckets


def log_bucket(distances: Tensor, buckets: int, farthest: int) -> Tensor:
    """Return the buckets of distances: exact up to half of `buckets`, from there on by their logarithm.

    Bucket `buckets - 1` ends at the distance `farthest - 1`; the formula goes on past it (DeBERTa-v2's source,
    `make_log_bucket_position`, whose float32 arithmetic decides at the edges).

    Args:
        distances: Query's minus key's position, int64 `[N]`.
        buckets: How many there are for one sign.
        farthest: The distance after the last bucket.

    Returns:
        int64 `[N]`, with the sign of the distance.
    """
    exact = buckets // 2
    size = distances.abs().clamp(min=exact).to(torch.float32)
    steps = torch.log(size / exact) / torch.log(torch.tensor((farthest - 1) / exact)) * (exact - 1)
    far = (torch.ceil(steps) + exact).to(torch.int64) * distances.sign()
    return torch.where(distances.abs() <= exact, distances, far)


def _by_head(projected: Tensor, heads: int, dtype: torch.dtype) -> Tensor:
    """Return `[P, H, D]` of `[P, H * D]`."""
    return projected.detach().to(dtype).view(len(projected), heads, -1)


def _convolution(module: Any, dtype: torch.dtype) -> Convolution:
    return Convolution(
        weight=_held(module.conv.weight, dtype),
        bias=_held(module.conv.bias, dtype),
        groups=module.conv.groups,
        activation=ACT2FN[module.conv_act],
        norm=Norm.of(module.LayerNorm, dtype),
    )


def _held(weight: Tensor, dtype: torch.dtype) -> Tensor:
    return weight.detach().to(dtype).contiguous()

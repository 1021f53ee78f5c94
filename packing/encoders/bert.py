"""BERT on the flat stream, and MiniLM, which is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from packing.attention.segments import attend
from packing.encoders.activation import activated
from packing.encoders.norm import Norm
from packing.encoders.unpackable import Unpackable
from packing.linear import Linear
from packing.pack import Pack


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's weights."""

    qkv: Linear
    attention_out: Linear
    attention_norm: Norm
    wide: Linear
    narrow: Linear
    norm: Norm


class BertEncoder:
    """The model's own weights, laid out for the flat stream."""

    def __init__(self, model: Any, dtype: torch.dtype, first_position: int = 0) -> None:
        """Lay out the weights of a `BertModel`, or of one that differs in where positions start.

        Args:
            model: The `transformers` module.
            dtype: Of the weights and the hidden states.
            first_position: Row of the position table that a segment's first token has.

        Raises:
            Unpackable: It is a decoder, or something in its configuration isn't covered.
        """
        config, embeddings = model.config, model.embeddings
        if config.is_decoder or config.add_cross_attention:
            raise Unpackable("an encoder set up as a decoder isn't packed")
        kind = getattr(config, "position_embedding_type", None) or "absolute"
        if kind != "absolute":
            raise Unpackable(f"position_embedding_type {kind} isn't packed")
        self._activated = activated(config.hidden_act)
        self._heads = int(config.num_attention_heads)
        self._dtype = dtype
        self._words = embeddings.word_embeddings.weight.detach().to(dtype).contiguous()
        # all tokens are of type 0, whose row is the same everywhere: it is added to the positions' once
        positions = embeddings.position_embeddings.weight.detach()[first_position:]
        self._positions = positions.float() + embeddings.token_type_embeddings.weight.detach()[0].float()
        self._norm = Norm.of(embeddings.LayerNorm, torch.float32)
        self._layers = [_layer(layer, dtype) for layer in model.encoder.layer]

    def __call__(self, pack: Pack, read: Tensor | None = None) -> Tensor:
        """See `Encoder`."""
        embeddings = F.embedding(pack.ids, self._words).float() + F.embedding(pack.position_ids, self._positions)
        states = self._norm(embeddings).to(self._dtype)
        for layer in self._layers:
            context = attend(layer.qkv(states), pack.groups, self._heads)
            if layer is self._layers[-1] and read is not None:
                states, context = states[read], context[read]
            states = layer.attention_norm(layer.attention_out.added_to(states, context))
            states = layer.norm(layer.narrow.added_to(states, self._activated(layer.wide, states)))
        return states


def build(model: Any, dtype: torch.dtype) -> BertEncoder:
    """Lay out a `BertModel`."""
    return BertEncoder(model, dtype)


def _layer(module: Any, dtype: torch.dtype) -> Layer:
    attention, output = module.attention.self, module.attention.output
    return Layer(
        qkv=Linear.of(dtype, attention.query, attention.key, attention.value),
        attention_out=Linear.of(dtype, output.dense),
        attention_norm=Norm.of(output.LayerNorm, dtype),
        wide=Linear.of(dtype, module.intermediate.dense),
        narrow=Linear.of(dtype, module.output.dense),
        norm=Norm.of(module.output.LayerNorm, dtype),
    )

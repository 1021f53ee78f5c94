"""Encoders on the flat stream, and which model has which."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

from packing.encoders.unpackable import Unpackable

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from packing.pack import Pack

PACKED: Final = {
    "bert": "packing.encoders.bert",
    "camembert": "packing.encoders.roberta",
    "deberta-v2": "packing.encoders.deberta",
    "modernbert": "packing.encoders.modernbert",
    "roberta": "packing.encoders.roberta",
    "xlm-roberta": "packing.encoders.roberta",
}
"""By a model's type, the module whose `build` lays it out for the flat stream. DeBERTa-v3 is a `deberta-v2`."""


class Encoder(Protocol):
    """Read a pack."""

    def __call__(self, pack: Pack) -> Tensor:
        """Return the hidden states, `[T, D]`; those of the tokens that round the pack up are any finite numbers."""


def flat_encoder(model: Any, dtype: torch.dtype) -> Encoder:
    """Lay out a `transformers` encoder for the flat stream.

    Raises:
        Unpackable: Its type, or something in its configuration, isn't covered.
    """
    kind = model.config.model_type
    if kind not in PACKED:
        raise Unpackable(f"encoders of type {kind} aren't packed")
    encoder: Encoder = import_module(PACKED[kind]).build(model, dtype)
    return encoder

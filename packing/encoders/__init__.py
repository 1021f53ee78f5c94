"""Encoders on the flat stream, and which model has which."""

from __future__ import annotations

import copy
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

    def __call__(self, pack: Pack, read: Tensor | None = None) -> Tensor:
        """Return the last layer's hidden states.

        Args:
            pack: What to encode.
            read: The tokens whose states are asked for, int32 `[R]`; for the others the last layer ends with its
                attention. None: all, `[T]`.

        Returns:
            `[R, D]`; the states of tokens that round the pack up are any finite numbers.
        """


def flat_encoder(model: Any, dtype: torch.dtype) -> tuple[Encoder, str | None]:
    """Lay out a `transformers` encoder for the flat stream, or else run it on padded batches of like length.

    Args:
        model: The module; what is returned may hold its weights, and leaves them as they are.
        dtype: Of the weights.

    Returns:
        The encoder, and why it isn't packed; None if it is.
    """
    kind = model.config.model_type
    if kind in PACKED:
        try:
            return import_module(PACKED[kind]).build(model, dtype), None
        except Unpackable as reason:
            why = str(reason)
    else:
        why = f"encoders of type {kind} aren't packed"
    from packing.encoders.padded import PaddedEncoder

    return PaddedEncoder(model if model.dtype == dtype else copy.deepcopy(model), dtype), why

"""Which models' heads run without padding: a closed list by configuration field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from packing.encoders.unpackable import Unpackable


@dataclass(frozen=True, slots=True)
class Field:
    """A field of `gliner_config.json` that says what the head computes.

    Attributes:
        name: The field.
        default: Its value where a configuration lacks it.
        packed: Values whose models run without padding; None for any.
        meaning: What it says.
    """

    name: str
    default: object
    packed: tuple[object, ...] | None
    meaning: str


FIELDS: Final = (
    Field("span_mode", "markerV0", ("markerV0", "token_level"), "how spans are scored"),
    Field("subtoken_pooling", "first", ("first", "last", "mean", "max"), "how a word's sub-tokens become one vector"),
    Field("embed_ent_token", True, (True, False), "whether a label's marker or its first sub-token speaks for it"),
    Field("num_rnn_layers", 1, None, "LSTM layers over the words; a bi-encoder's aren't run"),
    Field("represent_spans", False, (False, None), "a vector for every span of a token-level model"),
    Field("fuse_layers", False, (False, None), "all layers of the encoder are read"),
    Field("post_fusion_schema", "", ("", None), "attention between words and labels after the encoder"),
    Field("span_encoder_config", None, (None,), "an encoder over the words before spans are formed"),
    Field("precomputed_prompts_mode", None, (None, False), "label vectors kept with the model"),
    Field("labels_decoder", None, (None,), "labels are generated"),
    Field("relations_layer", None, (None,), "relations between entities"),
)

MODELS: Final = ("UniEncoderSpanModel", "UniEncoderTokenModel", "BiEncoderSpanModel", "BiEncoderTokenModel")
"""The library's classes of models that are packed."""

MODULES: Final = ("token_rep_layer", "rnn", "span_rep_layer", "prompt_rep_layer", "scorer")
"""The modules that such a model may have."""


def check(gliner: Any) -> None:
    """Look whether a library's model is covered by the list.

    Raises:
        Unpackable: It isn't; the message says why.
    """
    for field in FIELDS:
        value = getattr(gliner.config, field.name, field.default)
        if field.packed is not None and not any(value is one or value == one for one in field.packed):
            raise Unpackable(f"{field.name} is {_short(value)}, and not {_listed(field.packed)}")
    kind = type(gliner.model).__name__
    if kind not in MODELS:
        raise Unpackable(f"the library's {kind} isn't known")
    if unknown := [name for name, _ in gliner.model.named_children() if name not in MODULES]:
        raise Unpackable(f"the model's {unknown[0]} isn't known")


def _listed(values: tuple[object, ...]) -> str:
    return " or ".join(map(_short, values))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else type(value).__name__

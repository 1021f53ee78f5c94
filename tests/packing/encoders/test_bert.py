from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoModel

from packing.encoders import bert, roberta
from packing.encoders.unpackable import Unpackable
from packing.pack import Group, Pack, pack
from tests.packing import tiny_models
from tests.packing.encoders import parity
from tests.packing.encoders.parity import RAGGED, assert_no_segment_sees_another, largest_difference, scaled

TOLERANCE = 1e-5

VARIANTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "BERT": ("bert", {}),
    "one token type": ("bert", {"type_vocab_size": 1}),
    "relu": ("bert", {"hidden_act": "relu"}),
    "gelu_new": ("bert", {"hidden_act": "gelu_new"}),
    "gelu_fast": ("bert", {"hidden_act": "gelu_fast"}),
    "gelu_pytorch_tanh": ("bert", {"hidden_act": "gelu_pytorch_tanh"}),
    "silu": ("bert", {"hidden_act": "silu"}),
    "another epsilon": ("bert", {"layer_norm_eps": 0.1}),
    "RoBERTa": ("roberta", {}),
    "XLM-R": ("xlm-roberta", {}),
    "CamemBERT": ("camembert", {}),
    "positions after a padding of 3": ("roberta", {"pad_token_id": 3}),
}


def made(variant: str, **changes: Any) -> Any:
    family, fields = VARIANTS[variant]
    torch.manual_seed(1)
    config = tiny_models.encoder_config(family, 200, **({"num_hidden_layers": 3} | fields | changes))
    return scaled(AutoModel.from_config(config))  # type: ignore[no-untyped-call]


def build(model: Any, dtype: torch.dtype = torch.float32) -> bert.BertEncoder:
    made = bert.build if model.config.model_type == "bert" else roberta.build
    return made(model, dtype)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_segment_is_read_as_if_alone(variant: str) -> None:
    model = made(variant)
    assert largest_difference(model, build(model), RAGGED) < TOLERANCE


@pytest.mark.parametrize("variant", ["BERT", "RoBERTa"])
@pytest.mark.parametrize("lengths", [[1], [16], [5, 5, 5, 5], [512, 512, 511], [600, 600, 3]])
def test_single_equal_and_long_segments(variant: str, lengths: list[int]) -> None:
    model = made(variant, max_position_embeddings=640)
    assert largest_difference(model, build(model), lengths) < TOLERANCE


def test_the_type_of_the_tokens_is_read() -> None:
    model = made("BERT")
    encoder = build(model)
    model.embeddings.token_type_embeddings.weight.data[0] += 1 + torch.arange(32)
    assert largest_difference(model, encoder, [9]) > 1000 * TOLERANCE


@pytest.mark.parametrize(("dtype", "bound"), [(torch.bfloat16, 0.3), (torch.float16, 0.05)])
def test_half_precision_is_near_the_modules_own(dtype: torch.dtype, bound: float) -> None:
    model = made("BERT")
    encoder = build(model, dtype)
    assert encoder(pack([np.full(5, 7, np.int32)], [0])).dtype == dtype
    assert largest_difference(model, encoder, RAGGED) < bound
    assert largest_difference(model.to(dtype), encoder, RAGGED) < bound


def test_it_keeps_nothing_of_the_module_alive_but_tensors() -> None:
    held = vars(build(made("BERT"))).values()
    assert not any(isinstance(value, nn.Module) for value in held)


def test_no_segment_sees_another() -> None:
    assert_no_segment_sees_another(build(made("BERT")))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"position_embedding_type": "relative_key"}, "position_embedding_type relative_key"),
        ({"is_decoder": True}, "decoder"),
        ({"is_decoder": True, "add_cross_attention": True}, "decoder"),
        ({"hidden_act": "mish"}, "activation mish"),
    ],
)
@pytest.mark.parametrize("variant", ["BERT", "RoBERTa"])
def test_what_is_not_covered_is_refused_by_name(variant: str, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unpackable, match=reason):
        build(made(variant, **fields))


def _mutants() -> dict[str, Callable[[pytest.MonkeyPatch, bert.BertEncoder], None]]:
    def off_by_one(_: pytest.MonkeyPatch, encoder: bert.BertEncoder) -> None:
        encoder._positions = encoder._positions[1:]

    def positions_go_on(patch: pytest.MonkeyPatch, _: bert.BertEncoder) -> None:
        def mutant(*given: Any) -> Pack:
            made = pack(*given)
            return replace(made, position_ids=torch.arange(len(made.ids)))

        patch.setattr(parity, "pack", mutant)

    def without_segments(patch: pytest.MonkeyPatch, _: bert.BertEncoder) -> None:
        patch.setattr(Pack, "groups", property(lambda self: (Group(0, 1, self.tokens),)))

    return {
        "positions off by one": off_by_one,
        "positions go on": positions_go_on,
        "no segment boundary": without_segments,
    }


@pytest.mark.parametrize("variant", ["BERT", "RoBERTa"])
@pytest.mark.parametrize("mutant", _mutants())
def test_the_comparison_finds_a_fault(variant: str, mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made(variant)
    encoder = build(model)
    _mutants()[mutant](monkeypatch, encoder)
    assert largest_difference(model, encoder, [30, 60, 10]) > 100 * TOLERANCE

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModel

from packing.attention import local, segments
from packing.encoders import modernbert
from packing.encoders.modernbert import build
from packing.encoders.unpackable import Unpackable
from packing.pack import Group, Pack, pack
from tests.packing import tiny_models
from tests.packing.encoders import parity
from tests.packing.encoders.parity import RAGGED, assert_no_segment_sees_another, largest_difference, scaled

TOLERANCE = 1e-5


def rotary(kind: str, **fields: Any) -> dict[str, Any]:
    layers = {"full_attention": 160_000.0, "sliding_attention": 10_000.0}
    return {
        "rope_parameters": {layer: {"rope_type": kind, "rope_theta": theta} | fields for layer, theta in layers.items()}
    }


VARIANTS: dict[str, dict[str, Any]] = {
    "as published": {"local_attention": 128},
    "a window of 16": {},
    "an odd window": {"local_attention": 17},
    "biases": {"attention_bias": True, "mlp_bias": True, "norm_bias": True},
    "global every second layer": {"global_attn_every_n_layers": 2},
    "local first": {"layer_types": ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"]},
    "relu": {"hidden_activation": "relu"},
    "gelu_pytorch_tanh": {"hidden_activation": "gelu_pytorch_tanh"},
    "other thetas": {"global_rope_theta": 1000.0, "local_rope_theta": 50.0},
    "scaled positions": rotary("linear", factor=4.0),
    "yarn": rotary("yarn", factor=4.0, original_max_position_embeddings=128),
    "another epsilon": {"norm_eps": 0.1},
}


def made(**changes: Any) -> Any:
    torch.manual_seed(1)
    config = tiny_models.encoder_config("modernbert", 200, **({"num_hidden_layers": 4} | changes))
    return scaled(AutoModel.from_config(config))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_segment_is_read_as_if_alone(variant: str) -> None:
    model = made(**VARIANTS[variant])
    assert largest_difference(model, build(model, torch.float32), RAGGED) < TOLERANCE


@pytest.mark.parametrize("lengths", [[1], [16], [5, 5, 5, 5], [600, 600, 3], [1500]])
def test_single_equal_and_long_segments(lengths: list[int]) -> None:
    model = made(local_attention=128)
    assert largest_difference(model, build(model, torch.float32), lengths) < TOLERANCE


def test_a_window_of_128_reaches_64_tokens_as_the_modules_does() -> None:
    model = made(local_attention=128, num_hidden_layers=2, layer_types=["sliding_attention", "full_attention"])
    model.layers = model.layers[:1]
    encoder = build(model, torch.float32)
    ids = np.random.default_rng(0).integers(5, 200, 300).astype(np.int32)
    before = encoder(pack([ids], [0]))[:300]
    for query in (70, 130, 200):
        for distance in (63, 64, 65):
            for changed in (query - distance, query + distance):
                other = ids.copy()
                other[changed] = 5 + (other[changed] - 4) % 195
                sees = bool((encoder(pack([other], [0]))[query] != before[query]).any())
                tensor = torch.from_numpy(np.stack([ids, other]).astype(np.int64))
                one, two = model(input_ids=tensor).last_hidden_state[:, query]
                assert sees == bool((one != two).any()) == (distance <= 64)


def test_the_configuration_differs_where_the_variants_do() -> None:
    model = made()
    encoder = build(model, torch.float32)
    for changes in ({"local_attention": 18}, VARIANTS["global every second layer"], VARIANTS["other thetas"]):
        assert largest_difference(made(**changes), encoder, [100, 30]) > 100 * TOLERANCE


@pytest.mark.parametrize(("dtype", "bound"), [(torch.bfloat16, 0.3), (torch.float16, 0.05)])
def test_half_precision_is_near_the_modules_own(dtype: torch.dtype, bound: float) -> None:
    model = made(local_attention=128)
    encoder = build(model, dtype)
    assert encoder(pack([np.full(5, 7, np.int32)], [0])).dtype == dtype
    assert largest_difference(model, encoder, RAGGED) < bound
    assert largest_difference(model.to(dtype), encoder, RAGGED) < bound


def test_no_segment_sees_another() -> None:
    assert_no_segment_sees_another(build(made(), torch.float32))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (rotary("dynamic", factor=2.0), "rotary positions of the type dynamic"),
        ({"hidden_activation": "mish"}, "activation mish"),
    ],
)
def test_what_is_not_covered_is_refused_by_name(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unpackable, match=reason):
        build(made(**fields), torch.float32)


def test_an_unknown_kind_of_layer_is_refused_by_name() -> None:
    model = made()
    model.config.layer_types[1] = "chunked_attention"
    with pytest.raises(Unpackable, match="layers of the kind chunked_attention"):
        build(model, torch.float32)


def _mutants() -> dict[str, Callable[[pytest.MonkeyPatch], None]]:
    turns, attend = modernbert.Rotary.turns, local.attend

    def positions_go_on(patch: pytest.MonkeyPatch) -> None:
        def mutant(*given: Any) -> Pack:
            made = pack(*given)
            return replace(made, position_ids=torch.arange(len(made.ids)) // 2)

        patch.setattr(parity, "pack", mutant)

    def turned_the_other_way(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(modernbert.Rotary, "turns", lambda self, positions: turns(self, positions).conj())

    def without_segments(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(Pack, "groups", property(lambda self: (Group(0, 1, self.tokens),)))

    def reach_off_by_one(patch: pytest.MonkeyPatch) -> None:
        def mutant(qkv: Tensor, groups: Any, heads: int, reach: int) -> Tensor:
            return attend(qkv, groups, heads, reach + 1)

        patch.setattr(local, "attend", mutant)

    def local_is_full(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(local, "attend", lambda qkv, groups, heads, _: segments.attend(qkv, groups, heads))

    return {
        "positions at half the pace": positions_go_on,
        "turned the other way": turned_the_other_way,
        "no segment boundary": without_segments,
        "the window one too wide": reach_off_by_one,
        "local attention is full": local_is_full,
    }


@pytest.mark.parametrize("mutant", _mutants())
def test_the_comparison_finds_a_fault(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made()
    encoder = build(model, torch.float32)
    _mutants()[mutant](monkeypatch)
    assert largest_difference(model, encoder, [30, 60, 10]) > 100 * TOLERANCE

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModel, DebertaV2Config
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

from packing.attention.disentangled import PositionTables
from packing.encoders.deberta import build, log_bucket
from packing.pack import Group, Pack
from tests.packing.encoders.parity import RAGGED, assert_no_segment_sees_another, largest_difference, scaled

TOLERANCE = 1e-5

VARIANTS: dict[str, dict[str, Any]] = {
    "as v3 is": {},
    "positions in the input": {"position_biased_input": True, "type_vocab_size": 2},
    "projections of their own": {"share_att_key": False},
    "content to position alone": {"pos_att_type": ["c2p"]},
    "position to content alone": {"pos_att_type": ["p2c"]},
    "no relative attention": {"relative_attention": False, "position_biased_input": True},
    "no buckets": {"position_buckets": -1},
    "few buckets": {"position_buckets": 16, "max_relative_positions": 40},
    "convolution": {"conv_kernel_size": 3, "conv_act": "gelu"},
    "wide grouped convolution": {"conv_kernel_size": 5, "conv_groups": 2},
    "narrow embeddings": {"embedding_size": 16},
    "another activation": {"hidden_act": "gelu_new"},
    "positions not normalised": {"norm_rel_ebd": "none"},
}


def deberta(**changes: Any) -> Any:
    shape: dict[str, Any] = {
        "vocab_size": 200,
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 512,
        "pad_token_id": 0,
        "relative_attention": True,
        "max_relative_positions": -1,
        "position_buckets": 64,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "type_vocab_size": 0,
    }
    torch.manual_seed(1)
    return scaled(AutoModel.from_config(DebertaV2Config(**(shape | changes))))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_segment_is_read_as_if_alone(variant: str) -> None:
    model = deberta(**VARIANTS[variant])
    assert largest_difference(model, build(model, torch.float32), RAGGED) < TOLERANCE


@pytest.mark.parametrize("lengths", [[1], [16], [5, 5, 5, 5], [600, 700, 513, 512, 511]])
def test_single_equal_and_very_long_segments(lengths: list[int]) -> None:
    model = deberta()
    assert largest_difference(model, build(model, torch.float32), lengths) < TOLERANCE


@pytest.mark.parametrize(("buckets", "farthest"), [(256, 512), (64, 512), (32, 128), (256, 1024), (16, 40)])
def test_buckets_are_the_librarys_also_past_the_last(buckets: int, farthest: int) -> None:
    distances = torch.arange(-3000, 3001)
    right = make_log_bucket_position(distances, buckets, farthest).long()
    assert torch.equal(log_bucket(distances, buckets, farthest), right)


def test_bfloat16_is_near_the_modules_own() -> None:
    model = deberta()
    encoder = build(model, torch.bfloat16)
    assert largest_difference(model, encoder, RAGGED) < 0.3  # of a random model with large weights
    assert largest_difference(model.bfloat16(), encoder, RAGGED) < 0.3


def test_no_segment_sees_another() -> None:
    for variant in ("as v3 is", "convolution"):
        assert_no_segment_sees_another(build(deberta(**VARIANTS[variant]), torch.float32))


def _mutants() -> dict[str, Callable[[pytest.MonkeyPatch], None]]:
    around = PositionTables.around

    def without(term: int) -> Callable[[pytest.MonkeyPatch], None]:
        def mutate(patch: pytest.MonkeyPatch) -> None:
            def mutant(self: PositionTables, length: int) -> tuple[Tensor | None, ...]:
                found = around(self, length)
                return tuple(None if i == term else table for i, table in enumerate(found))

            patch.setattr(PositionTables, "around", mutant)

        return mutate

    def off_by_one(patch: pytest.MonkeyPatch) -> None:
        def mutant(self: PositionTables, length: int) -> tuple[Tensor, ...]:
            return tuple(table.roll(1, 2) for table in around(self, length) if table is not None)

        patch.setattr(PositionTables, "around", mutant)

    def without_segments(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(Pack, "groups", property(lambda self: (Group(0, 1, self.tokens),)))

    return {
        "no c2p": without(0),
        "no p2c": without(1),
        "positions off by one": off_by_one,
        "no segment boundary": without_segments,
    }


@pytest.mark.parametrize("mutant", _mutants())
def test_the_comparison_finds_a_fault(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = deberta()
    encoder = build(model, torch.float32)
    _mutants()[mutant](monkeypatch)
    assert largest_difference(model, encoder, [30, 60, 10]) > 100 * TOLERANCE

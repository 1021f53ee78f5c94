from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel, T5Config, T5EncoderModel

from packing.encoders.padded import PaddedEncoder
from packing.pack import pack
from packing.padded_forward import MOST_PADDING
from tests.packing import tiny_models
from tests.packing.encoders.parity import RAGGED, largest_difference, scaled

TOLERANCE = 1e-5

SHAPE: dict[str, Any] = {
    "vocab_size": 200,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "pad_token_id": 1,
}


def made(family: str) -> Any:
    torch.manual_seed(1)
    if family == "t5":
        config = T5Config(vocab_size=200, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
        return scaled(T5EncoderModel(config), 2.0)
    if family in ("electra", "mpnet"):
        return scaled(AutoModel.from_config(AutoConfig.for_model(family, **SHAPE)))  # type: ignore[no-untyped-call]
    known: Any = family
    return scaled(AutoModel.from_config(tiny_models.encoder_config(known, 200)))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "deberta-v2", "electra", "mpnet", "t5"])
def test_every_segment_is_read_as_if_alone(family: str) -> None:
    model = made(family)
    assert largest_difference(model, PaddedEncoder(model, torch.float32), RAGGED) < TOLERANCE


@pytest.mark.parametrize("lengths", [[1], [16], [5, 5, 5, 5]])
def test_single_and_equal_segments(lengths: list[int]) -> None:
    model = made("bert")
    assert largest_difference(model, PaddedEncoder(model, torch.float32), lengths) < TOLERANCE


def test_it_counts_its_padding_and_keeps_it_small() -> None:
    encoder = PaddedEncoder(made("bert"), torch.float32)
    sequences = [np.full(length, 7, np.int32) for length in (100, 95, 90, 50, 9)]
    encoder(pack(sequences, range(5)))
    assert (encoder.tokens, encoder.padding) == (344, 5 + 10)
    encoder(pack(sequences, [0, 4]))
    assert (encoder.tokens, encoder.padding) == (344 + 109, 15)
    ragged = PaddedEncoder(made("bert"), torch.float32)
    ragged(pack([np.full(length, 7, np.int32) for length in RAGGED], range(len(RAGGED))))
    assert ragged.tokens == sum(RAGGED)
    assert 0 < ragged.padding < MOST_PADDING * ragged.tokens


def test_the_roundings_states_are_finite_and_all_are_of_the_dtype() -> None:
    encoder = PaddedEncoder(made("bert"), torch.bfloat16)
    states = encoder(pack([np.full(length, 7, np.int32) for length in (9, 3)], range(2)))
    assert states.shape == (16, 32)
    assert states.dtype == torch.bfloat16
    assert torch.isfinite(states).all()


def test_no_segment_sees_another() -> None:
    random = np.random.default_rng(0)
    sequences = [random.integers(5, 200, length).astype(np.int32) for length in (40, 39, 38, 7)]
    encoder = PaddedEncoder(made("bert"), torch.float32)
    before = encoder(pack(sequences, range(4)))
    changed = [*sequences[:1], random.integers(5, 200, 39).astype(np.int32), *sequences[2:]]
    after = encoder(pack(changed, range(4)))
    assert torch.allclose(before[:40], after[:40], rtol=0, atol=1e-5)
    assert torch.allclose(before[79:124], after[79:124], rtol=0, atol=1e-5)
    assert not torch.allclose(before[40:79], after[40:79], atol=1e-2)

"""The models that the tests of `packing` run on, each built once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from gliner import GLiNER

from packing import DEMO_MODEL, Engine
from tests.packing import tiny_models

TINY: dict[str, dict[str, Any]] = {
    "bert span": {"family": "bert", "seed": 2},
    "bert token": {"family": "bert", "token_level": True, "scale": 3.0, "seed": 1},
    "bert span without LSTM": {"family": "bert", "num_rnn_layers": 0, "seed": 2},
    "deberta span": {"family": "deberta-v2", "scale": 3.0, "seed": 1},
    "deberta token": {"family": "deberta-v2", "token_level": True, "scale": 3.0, "seed": 2},
    "bi-encoder span": {"family": "bert", "bi_encoder": True, "scale": 3.0},
    "bi-encoder token": {"family": "bert", "bi_encoder": True, "token_level": True, "scale": 3.0},
    "short bert span": {"family": "bert", "max_len": 40, "max_width": 6, "model_max_length": 100},
    "short deberta span": {"family": "deberta-v2", "max_len": 40, "max_width": 6, "seed": 2},
}
"""The tiny models by name. The `short` ones read 40 words at once, so that a few sentences make windows."""

Load = Callable[[str], tuple[Engine, Any]]


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Return a model by its name, as our engine and as the library's own object."""

    @cache
    def by_name(name: str) -> tuple[Engine, Any]:
        folder = model_folder(name)
        return Engine.load(folder, device="cpu", dtype="float32"), GLiNER.from_pretrained(
            str(folder), local_files_only=True
        )

    @cache
    def model_folder(name: str) -> Path:
        if name == "demo":
            return DEMO_MODEL
        return tiny_models.build(tmp_path_factory.mktemp("tiny"), **TINY[name])

    return by_name


@pytest.fixture
def engine(load: Load) -> Engine:
    """A tiny model whose answer for ordinary text isn't empty."""
    return load("bert span")[0]

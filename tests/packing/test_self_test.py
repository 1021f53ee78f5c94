"""What the engine does at its start with a way of running the model that is wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from packing import Document, Engine, ModelError, self_test
from packing.forward import Row
from packing.packed_forward import PackedForward
from packing.self_test import existing
from tests.packing import tiny_models
from tests.packing.texts import ORDINARY

Wrong = Callable[[Sequence[Tensor]], list[Tensor]]
WRONG: dict[str, Wrong] = {
    "shifted": lambda logits: [one + one.std() / 100 for one in logits],
    "not a number": lambda logits: [torch.full_like(one, torch.nan) for one in logits],
    "infinite": lambda logits: [torch.full_like(one, torch.inf) for one in logits],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build(tmp_path_factory.mktemp("tiny"), "deberta-v2", scale=3.0, seed=1)


def faulty(monkeypatch: pytest.MonkeyPatch, wrong: Wrong, dtypes: Sequence[torch.dtype]) -> None:
    """Make the packed forward wrong in some dtypes."""

    class Faulty(PackedForward):
        def __init__(self, gliner: Any, suffix: tuple[int, ...], dtype: torch.dtype) -> None:
            super().__init__(gliner, suffix, dtype)
            self._wrong = dtype in dtypes

        def logits(self, rows: Sequence[Row]) -> list[Tensor]:
            right = super().logits(rows)
            return wrong(right) if self._wrong else right

    monkeypatch.setattr(self_test, "PackedForward", Faulty)


def test_a_model_that_is_read_rightly_is_packed(folder: Path) -> None:
    info = Engine.load(folder, device="cpu", dtype="float32").info
    assert (info.backend, info.dtype, info.steps) == ("packed", "float32", ())
    assert "float32 was asked for" in info.why
    assert "standard deviations" in info.why


def test_half_precision_is_taken_when_asked_for(folder: Path) -> None:
    info = Engine.load(folder, device="cpu", dtype="bfloat16").info
    assert (info.backend, info.dtype, info.steps) == ("packed", "bfloat16", ())


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_forward_is_given_up_for_the_librarys_own_and_says_so(
    folder: Path, wrong: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    documents = [Document(text, ["person", "location"], 0.3) for text in ORDINARY]
    expected = Engine.load(folder, device="cpu", dtype="float32").extract(documents)
    faulty(monkeypatch, WRONG[wrong], [torch.float32])
    with caplog.at_level(logging.WARNING, "packing"):
        engine = Engine.load(folder, device="cpu", dtype="float32")
    assert engine.info.backend == "padded"
    assert [line.startswith("packed float32 isn't used: ") for line in engine.info.steps] == [True]
    assert engine.info.steps[0] in caplog.text
    for own, right in zip(engine.extract(documents), expected, strict=True):
        assert [(e.start, e.end, e.label) for e in own.entities] == [(e.start, e.end, e.label) for e in right.entities]


def test_a_dtype_that_fails_gives_way_to_the_next(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faulty(monkeypatch, WRONG["not a number"], [torch.bfloat16])
    info = Engine.load(folder, device="cpu", dtype="bfloat16").info
    assert (info.backend, info.dtype) == ("packed", "float32")
    assert len(info.steps) == 1
    assert "packed bfloat16 isn't used: scores are no numbers" in info.steps[0]


def test_a_forward_that_raises_is_given_up_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(self_test, "PackedForward", broken)
    info = Engine.load(folder, device="cpu", dtype="float32").info
    assert info.backend == "padded"
    assert "RuntimeError: no such kernel" in info.steps[0]


def test_a_model_of_no_numbers_is_refused(tmp_path: Path) -> None:
    from gliner import GLiNER

    folder = tiny_models.build(tmp_path / "model", "bert")
    gliner = GLiNER.from_pretrained(str(folder), local_files_only=True)
    with torch.no_grad():
        gliner.model.prompt_rep_layer[0].weight.fill_(torch.nan)
    gliner.save_pretrained(folder, safe_serialization=True)
    with pytest.raises(ModelError, match="scores are no numbers"):
        Engine.load(folder, device="cpu")


def test_spans_past_the_end_are_left_out_of_a_comparison() -> None:
    logits = torch.arange(12.0).view(2, 3, 2)  # 2 words, up to 3 of them in a span, 2 labels
    assert existing(logits, 3).tolist() == [0, 1, 2, 3, 6, 7]
    assert existing(logits, None).tolist() == list(range(12))

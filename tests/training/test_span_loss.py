from pathlib import Path
from typing import Any

import pytest
import torch
from gliner import GLiNER

from tests.training.test_demo_model import FOLDER
from training.examples import Example
from training.model import load
from training.span_loss import span_loss, span_scores

BATCH: list[Example] = [
    {
        "tokenized_text": ["Tim", "Cook", "met", "Angela", "Merkel", "in", "Berlin", "."],
        "ner": [(0, 1, "person"), (3, 4, "person"), (6, 6, "place")],
        "ner_labels": ["place", "person", "day or date"],
    },
    {"tokenized_text": ["Nothing", "here"], "ner": [], "ner_labels": ["event"]},
]


@pytest.fixture(scope="module")
def model() -> GLiNER:
    return load(Path(FOLDER))


@pytest.fixture(scope="module")
def inputs(model: GLiNER) -> dict[str, Any]:
    collate = model.data_collator_class(model.config, data_processor=model.data_processor, prepare_labels=True)
    return dict(collate(BATCH))


def test_the_folded_head_scores_as_the_library_does(model: GLiNER, inputs: dict[str, Any]) -> None:
    with torch.no_grad():
        theirs = model.model(**inputs).logits
        ours, real = span_scores(model, inputs)
    valid = inputs["span_mask"].view(2, -1, model.config.max_width)[..., None] & (real[:, None, None, :] > 0)
    assert ours.shape == theirs.shape
    torch.testing.assert_close(ours[valid.expand_as(ours)], theirs[valid.expand_as(theirs)], atol=1e-4, rtol=1e-4)


def test_loss_and_gradients_are_the_librarys(model: GLiNER, inputs: dict[str, Any]) -> None:
    def gradients(loss: torch.Tensor) -> list[torch.Tensor]:
        weights = [w for name, w in model.named_parameters() if "bert_layer" not in name or "layer.5" in name]
        found = torch.autograd.grad(loss, weights, allow_unused=True)
        return [g for g in found if g is not None]

    ours = span_loss(model, inputs, alpha=0.75, gamma=2.0)
    theirs = model.model(**inputs, alpha=0.75, gamma=2.0, reduction="sum").loss
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    pairs = zip(gradients(ours), gradients(theirs), strict=True)
    assert all(torch.allclose(a, b, atol=1e-3, rtol=1e-2) for a, b in pairs)

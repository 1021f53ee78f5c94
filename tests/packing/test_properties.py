"""Any text, any labels: an answer that keeps the promises, and the same one in any company."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from packing import DEMO_MODEL, Document, Engine, Overlap, self_test
from packing.engine import _rows
from packing.self_test import Reference, examine, existing
from schemas.offset_units import convert
from tests.offset_units import UNITS, addressing
from tests.packing.awkward import CASES, CHARACTERS, LABEL_SETS, LABELS
from tests.packing.conftest import Load
from tests.packing.planted import planted
from tests.packing.promises import assert_promises
from tests.packing.ties import differences, of_result

MODELS = ["bert span", "deberta token", "short deberta span", "demo"]

PIECES = [*CHARACTERS.values(), "Maria", "Santos", "Lisbon", "on Monday", ", ", ". ", " ", "\n", "-", "2024", "<b>"]
TEXTS = st.one_of(
    st.text(st.characters(codec=None), max_size=80),
    st.lists(st.sampled_from(PIECES), max_size=60).map("".join),
)
LABEL = st.one_of(
    st.sampled_from(sorted({label for labels in LABEL_SETS.values() for label in labels if len(label) < 100})),
    st.text(st.characters(codec=None), min_size=1, max_size=12).filter(str.strip),
)
LABEL_LISTS = st.lists(LABEL, min_size=1, max_size=8)
THRESHOLDS = st.one_of(st.sampled_from([0.0, 1e-10, 0.5, 0.999, 1.0]), st.floats(0, 1))
OVERLAPS = st.sampled_from(get_args(Overlap))


def readable(engine: Engine, label: str) -> bool:
    try:
        engine.prepare([Document("x", [label])])
    except ValueError:
        return False
    return True


@st.composite
def requests(draw: st.DrawFn) -> Document:
    labels = draw(st.lists(st.sampled_from(["person", "<<ENT>>", "東京", "a b", "[SEP]"]), min_size=1, max_size=8))
    return Document(draw(TEXTS), labels, draw(THRESHOLDS), draw(OVERLAPS))


@pytest.mark.parametrize("model", MODELS)
@given(text=TEXTS, labels=LABEL_LISTS, threshold=THRESHOLDS, overlap=OVERLAPS)
@settings(max_examples=40, deadline=None)
def test_any_text_and_labels_get_an_answer_that_keeps_the_promises(
    load: Load, model: str, text: str, labels: list[str], threshold: float, overlap: Overlap
) -> None:
    engine, _ = load(model)
    wanted = [label for label in labels if readable(engine, label)]
    document = Document(text, wanted, threshold, overlap)
    (result,) = engine.extract([document])
    assert_promises(document, result)


@pytest.mark.parametrize("model", MODELS)
@given(labels=st.lists(LABEL, min_size=1, max_size=8, unique=True))
@settings(max_examples=40, deadline=None)
def test_labels_are_all_read_or_the_first_that_cannot_be_is_named(load: Load, model: str, labels: list[str]) -> None:
    engine, _ = load(model)
    unreadable = [number for number, label in enumerate(labels, start=1) if not readable(engine, label)]
    if unreadable:
        with pytest.raises(ValueError, match=rf"^label {unreadable[0]} has no character that the model can read$"):
            engine.prepare([Document("x", labels)])
    else:
        (prepared,) = engine.prepare([Document("x", labels)])
        assert [label for prompt in prepared._prompts for label in prompt.labels] == labels


@pytest.mark.parametrize("model", MODELS)
@given(documents=st.lists(requests(), min_size=2, max_size=6))
@settings(max_examples=25, deadline=None)
def test_company_never_changes_an_answer(load: Load, model: str, documents: list[Document]) -> None:
    engine, _ = load(model)
    for document, in_company in zip(documents, engine.extract(documents), strict=True):
        (alone,) = engine.extract([document])
        assert (alone.windows, alone.label_chunks) == (in_company.windows, in_company.label_chunks)
        assert differences(document, of_result(alone.entities), of_result(in_company.entities)) == []


@given(text=TEXTS)
@settings(max_examples=40, deadline=None)
def test_offsets_address_the_entitys_text_in_every_unit(load: Load, text: str) -> None:
    (result,) = load("bert span")[0].extract([Document(text, LABELS, 0.0, "multi")])
    edges = [edge for entity in result.entities for edge in (entity.start, entity.end)]
    for unit in UNITS:
        addressed = addressing(text, unit)
        offsets = iter(convert(text, edges, unit))
        for entity in result.entities:
            assert addressed(next(offsets), next(offsets), entity.text)


@pytest.mark.parametrize("model", MODELS)
@given(before=TEXTS, after=TEXTS)
@settings(max_examples=30, deadline=None)
def test_a_phrase_between_any_two_texts_is_found_at_its_place(load: Load, model: str, before: str, after: str) -> None:
    text = f"{before} Angela Merkel {after}"
    (result,) = planted(load(model)[0], "Angela Merkel").extract([Document(text, LABELS)])
    assert [(e.start, e.text) for e in result.entities] == [(len(before) + 1, "Angela Merkel")]


@cache
def halved() -> Engine:
    return Engine.load(DEMO_MODEL, device="cpu", dtype="bfloat16")


def values(engine: Engine, documents: list[Document]) -> Tensor:
    """Return the logits of all that exists, end to end."""
    forward: Any = engine._forward
    logits = forward.logits(_rows(engine.prepare(documents)))
    return torch.cat([torch.empty(0), *(existing(one, forward.width) for one in logits)])


@cache
def deviation() -> float:
    return float(values(halved(), [Document(text, LABELS) for text in self_test.TEXTS]).std())


def within_rounding(found: Tensor, right: Tensor) -> bool:
    """Tell whether logits differ by no more than the self-test allows of half precision."""
    return examine([found], Reference(right, deviation(), 0.0, None), torch.bfloat16)[0]


@given(documents=st.lists(requests(), min_size=2, max_size=6))
@settings(max_examples=20, deadline=None)
def test_in_bfloat16_company_moves_scores_by_no_more_than_their_rounding(documents: list[Document]) -> None:
    engine = halved()
    assert engine.info.dtype == "bfloat16"
    alone = torch.cat([values(engine, [document]) for document in documents])
    if len(alone):
        assert within_rounding(values(engine, documents), alone)


def test_in_bfloat16_awkward_texts_score_as_in_float32_but_for_rounding(load: Load) -> None:
    documents = [case.document() for case in CASES.values() if len(case.text) < 500]
    right, found = values(load("demo")[0], documents), values(halved(), documents)
    assert within_rounding(found, right)
    assert not within_rounding(found + deviation(), right)

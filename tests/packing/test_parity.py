"""Every answer is the model library's own answer for that text alone."""

from __future__ import annotations

from typing import Any

import pytest

from packing import Document, Result
from tests.packing.conftest import TINY, Load
from tests.packing.texts import LABEL_SETS, ORDINARY, OVERLAPS, mixed_documents
from tests.packing.ties import differences, of_library, of_result

MODELS = [*(name for name in TINY if not name.startswith("short")), "demo"]


def library_answer(gliner: Any, document: Document) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = gliner.predict_entities(
        document.text, document.labels, threshold=document.threshold, **OVERLAPS[document.overlap]
    )
    return sorted(answer, key=lambda e: (e["start"], -e["end"], e["label"]))


def assert_same(document: Document, result: Result, answer: list[dict[str, Any]]) -> None:
    assert differences(document, of_result(result.entities), of_library(answer)) == []
    assert all(e.text == document.text[e.start : e.end] for e in result.entities)


def without_deleted(text: str) -> str:
    """Leave out what a tokenizer deletes: there the library's offsets shift."""
    return "".join(c for c in text if c not in "\u200d\ufe0f")


@pytest.mark.parametrize("name", MODELS)
def test_a_mixed_batch_gives_each_text_the_answer_it_gets_alone(load: Load, name: str) -> None:
    engine, gliner = load(name)
    documents = mixed_documents([without_deleted(text) for text in ORDINARY] * 2)
    results = engine.extract(documents)
    for document, result in zip(documents, results, strict=True):
        assert result.windows == result.label_chunks == 1
        assert_same(document, result, library_answer(gliner, document))
    assert sum(len(result.entities) for result in results) > 10


@pytest.mark.parametrize("name", ["bert span", "deberta token", "demo"])
@pytest.mark.parametrize("overlap", ["flat", "nested", "multi"])
@pytest.mark.parametrize("threshold", [0, 0.05, 0.5, 0.999, 1])
def test_every_overlap_and_threshold_is_the_librarys(load: Load, name: str, overlap: Any, threshold: float) -> None:
    engine, gliner = load(name)
    for text in ORDINARY[:1] + ORDINARY[7:9]:
        document = Document(text, LABEL_SETS[1], threshold, overlap)
        assert_same(document, engine.extract([document])[0], library_answer(gliner, document))


@pytest.mark.parametrize("name", MODELS)
def test_company_never_changes_an_answer(load: Load, name: str) -> None:
    engine, _ = load(name)
    documents = mixed_documents(ORDINARY)
    together = engine.extract(documents)
    for document, result in zip(documents, together, strict=True):
        alone = engine.extract([document])[0]
        assert differences(document, of_result(alone.entities), of_result(result.entities)) == []

"""On real long documents, every window's answer is the model library's own answer for that window's text."""

from __future__ import annotations

import json

import pytest

from packing import Document
from packing.engine import _rows
from packing.overlap import select
from tests.corpora import corpora
from tests.packing.conftest import Load
from tests.packing.test_parity import library_answer
from tests.packing.test_parity_real_text import every_word_has_tokens
from tests.packing.ties import differences, of_candidates, of_library

LABELS = ("person", "organization", "location")


def long_texts(name: str) -> list[str]:
    with (corpora() / f"{name}.jsonl").open() as lines:
        return [text for line in lines if len((text := json.loads(line)["text"]).split()) > 450]


@pytest.mark.parametrize(("corpus", "most"), [("sec_test", 3), ("wikigold", 10), ("gum_sa_all", 5)])
def test_every_window_answers_as_the_library_does_for_its_text(load: Load, corpus: str, most: int) -> None:
    engine, gliner = load("demo")
    texts = long_texts(corpus)[:most]
    different, compared, found = [], 0, 0
    for number, prepared in enumerate(engine.prepare([Document(text, LABELS) for text in texts])):
        words, text = prepared._words, prepared.document.text
        assert words is not None
        answers = engine._forward.candidates(_rows([prepared]))
        for window, candidates in zip(prepared._windows, answers, strict=True):
            part = Document(text[words.starts[window.start] : words.ends[window.end - 1]], LABELS)
            if not every_word_has_tokens(engine, part.text):
                continue
            ours = of_candidates(words, window, select(candidates, "flat"), LABELS)
            if differences(part, ours, of_library(library_answer(gliner, part))):
                different.append((number, window.start))
            compared += 1
            found += len(ours)
    assert different == []
    assert compared > 15
    assert found > compared

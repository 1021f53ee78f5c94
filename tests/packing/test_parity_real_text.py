"""On real text too, every answer is the model library's own answer for that text alone.

Two kinds of text are left out, both pinned elsewhere: those longer than one window, which the library cuts, and those
with characters for which the tokenizer has no sub-token, after which the library's offsets are off.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice

import pytest

import samples
from packing import Document, Engine
from tests.corpora import corpora
from tests.packing.conftest import Load
from tests.packing.test_parity import library_answer
from tests.packing.ties import differences, of_library, of_result

LABELS = ("person", "organization", "location", "date", "product", "event")


def sample_texts() -> list[str]:
    return [sample.text for sample in samples.read()]


def stream_texts(every: int = 56) -> list[str]:
    with (corpora() / "stream_mix.jsonl").open() as lines:
        return [json.loads(line)["text"] for line in islice(lines, 0, None, every)]


def comparable(engine: Engine, texts: Iterable[str]) -> list[Document]:
    documents = [Document(text, LABELS) for text in texts]
    prepared = zip(documents, engine.prepare(documents), strict=True)
    return [document for document, one in prepared if one.windows == 1 and every_word_has_tokens(engine, document.text)]


def every_word_has_tokens(engine: Engine, text: str) -> bool:
    words = [word for word, _, _ in engine._split_words(text)]
    _, counts = engine._tokenizer.encode(words)
    return bool((counts > 0).all())


@pytest.mark.parametrize("source", [sample_texts, stream_texts])
def test_a_text_gets_the_librarys_own_answer_whoever_shares_its_batch(load: Load, source: object) -> None:
    engine, gliner = load("demo")
    assert callable(source)
    texts = source()
    documents = comparable(engine, texts)
    assert len(documents) > 0.8 * len(texts)
    results = engine.extract(documents)
    different = [
        number
        for number, (document, result) in enumerate(zip(documents, results, strict=True))
        if differences(document, of_result(result.entities), of_library(library_answer(gliner, document)))
    ]
    assert different == []
    assert sum(len(result.entities) for result in results) > len(documents) / 2

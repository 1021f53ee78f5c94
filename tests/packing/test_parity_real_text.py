"""On real text too, every answer is the model library's own answer for that text alone.

Two kinds of text are left out, both pinned elsewhere: those longer than one window, which the library cuts, and those
with characters for which the tokenizer has no sub-token, after which the library's offsets are off.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest

import samples
from packing import Document, Engine, Result
from tests.packing.conftest import Load
from tests.packing.test_parity import library_answer

LABELS = ("person", "organization", "location", "date", "product", "event")
STREAM_MIX = Path(__file__).parents[3] / "shared" / "data" / "stream_mix.jsonl"
TIE = 1e-5
"""The library itself differs from itself by this much: entities this close to the threshold or to each other may."""


def sample_texts() -> list[str]:
    return [sample.text for sample in samples.read()]


def stream_texts(every: int = 56) -> list[str]:
    if not STREAM_MIX.exists():
        pytest.skip("the corpora aren't here: they belong into ../shared/data beside the repository")
    with STREAM_MIX.open() as lines:
        return [json.loads(line)["text"] for line in islice(lines, 0, None, every)]


def comparable(engine: Engine, texts: Iterable[str]) -> list[Document]:
    documents = [Document(text, LABELS) for text in texts]
    prepared = zip(documents, engine.prepare(documents), strict=True)
    return [document for document, one in prepared if one.windows == 1 and every_word_has_tokens(engine, document.text)]


def every_word_has_tokens(engine: Engine, text: str) -> bool:
    words = [word for word, _, _ in engine._split_words(text)]
    _, counts = engine._tokenizer.encode(words)
    return bool((counts > 0).all())


def same_but_for_ties(result: Result, answer: list[dict[str, object]]) -> bool:
    ours = {(e.start, e.end, e.label): e.score for e in result.entities}
    theirs = {(e["start"], e["end"], e["label"]): float(str(e["score"])) for e in answer}
    if ours.keys() == theirs.keys():
        return all(abs(ours[key] - theirs[key]) <= TIE for key in ours)
    odd = [score for key, score in (ours | theirs).items() if key not in ours.keys() & theirs.keys()]
    pairs = [(score, other) for i, score in enumerate(odd) for j, other in enumerate(odd) if i != j]
    return all(
        abs(score - 0.5) <= TIE or any(abs(score - other) <= TIE for one, other in pairs if one == score)
        for score in odd
    )


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
        if not same_but_for_ties(result, library_answer(gliner, document))
    ]
    assert different == []
    assert sum(len(result.entities) for result in results) > len(documents) / 2

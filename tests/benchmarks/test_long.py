"""What the figures of long documents are made of."""

from __future__ import annotations

import pytest
import torch

from benchmarks import library
from benchmarks.long import PLACES, places_of
from benchmarks.long_documents import LongDocument, cut_at, marked, passages, strict
from packing import DEMO_MODEL, Document, Engine
from training.corpora import to_words


def document(text: str, *entities: tuple[int, int, str]) -> LongDocument:
    record: dict[str, object] = {
        "id": "some-1",
        "source": "some",
        "license": "none",
        "text": text,
        "entities": [{"start": start, "end": end, "label": label} for start, end, label in entities],
    }
    words = to_words(record)
    return LongDocument("some", True, words, marked(words), ("person",), 0)


def test_strict_counts_an_entity_whose_ends_and_label_are_right() -> None:
    gold = [(0, 5, "person"), (6, 9, "person"), (10, 12, "location")]
    found = [(0, 5, "person"), (6, 9, "location"), (10, 13, "location"), (20, 22, "person"), (20, 22, "person")]
    assert strict([(found, gold), ([], [])]) == pytest.approx((25.0, 100 / 3, 200 / 7))
    assert strict([([], [])]) == (0, 0, 0)


def test_passages_lie_end_to_end_and_cut_no_entity() -> None:
    text = "Ada met Bob. Then Cy left. " * 30
    one = document(text, *[(at, at + 11, "person") for at in range(0, len(text), 27)])
    parts = list(passages(one.text, 10))
    assert all(text[part.offset :].startswith(part.text) for part in parts)
    assert "".join(part.text for part in parts).replace(" ", "") == text.replace(" ", "")
    inside = [(part.offset, part.offset + len(part.text)) for part in parts]
    assert one.gold
    for start, end, _ in one.gold:
        assert any(first <= start and end <= last for first, last in inside)


def test_an_entity_is_at_the_place_of_its_first_word() -> None:
    text = "word " * 9000
    firsts = [*PLACES, *(first - 1 for first in PLACES[1:])]
    one = document(text, *[(5 * first, 5 * first + 4, "person") for first in firsts])
    found = {start // 5: place for (start, _, _), place in zip(one.gold, places_of(one), strict=True)}
    for place, first in enumerate(PLACES):
        assert found[first] == place
        assert place == 0 or found[first - 1] == place - 1


@pytest.mark.parametrize("word", ["a ", "antidisestablishmentarianism "])
def test_the_cut_is_where_the_library_stops_reading(word: str) -> None:
    engine = Engine.load(DEMO_MODEL, device="cpu", dtype="float32")
    gliner = library.load(DEMO_MODEL, torch.float32)
    labels = ["person", "location"]
    text = word * 600
    end = cut_at(engine, text, labels)
    assert engine.prepare([Document(text[:end], labels)])[0].windows == 1
    assert engine.prepare([Document(text[: end + len(word)], labels)])[0].windows > 1
    assert library.reads_whole(gliner, text[: end - len(word)], labels)
    assert not library.reads_whole(gliner, text[: end + len(word)], labels)

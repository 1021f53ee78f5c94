from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.corpora import UNSEEN_DOMAINS, WORD, Span, Text, normalise, outermost, read_split, to_words, windows


def record(text: str, *entities: tuple[str, str]) -> dict[str, object]:
    marks = [{"start": text.index(e), "end": text.index(e) + len(e), "label": label} for e, label in entities]
    return {"id": "x-1", "source": "x", "text": text, "entities": marks, "license": "none"}


def shown(text: Text) -> list[tuple[str, str]]:
    return [(text.text[text.offsets[s.start][0] : text.offsets[s.end][1]], s.label) for s in text.spans]


def test_no_test_text_is_trained_on(train_texts: list[Text], held_out_texts: list[Text]) -> None:
    tests = {normalise(text.text) for text in held_out_texts}
    assert len(train_texts) > 10_000
    assert len(tests) > 5_000
    assert [text.id for text in train_texts if normalise(text.text) in tests] == []


def test_no_text_of_an_unseen_domain_is_trained_on(train_texts: list[Text], held_out_texts: list[Text]) -> None:
    assert not UNSEEN_DOMAINS & {text.source for text in train_texts}
    assert {text.source for text in held_out_texts} >= UNSEEN_DOMAINS


def test_the_threshold_is_chosen_on_other_texts_than_are_trained_on(data: Path, train_texts: list[Text]) -> None:
    dev = {text.id for texts in read_split(data, "dev").values() for text in texts}
    assert len(dev) > 1_000
    assert not dev & {text.id for text in train_texts}


def test_marked_entities_of_the_corpora_are_whole_words(train_texts: list[Text]) -> None:
    spans = [(text, span) for text in train_texts for span in text.spans]
    assert len(spans) > 20_000
    for text, span in spans:
        assert text.words[span.start : span.end + 1]
        found = text.text[text.offsets[span.start][0] : text.offsets[span.end][1]]
        assert found == found.strip()
        assert [match.group() for match in WORD.finditer(found)] == list(text.words[span.start : span.end + 1])


def test_an_entity_becomes_the_words_it_covers() -> None:
    text = to_words(record("Mr Tim Cook, of Apple.", ("Tim Cook", "person"), ("Apple", "organization")))
    assert text.words == ("Mr", "Tim", "Cook", ",", "of", "Apple", ".")
    assert text.spans == (Span(1, 2, "person"), Span(5, 5, "organization"))


def test_an_entity_that_cuts_through_a_word_makes_its_label_doubtful() -> None:
    text = to_words(record("a Berlin-based firm", ("Berlin", "location")))
    assert text.spans == ()
    assert text.broken == {"location"}


def test_of_overlapping_entities_the_longest_stays() -> None:
    spans = [Span(0, 1, "a"), Span(1, 4, "b"), Span(4, 5, "c"), Span(6, 6, "d")]
    assert outermost(spans) == (Span(1, 4, "b"), Span(6, 6, "d"))


def test_a_text_is_cut_where_sentences_begin() -> None:
    text = to_words(record("One two three. Four five. Six", ("Six", "number")))
    assert [" ".join(w.words) for w in windows(text, 7)] == ["One two three . Four five .", "Six"]
    assert [" ".join(w.words) for w in windows(text, 6)] == ["One two three .", "Four five . Six"]


def test_a_long_sentence_is_never_cut_through_an_entity() -> None:
    text = to_words(record("a b c d e f", ("c d", "x")))
    pieces = list(windows(text, 3))
    assert [p.words for p in pieces] == [("a", "b"), ("c", "d", "e"), ("f",)]
    assert shown(pieces[1]) == [("c d", "x")]


def test_an_entity_longer_than_a_window_is_an_error() -> None:
    with pytest.raises(ValueError, match="x-1"):
        list(windows(to_words(record("a b c d e", ("a b c d", "x"))), 3))


@given(st.text(alphabet="ab .\n!A", max_size=80), st.integers(1, 9))
def test_windows_lose_no_word(text: str, size: int) -> None:
    whole = to_words(record(text))
    pieces = list(windows(whole, size))
    assert tuple(word for piece in pieces for word in piece.words) == whole.words
    assert all(len(piece.words) <= size for piece in pieces)
    for piece in pieces:
        assert [piece.text[start:end] for start, end in piece.offsets] == list(piece.words)

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packing import Document, Engine
from packing.words import LONGEST_WORD, Words, read_words
from tests.packing.conftest import Load
from tests.packing.test_parity import assert_same, library_answer

LABELS = ["person", "location"]
NO_TOKENS = ["\x00", "\u200b", "\u00ad", "\ufffd", "\u200d", "\ufe0f", "\u200f", "\ufeff", "\ud800", "\udfff"]


def words_of(engine: Engine, text: str, max_word_tokens: int = 256) -> Words:
    return read_words(text, engine._split_words, engine._tokenizer, max_word_tokens)


@pytest.mark.parametrize("odd", NO_TOKENS)
@pytest.mark.parametrize("name", ["bert span", "bert token", "deberta span", "demo"])
def test_a_character_that_the_tokenizer_deletes_reads_as_a_space(load: Load, name: str, odd: str) -> None:
    engine, gliner = load(name)
    assert not len(words_of(engine, odd))
    text = f"{odd}Angela {odd} Merkel met{odd} Tim{odd}Cook in Ber{odd}lin{odd}"
    document = Document(text, LABELS, 0.3)
    expected = gliner.predict_entities(text.replace(odd, " "), LABELS, threshold=0.3)
    assert_same(document, engine.extract([document])[0], expected)


def test_lone_surrogates_stay_in_the_entitys_text(engine: Engine) -> None:
    text = "Angela\ud800Merkel met Tim\udc00Cook"
    entities = engine.extract([Document(text, LABELS, 0.0)])[0].entities
    assert entities
    assert all(text[e.start : e.end] == e.text for e in entities)


@given(st.text(st.characters(), max_size=200))
@settings(max_examples=100, deadline=None)
def test_any_text_gives_words_in_order_each_with_sub_tokens(load: Load, text: str) -> None:
    words = words_of(load("deberta span")[0], text)
    assert len(words.bounds) == len(words) + 1
    assert (np.diff(words.bounds) >= 1).all()
    assert words.bounds[-1] == len(words.ids)
    assert (words.starts < words.ends).all()
    assert (words.ends[:-1] <= words.starts[1:]).all()
    assert not any(text[s:e].isspace() for s, e in zip(words.starts, words.ends, strict=True))


@pytest.mark.parametrize("name", ["bert span", "deberta span"])
def test_a_word_of_a_million_characters_is_read_in_linear_time(load: Load, name: str) -> None:
    engine, _ = load(name)
    text = "ab" * 500_000
    before = time.process_time()
    words = words_of(engine, text, max_word_tokens=200)
    assert time.process_time() - before < 20
    assert words.starts[0] == 0
    assert (words.ends[:-1] == words.starts[1:]).all()
    assert words.ends[-1] == len(text)
    assert (words.ends - words.starts).max() <= LONGEST_WORD
    assert np.diff(words.bounds).max() <= 200


def test_a_word_of_too_many_sub_tokens_is_read_in_pieces_of_its_own_text(load: Load) -> None:
    engine, _ = load("deberta span")
    text = "see " + "qzx" * 100 + " there"
    words = words_of(engine, text, max_word_tokens=50)
    assert np.diff(words.bounds).max() <= 50
    assert text[words.starts[1] : words.ends[-2]] == "qzx" * 100
    whole = words_of(engine, text, max_word_tokens=500)
    assert len(whole) == 3


def test_a_word_that_the_library_reads_whole_is_read_whole(load: Load) -> None:
    engine, gliner = load("short deberta span")
    document = Document(f"see {'qzx' * 45} in Berlin", LABELS, 0.1, "multi")
    (prepared,) = engine.prepare([document])
    assert prepared._words is not None
    assert engine.info.max_tokens // 2 < np.diff(prepared._words.bounds).max()
    assert len(prepared._words) == 4
    answer = library_answer(gliner, document)
    assert answer
    assert_same(document, engine.infer([prepared])[0], answer)


def test_special_tokens_in_a_text_are_ordinary_characters(load: Load) -> None:
    engine, gliner = load("bert span")
    ids, _ = engine._tokenizer.encode(["<<ENT>>", "[SEP]", "[MASK]"])
    special = {gliner.config.class_token_index, *gliner.data_processor.transformer_tokenizer.all_special_ids}
    special.discard(gliner.data_processor.transformer_tokenizer.unk_token_id)
    assert not special & set(ids.tolist())

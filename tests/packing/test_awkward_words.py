"""What words a model reads of awkward texts: every one of them, with its own offsets."""

from __future__ import annotations

import numpy as np
import pytest

from tests.packing.awkward import CASES, CHARACTERS, TEXTS
from tests.packing.conftest import Load
from tests.packing.test_words import words_of

MODELS = ["bert span", "deberta span", "demo"]

DELETED = "\x00\x07\x1b\x7f\x9f\u00ad\u200b\u200d\u200f\ufe0f\ufeff\ufffd\ud800\udfff\udc00"
"""What no model here has sub-tokens for."""
DELETED_BY_BERT = "\u0301\u2060\u202e\ue000\U00100000\U000e0041\u0e38"
"""What BERT's normaliser deletes beyond that: marks and what isn't assigned a meaning."""

WORDS = {
    "emoji with skin tone": ["👍", "🏽"],
    "joined emoji": ["👩", "\u200d", "👩", "\u200d", "👧"],
    "flag": ["🇵", "🇹"],
    "keycap": ["1", "\ufe0f", "\u20e3"],
    "decomposed letter": ["e", "\u0301"],
    "no-break space": [],
    "ideographic space": [],
    "line separator": [],
    "next line": [],
    "file separator": [],
    "surrogates in the wrong order": ["\udc00", "\ud800"],
}
"""Of the characters those that aren't one word each."""

PHRASES = {
    "words with hyphens": ("state-of-the-art a--b -c-", ["state-of-the-art", "a", "-", "-", "b", "-", "c", "-"]),
    "words with underscores": ("cold_brew __init__ _", ["cold_brew", "__init__", "_"]),
    "apostrophes": ("Maria's l’été", ["Maria", "'", "s", "l", "’", "été"]),
    "repeated separators": ("a,,b..c;;d", ["a", ",", ",", "b", ".", ".", "c", ";", ";", "d"]),
    "digits and letters": ("3.14 x2 1,000", ["3", ".", "14", "x2", "1", ",", "000"]),
    "e-mail": ("hi@a.example", ["hi", "@", "a", ".", "example"]),
    "page": ("https://a.b/c?d", ["https", ":", "/", "/", "a", ".", "b", "/", "c", "?", "d"]),
    "Han": ("瑪麗亞飛往里斯本。", ["瑪麗亞飛往里斯本", "。"]),
    "Thai": ("กรุงเทพ", ["กร", "\u0e38", "งเทพ"]),
    "mixed scripts": ("Lisbonリスボン Лиссабон", ["Lisbonリスボン", "Лиссабон"]),
    "special tokens": ("[SEP] <<ENT>>", ["[", "SEP", "]", "<", "<", "ENT", ">", ">"]),
    "deleted between letters": ("Lis\u200bbon\x00", ["Lis", "\u200b", "bon", "\x00"]),
    "surrogates between letters": ("Lis\ud800bon\udfff x", ["Lis", "\ud800", "bon", "\udfff", "x"]),
    "leading and trailing blanks": ("\n\t Lisbon \r\n\u3000", ["Lisbon"]),
}


def readable(words: list[str], model: str) -> list[str]:
    deleted = DELETED if model.startswith("deberta") else DELETED + DELETED_BY_BERT
    return [word for word in words if word not in deleted]


def texts_of(load: Load, model: str, text: str) -> list[str]:
    words = words_of(load(model)[0], text)
    return [text[start:end] for start, end in zip(words.starts, words.ends, strict=True)]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", CHARACTERS)
def test_a_character_is_read_as_what_it_is_or_deleted(load: Load, model: str, name: str) -> None:
    character = CHARACTERS[name]
    expected = readable(WORDS.get(name, [character]), model)
    assert texts_of(load, model, character) == expected
    assert texts_of(load, model, f"  {character} \n{character}") == 2 * expected


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", PHRASES)
def test_a_text_is_read_in_these_words(load: Load, model: str, name: str) -> None:
    text, words = PHRASES[name]
    assert texts_of(load, model, text) == readable(words, model)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", TEXTS)
def test_only_what_the_model_deletes_stands_between_the_words(load: Load, model: str, name: str) -> None:
    text = CASES[name].text
    words = words_of(load(model)[0], text)
    assert (words.starts < words.ends).all()
    assert (words.ends[:-1] <= words.starts[1:]).all()
    assert (np.diff(words.bounds) >= 1).all()
    assert (len(words.bounds), words.bounds[-1]) == (len(words) + 1, len(words.ids))
    edges = zip([0, *words.ends.tolist()], [*words.starts.tolist(), len(text)], strict=True)
    between = "".join(text[start:end] for start, end in edges)
    assert not [c for c in between if c.isalnum() and ord(c) < 0x10000]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        (" \t\n\u3000" * 50_000, 0),
        ("word " * 10_000, 10_000),
        ("a " * 500, 500),
        ("東 " * 500, 500),
        ("." * 5000, 5000),
        ("-_-" * 100, 300),
        ("a-b_" * 100, 1),
        ("x" * 1000, 1),
        ("x" * 1001, 2),
    ],
    ids=["empty", "blank", "10,000 words", "letters", "Han", "stops", "dashes", "joined", "1,000 long", "1,001 long"],
)
def test_as_many_words_are_read_as_there_are(load: Load, model: str, text: str, count: int) -> None:
    words = words_of(load(model)[0], text, max_word_tokens=1002)
    assert len(words) == count
    assert int((words.ends - words.starts).sum()) == sum(map(len, text.split()))
    assert len(words.ids) >= count


@pytest.mark.parametrize(("model", "pieces"), [("bert span", 1000), ("deberta span", 8000), ("demo", 1000)])
def test_a_word_of_a_million_characters_is_so_many_pieces(load: Load, model: str, pieces: int) -> None:
    text = "x" * 1_000_000
    words = words_of(load(model)[0], text, max_word_tokens=200)
    assert len(words) == pieces
    assert words.ends[-1] == len(text)
    assert len(words.ids) <= len(text) + pieces

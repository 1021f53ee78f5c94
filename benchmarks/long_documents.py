"""Texts longer than a model reads at once, with the entities that a human marked, whole and as passages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from packing import Engine
from training.corpora import Text, read_records, split_of, to_words, windows
from training.examples import group_of
from training.labels import plain

FILES: Final = ("sec_test", "wikigold", "sec_train", "gum_sa_all", "gum_train")

Span = tuple[int, int, str]
"""Start and end in code points, and the label."""


class LongDocument(NamedTuple):
    """A text with what is to be found in it.

    Attributes:
        corpus: The file it is from.
        held_out: Whether the bundled model wasn't trained on it.
        text: As words.
        gold: What a human marked in it.
        labels: Those of its corpus.
        limit: Offset of the first character that the model library cuts off.
    """

    corpus: str
    held_out: bool
    text: Text
    gold: list[Span]
    labels: tuple[str, ...]
    limit: int


class Passage(NamedTuple):
    """A part of a text, from `offset` on."""

    text: str
    offset: int


def read(data: Path, engine: Engine) -> list[LongDocument]:
    """Return all texts of the corpora that the model can't read at once.

    Raises:
        FileNotFoundError: A corpus isn't there; the message names the folder.
    """
    texts = [(name, to_words(record)) for name in FILES for record in read_records(data, name)]
    golds = [marked(text) for _, text in texts]
    labels: dict[str, set[str]] = defaultdict(set)
    for (_, text), gold in zip(texts, golds, strict=True):
        labels[group_of(text)].update(label for _, _, label in gold)
    found = []
    for (name, text), gold in zip(texts, golds, strict=True):
        asked = tuple(sorted(labels[group_of(text)]))
        limit = cut_at(engine, text.text, asked)
        if limit < len(text.text.rstrip()):
            held_out = split_of(name, text.id, text.source, frozenset(), text.text) == "test"
            found.append(LongDocument(name, held_out, text, gold, asked, limit))
    return found


def marked(text: Text) -> list[Span]:
    """Return what was marked in a text, under plain labels; what has none is left out."""
    return [
        (text.offsets[span.start][0], text.offsets[span.end][1], label)
        for span in text.spans
        if (label := plain(span.label))
    ]


def cut_at(engine: Engine, text: str, labels: Sequence[str]) -> int:
    """Return the offset after the last word that the model reads beside the labels."""
    prompt = engine._prompts(tuple((label, label) for label in labels)).whole
    room = engine.info.max_tokens - len(prompt.ids) - len(engine._tokenizer.suffix)
    words = list(engine._split_words(text))[: engine.info.max_words]
    _, counts = engine._tokenizer.encode([word for word, _, _ in words])
    read = int((counts.cumsum() <= room).sum())
    return words[read - 1][2] if read else 0


def passages(text: Text, most_words: int) -> Iterator[Passage]:
    """Cut a text at sentence starts, and never inside an entity, into passages of at most so many words."""
    at = 0
    for part in windows(text, most_words):
        yield Passage(part.text, text.offsets[at][0])
        at += len(part.words)


def strict(pairs: Iterable[tuple[Iterable[Span], Iterable[Span]]]) -> tuple[float, float, float]:
    """Return precision, recall and F1 in percent, of texts' found and marked entities, all together.

    An entity counts if its first and last character and its label are right, as in nervaluate's strict scheme.
    """
    right = given = wanted = 0
    for found, gold in pairs:
        found, gold = set(found), set(gold)
        right, given, wanted = right + len(found & gold), given + len(found), wanted + len(gold)
    return 100 * right / max(given, 1), 100 * right / max(wanted, 1), 200 * right / max(given + wanted, 1)

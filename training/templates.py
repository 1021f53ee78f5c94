"""Made-up texts of our own: sentences with slots, filled with words of many kinds.

The corpora mark few dates, products and events and few kinds altogether; these texts bring some seventy kinds.
Sentences (`templates.txt`) and words (`lexicon.txt`) were written for this project.
"""

import random
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from training.corpora import WORD, Text, align, find_sentences
from training.fillings import MADE, lexicon, read_lines, word

KIND_OF_PART = {
    "_first": "person",
    "_last": "person",
    "_region": "location",
    "_building": "location",
    "_company": "organization",
    "_agency": "organization",
    "_place_org": "organization",
    "_famous_event": "event",
}
"""Lists of words that are no kind of their own -> their label."""

TITLES = frozenset({"book", "film", "song", "tv series"})
"""Kinds whose article is part of the name."""

_SLOT = re.compile(r"\{([^}]+)\}")
_ARTICLE = re.compile(r"(?:the|an?) ", re.IGNORECASE)


@cache
def sentences() -> tuple[str, ...]:
    """Read the sentences with slots."""
    return tuple(line.replace("\\n", "\n") for line in read_lines("templates.txt"))


def kinds() -> frozenset[str]:
    """Give every label that these texts mark."""
    return frozenset(kind for kind in lexicon() if not kind.startswith("_")) | frozenset(MADE)


def fill(template: str, rng: random.Random) -> Text:
    """Fill a sentence's slots; an article at a filling's beginning is not part of the entity, nor said twice.

    Raises KeyError for a slot of an unknown kind.
    """
    text, entities, position = "", [], 0
    for slot in _SLOT.finditer(template):
        kind = slot.group(1)
        filling = MADE[kind](rng) if kind in MADE else word(rng, kind)
        text += template[position : slot.start()]
        article = _ARTICLE.match(filling)
        skipped = article.end() if article and kind not in TITLES else 0
        if skipped and re.search(r"\b(?:the|an?) $", text, re.IGNORECASE):
            filling, skipped = filling[skipped:], 0
        entities.append((len(text) + skipped, len(text) + len(filling), KIND_OF_PART.get(kind, kind)))
        text += filling
        position = slot.end()
    return mark(text + template[position:], entities)


def mark(text: str, entities: Iterable[tuple[int, int, str]]) -> Text:
    """Make a text of characters and their spans."""
    offsets = tuple(match.span() for match in WORD.finditer(text))
    spans, broken = align(offsets, entities)
    words = tuple(text[start:end] for start, end in offsets)
    starts = find_sentences(text, offsets, spans)
    return Text("template", "templates", text, words, offsets, tuple(spans), starts, broken)


def make_texts(count: int, rng: random.Random) -> list[Text]:
    """Make texts of one to five sentences, each filled anew."""
    lengths = (1, 1, 2, 3, 5)
    return [join([fill(rng.choice(sentences()), rng) for _ in range(rng.choice(lengths))], rng) for _ in range(count)]


def join(texts: list[Text], rng: random.Random) -> Text:
    """Put texts of one source one after the other, with a space or a line's end between them."""
    if len(texts) == 1:
        return texts[0]
    whole, entities = "", []
    for text in texts:
        if whole:
            whole += rng.choice((" ", " ", "\n", "\n\n"))
        entities += [
            (text.offsets[s.start][0] + len(whole), text.offsets[s.end][1] + len(whole), s.label) for s in text.spans
        ]
        whole += text.text
    joined = mark(whole, entities)
    broken = joined.broken.union(*(text.broken for text in texts))
    return replace(joined, id=texts[0].id, source=texts[0].source, licence=texts[0].licence, broken=broken)

"""Read the corpora: which file is for what, and its texts as words with the spans a human marked.

A corpus file holds one JSON object a line: `id`, `text`, `entities` (`start`, `end` in code points, `label`),
`source`, `license`. Everything that decides what may be trained on stands here and nowhere else.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

UNSEEN_DOMAINS = frozenset({"crossner/ai", "crossner/music"})
"""CrossNER domains no text of which is trained on, in any split: they show labels and texts never seen."""

TRAIN_FILES = (
    "btc_train",
    "wnut17_train",
    "wikigold",
    "crossner_train",
    "crossner_dev",
    "uner_en_ewt_dev",
    "gum_train",
    "gum_sa_all",
    "re3d",
    "sec_train",
    "stackoverflow_train",
)
DEV_FILES = ("btc_dev", "wnut17_dev", "wikigold", "crossner_dev")
TEST_FILES = ("wnut17_test", "btc_test", "wikigold", "crossner_test", "sec_test")
"""Files without a split of their own, or whose split is divided again, stand in several: `split_of` decides."""

DEV_SHARE = 5
"""One text in five of a file that serves both training and development goes to development."""

WIKIGOLD_TEST_FROM = 73
"""wikigold has no official split: its documents from this one on are the held-out half."""

WORD = re.compile(r"\w+(?:[-_]\w+)*|\S")
"""gliner's own "whitespace" splitter: what the model will be given as words."""

_SENTENCE_END = re.compile(r"(?:[.!?][\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9@#])|\n+)")


@dataclass(frozen=True)
class Span:
    """An entity: words `start` to `end`, both included, and the label the corpus gives it."""

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class Text:
    """A text of a corpus as words.

    `offsets` are each word's (start, end) in `text`; `sentence_starts` the word indices where a sentence
    begins, the first is 0; `broken` holds the labels of marked entities that don't begin and end with
    words; `licence` is the text's own.
    """

    id: str
    source: str
    text: str
    words: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]
    spans: tuple[Span, ...]
    sentence_starts: tuple[int, ...]
    broken: frozenset[str] = frozenset()
    licence: str = ""


def split_of(name: str, record_id: str, source: str, test_texts: frozenset[str], text: str) -> str | None:
    """Say what a record of a file is for: "train", "dev", "test", or None for nothing.

    `test_texts` are the normalised texts of all test splits: a text that stands among them is never trained
    on, nor a threshold chosen with it.
    """
    number = int(record_id.rsplit("-", 1)[-1]) if name in {"wikigold", "crossner_dev"} else 0
    if name == "wikigold":
        split = "test" if number >= WIKIGOLD_TEST_FROM else "dev" if number % DEV_SHARE == 0 else "train"
    elif name == "crossner_dev":
        split = "dev" if number % DEV_SHARE == 0 else "train"
    else:
        split = "test" if name in TEST_FILES else "dev" if name in DEV_FILES else "train"
    if split != "test" and (source in UNSEEN_DOMAINS or normalise(text) in test_texts):
        return None
    return split


def normalise(text: str) -> str:
    """Fold case and white space, so that a repeated text is recognised."""
    return " ".join(text.casefold().split())


def read_records(data: Path, name: str) -> list[dict[str, object]]:
    """Read a corpus file. Raises FileNotFoundError, naming the folder, where it is absent."""
    path = data / f"{name}.jsonl"
    if not path.is_file():
        raise FileNotFoundError(f"{path.name} is not in the data folder {data}: pass its folder with --data")
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_split(data: Path, split: str) -> dict[str, list[Text]]:
    """Read all texts of a split ("train", "dev", "test"), file by file, in file order."""
    wanted = {"train": TRAIN_FILES, "dev": DEV_FILES, "test": TEST_FILES}[split]
    tests = [(name, record) for name in TEST_FILES for record in read_records(data, name)]
    test_texts = frozenset(
        normalise(str(r["text"]))
        for name, r in tests
        if split_of(name, str(r["id"]), str(r["source"]), frozenset(), str(r["text"])) == "test"
    )
    return {
        name: [
            to_words(record)
            for record in read_records(data, name)
            if split_of(name, str(record["id"]), str(record["source"]), test_texts, str(record["text"])) == split
        ]
        for name in wanted
    }


def to_words(record: dict[str, object]) -> Text:
    """Turn a record with character spans into words with word spans."""
    text = str(record["text"])
    offsets = tuple(match.span() for match in WORD.finditer(text))
    entities = record["entities"]
    assert isinstance(entities, list)
    spans, broken = align(offsets, ((e["start"], e["end"], e["label"]) for e in entities))
    return Text(
        id=str(record["id"]),
        source=str(record["source"]),
        text=text,
        words=tuple(text[start:end] for start, end in offsets),
        offsets=offsets,
        spans=outermost(spans),
        sentence_starts=find_sentences(text, offsets, spans),
        broken=broken,
        licence=str(record["license"]),
    )


def align(
    offsets: tuple[tuple[int, int], ...], entities: Iterable[tuple[int, int, str]]
) -> tuple[list[Span], frozenset[str]]:
    """Turn character spans into word spans; the labels of those that cut through a word are given apart."""
    first = {start: index for index, (start, _) in enumerate(offsets)}
    last = {end: index for index, (_, end) in enumerate(offsets)}
    spans, broken = [], set()
    for start, end, label in entities:
        if start in first and end in last and first[start] <= last[end]:
            spans.append(Span(first[start], last[end], label))
        else:
            broken.add(label)
    return spans, frozenset(broken)


def outermost(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Drop each span that overlaps a longer one (the earlier of two as long), in the order of the text."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start - s.end, s.start)):
        if all(span.end < other.start or span.start > other.end for other in kept):
            kept.append(span)
    return tuple(sorted(kept, key=lambda s: s.start))


def find_sentences(text: str, offsets: tuple[tuple[int, int], ...], spans: Iterable[Span]) -> tuple[int, ...]:
    """Find the words that begin a sentence, by a rule; never a word inside an entity."""
    inside = {index for span in spans for index in range(span.start + 1, span.end + 1)}
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    starts, position = [0], 0
    for index, (start, _) in enumerate(offsets):
        begins = False
        while position < len(ends) and ends[position] <= start:
            position, begins = position + 1, True
        if begins and index > 0 and index not in inside:
            starts.append(index)
    return tuple(starts)


def windows(text: Text, max_words: int) -> Iterator[Text]:
    """Cut a text at sentence starts into pieces of at most `max_words` words, as long as they get.

    A sentence longer than that is cut at words that no entity spans; an entity of more words than that raises
    ValueError.
    """
    begin = 0
    while begin < len(text.words):
        limit = begin + max_words
        if limit >= len(text.words):
            end = len(text.words)
        else:
            end = max((s for s in text.sentence_starts if begin < s <= limit), default=limit)
            crossing = [s.start for s in text.spans if s.start < end <= s.end]
            end = min(crossing, default=end)
            if end <= begin:
                raise ValueError(f"an entity of {text.id} is longer than a window of {max_words} words")
        yield piece(text, begin, end)
        begin = end


def piece(text: Text, begin: int, end: int) -> Text:
    """Take words `begin` to `end` (not included) as a text of its own, offsets from its first character."""
    origin, stop = text.offsets[begin][0], text.offsets[end - 1][1]
    return Text(
        id=text.id,
        source=text.source,
        text=text.text[origin:stop],
        words=text.words[begin:end],
        offsets=tuple((start - origin, stop - origin) for start, stop in text.offsets[begin:end]),
        spans=tuple(
            Span(s.start - begin, s.end - begin, s.label) for s in text.spans if begin <= s.start and s.end < end
        ),
        sentence_starts=(0, *(s - begin for s in text.sentence_starts if begin < s < end)),
        broken=text.broken,
        licence=text.licence,
    )

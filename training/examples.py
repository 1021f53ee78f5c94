"""Texts -> training examples: which labels to ask of a text, in what words, and what the right answer is."""

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypedDict

from training.corpora import Text, align, outermost, piece
from training.labels import DEFAULT, FAR, OTHER_WORDS, TECHNICAL, WIDER, WIDEST, is_doubtful, plain
from training.patterns import PATTERNS, find
from training.templates import join, kinds, make_texts

MAX_WORDS = 120
"""Longest window, in words."""

MAX_LABELS = 10
"""Most labels of one prompt."""


class Example(TypedDict):
    """One training example in gliner's form: words, (first word, last word, label) and the labels asked."""

    tokenized_text: list[str]
    ner: list[tuple[int, int, str]]
    ner_labels: list[str]


@dataclass(frozen=True)
class Annotated:
    """A text and what is known about it: its spans, the labels that were looked for, and those in doubt."""

    text: Text
    known: frozenset[str]


def group_of(text: Text) -> str:
    """Name the annotation scheme of a text: the corpus, or for CrossNER its domain."""
    return text.source if text.source.startswith("crossner") else text.source.split("/")[0]


def annotate(texts: Iterable[Text]) -> list[Annotated]:
    """Give spans their plain names and add what rules find; say which labels were looked for in each text.

    A scheme's labels are those that any of its texts holds. A date inside a marked entity is none.
    """
    found = [_with_rules(text) for text in texts]
    schemes: dict[str, set[str]] = defaultdict(set)
    for text in found:
        schemes[group_of(text)].update(span.label for span in text.spans)
    return [Annotated(text, frozenset(schemes[group_of(text)] | set(PATTERNS))) for text in found]


def _with_rules(text: Text) -> Text:
    """Name the spans plainly and add the rules' spans where no marked entity is."""
    marked = [s for s in text.spans if s.label not in {"time expression", "time"}]
    taken = {index for s in marked for index in range(s.start, s.end + 1)}
    spans = []
    broken = {name for label in text.broken if (name := plain(label))}
    for span in marked:
        name = plain(span.label)
        if name is not None:
            spans.append(replace(span, label=name))
    for label in PATTERNS:
        aligned, cut = align(text.offsets, ((start, end, label) for start, end in find(label, text.text)))
        broken |= cut
        spans += [s for s in aligned if taken.isdisjoint(range(s.start, s.end + 1))]
    return replace(text, spans=outermost(spans), broken=frozenset(broken))


def cut(text: Text, rng: random.Random) -> list[Text]:
    """Cut a long text at sentences into windows of random lengths, single sentences among them."""
    starts = [*text.sentence_starts, len(text.words)]
    pieces, first = [], 0
    while first < len(starts) - 1:
        target = rng.choice((1, 1, 40, 80, MAX_WORDS))
        last = first + 1
        while last < len(starts) - 1 and starts[last + 1] - starts[first] <= target:
            last += 1
        begin, end = starts[first], starts[last]
        while end - begin > MAX_WORDS:
            middle = begin + MAX_WORDS
            middle = min((s.start for s in text.spans if s.start < middle <= s.end), default=middle)
            pieces.append(piece(text, begin, middle))
            begin = middle
        pieces.append(piece(text, begin, end))
        first = last
    return pieces


def make_example(text: Text, known: frozenset[str], rng: random.Random) -> Example:
    """Make one example of a window: choose labels and their words, and mark what answers them.

    Often only the default labels are asked, with finer ones folded into them; else fine labels by their wider
    name ("politician" as "person"), or as they are. A label with a doubtful span, or one that cuts through a
    word, is not asked here.
    """
    folding = rng.choices((WIDEST, WIDER, {}), weights=(45, 25, 30))[0]
    rename = {label: folding.get(label, label) for label in known}
    if folding is WIDEST and rng.random() < 0.8:
        rename = {label: name for label, name in rename.items() if name in DEFAULT}
    spans = [replace(s, label=rename[s.label]) for s in text.spans if s.label in rename]
    doubtful = {folding.get(label, label) for label in text.broken} | {
        s.label for s in spans if is_doubtful(text.source, s.label, " ".join(text.words[s.start : s.end + 1]))
    }
    present = {s.label for s in spans} - doubtful
    absent = set(rename.values()) - present - doubtful

    keep_all = rng.random() < 0.6
    asked = [label for label in sorted(present) if keep_all or label in DEFAULT or rng.random() < 0.7]
    rng.shuffle(asked)
    asked = asked[:MAX_LABELS]
    few = rng.choice((0, 1, 2, 5))
    ordinary = sorted(absent & DEFAULT)
    asked += [label for label in ordinary if rng.random() < 0.8]
    ruled = absent & PATTERNS.keys() - DEFAULT
    rest = sorted(absent - DEFAULT - ruled)
    asked += rng.sample(rest, min(few, len(rest))) + (rng.sample(sorted(ruled), 1) if ruled and few else [])
    if not text.source.startswith(TECHNICAL) and rng.random() < 0.2:
        asked += [label for label in rng.sample(FAR, 2) if label not in known]
    asked = asked[:MAX_LABELS] or sorted(absent)[:1] or [rng.choice(FAR)]
    rng.shuffle(asked)
    words = put_in_words(asked, rng)
    ner = [(s.start, s.end, words[s.label]) for s in spans if s.label in words]
    return {"tokenized_text": list(text.words), "ner": ner, "ner_labels": [words[label] for label in asked]}


def put_in_words(labels: list[str], rng: random.Random) -> dict[str, str]:
    """Choose a wording for each label: mostly its name, now and then another word; all distinct."""
    chosen: dict[str, str] = {}
    for label in labels:
        others = OTHER_WORDS.get(label, ())
        word = rng.choice(others) if others and rng.random() < 0.25 else label
        chosen[label] = label if word in chosen.values() or word in labels else word
    return chosen


SHARES = {
    "btc": 0.6,
    "wnut17": 0.8,
    "wikigold": 4.0,
    "crossner": 2.0,
    "uner-en-ewt-dev": 3.0,
    "gum": 0.6,
    "re3d": 1.0,
    "sec_filings": 0.5,
    "stackoverflow_ner": 0.3,
}
"""How often a corpus is read in one round, so that the large ones don't drown the small ones."""


SHORT_WORDS = 50
"""Texts up to this length are also joined, up to four of one scheme, so that one prompt serves several."""

TEMPLATE_TEXTS = 4_000
"""Made-up texts in one round."""


def make_round(texts: list[Annotated], rng: random.Random, made: int = TEMPLATE_TEXTS) -> list[Example]:
    """Make the examples of one round, shuffled: new windows and new labels every time.

    A round is the corpora, each as often as its share says, and so many made-up texts.
    """
    examples, short = [], defaultdict(list)
    for item in texts:
        share = SHARES[group_of(item.text).split("/")[0]]
        times = int(share) + (rng.random() < share % 1)
        for _ in range(times):
            if len(item.text.words) <= SHORT_WORDS:
                short[group_of(item.text)].append(item)
            else:
                examples += [make_example(window, item.known, rng) for window in cut(item.text, rng)]
    for items in short.values():
        rng.shuffle(items)
        while items:
            chosen = [items.pop() for _ in range(min(len(items), rng.choice((1, 1, 2, 3, 4))))]
            whole = join([item.text for item in chosen], rng)
            examples += [make_example(window, chosen[0].known, rng) for window in cut(whole, rng)]
    known = kinds() | PATTERNS.keys()
    examples += [make_example(text, known, rng) for text in make_texts(made, rng)]
    rng.shuffle(examples)
    return examples


def make_batches(examples: list[Example], words: int, rng: random.Random) -> list[list[Example]]:
    """Group examples of like length into batches of at most `words` words, padding counted; shuffled.

    An example longer than that is a batch of its own.
    """
    batches: list[list[Example]] = []
    batch: list[Example] = []
    for example in sorted(examples, key=lambda e: len(e["tokenized_text"]) + rng.random()):
        if batch and (len(batch) + 1) * len(example["tokenized_text"]) > words:
            batches.append(batch)
            batch = []
        batch.append(example)
    if batch:
        batches.append(batch)
    rng.shuffle(batches)
    return batches

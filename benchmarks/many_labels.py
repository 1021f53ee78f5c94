"""What it costs to ask for many labels: F1 by how many are asked, and by how many of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.long_documents import Span, marked, strict
from benchmarks.subject import answer
from benchmarks.texts import MORE_LABELS
from packing import Document, Engine
from packing.prompts import Prompts
from training.corpora import read_records, to_words

COUNTS: Final = (25, 50, 100)
CHUNKS: Final = {0: 0.1, 50: 0.7, 25: 0.82, 10: 0.9}
"""Labels at once (0: all), and the share left to the text that makes it so of labels as short as these."""

TEXTS: Final = 24
"""Of CrossNER's texts of one domain joined into one document, which no window holds."""

THRESHOLD: Final = 0.5


class Joined(NamedTuple):
    """Texts of one domain as one document."""

    text: str
    gold: list[Span]
    labels: list[str]


def documents(data: Path, most: int) -> list[Joined]:
    """Join texts of CrossNER's test split, domain by domain; at most so many documents of each."""
    domains: dict[str, list[tuple[str, list[Span]]]] = {}
    for record in read_records(data, "crossner_test"):
        words = to_words(record)
        domains.setdefault(words.source, []).append((words.text, marked(words)))
    joined = []
    for texts in domains.values():
        own = sorted({label for _, spans in texts for _, _, label in spans})
        for group in [texts[at : at + TEXTS] for at in range(0, len(texts), TEXTS)][:most]:
            text, gold = "", []
            for part, spans in group:
                gold += [(start + len(text), end + len(text), label) for start, end, label in spans]
                text += part + "\n"
            joined.append(Joined(text, gold, own))
    return joined


def measure(engine: Engine, data: Path, most: int, say: Callable[[str], None]) -> list[dict[str, float]]:
    """Return F1 for each number of labels and of labels at once.

    Each document is asked for its domain's own labels and for others that nobody marked, in the order of the alphabet,
    so that the own are scattered.
    """
    made = documents(data, most)
    rows = []
    for count in COUNTS:
        for size, share in CHUNKS.items():
            if size >= count:
                continue
            at_once = size or count
            chunked = _asking(engine, at_once, share)
            asked = [Document(one.text, _labels(one.labels, count), THRESHOLD) for one in made]
            prepared = chunked.prepare(asked)
            found = map(answer, chunked.infer(prepared))
            precision, recall, f1 = strict(zip(found, [one.gold for one in made], strict=True))
            (chunks,) = {one.label_chunks for one in prepared}
            assert chunks == -(-count // (at_once)), "the labels weren't asked in chunks of this size"
            rows.append(
                {
                    "labels": count,
                    "at_once": at_once,
                    "chunks": chunks,
                    "tokens": sum(one.tokens for one in prepared),
                    "precision": precision,
                    "recall": recall,
                    "f1": f1,
                }
            )
            say(f"{count} labels, {at_once} at once, {chunks} passes: F1 {f1:.1f}")
    return rows


def _labels(own: Sequence[str], count: int) -> list[str]:
    others = [label for label in MORE_LABELS if label not in own]
    return sorted([*own, *others][:count])


def _asking(engine: Engine, chunk_labels: int, text_share: float) -> Engine:
    """Return an engine with the same model that asks for so many labels at once."""
    prompts = Prompts(
        engine._tokenizer,
        ent_token="<<ENT>>",
        sep_token="<<SEP>>",
        max_tokens=engine.info.max_tokens,
        text_share=text_share,
        chunk_labels=chunk_labels,
    )
    return engine.with_parts(prompts=prompts)

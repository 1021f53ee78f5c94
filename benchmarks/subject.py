"""A model under measure: loaded as ours and as the library's, with the texts that it is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from benchmarks import library
from benchmarks.library import Answer, Question
from benchmarks.texts import LABELS, choose, shorten
from packing import Document, Engine, Result
from packing.engine import _rows
from packing.forward import Row

CANDIDATES: Final = 10
"""Spans above the threshold that a text has on average."""


@dataclass(frozen=True)
class Subject:
    """A model, loaded in float32, and what it is asked.

    Attributes:
        name: What it is called here.
        folder: Where its files are.
        engine: Ours.
        gliner: The library's.
        asked: The texts, each read whole by either, and what is asked of them.
        reference: The library's logits of each text alone, float32 `[W, K, C]`.
    """

    name: str
    folder: Path
    engine: Engine
    gliner: Any
    asked: Question
    reference: list[Tensor]


def open_subject(name: str, folder: Path, pool: Sequence[str], count: int) -> Subject:
    """Load a model and choose its texts and their threshold."""
    engine = Engine.load(folder, device="cpu", dtype="float32")
    gliner = library.load(folder, torch.float32)
    texts = whole(engine, gliner, chosen(engine, pool, count), LABELS)
    reference = [library.logits_alone(gliner, text, LABELS) for text in texts]
    return Subject(name, folder, engine, gliner, Question(texts, list(LABELS), threshold(reference)), reference)


def documents(asked: Question) -> list[Document]:
    """Return a document for each text."""
    return [Document(text, asked.labels, asked.threshold) for text in asked.texts]


def extract(engine: Engine, asked: Question) -> list[Answer]:
    """Answer with ours."""
    return [answer(result) for result in engine.extract(documents(asked))]


def answer(result: Result) -> Answer:
    """Return a result in the library's terms."""
    return {(entity.start, entity.end, entity.label): entity.score for entity in result.entities}


def rows(engine: Engine, texts: Sequence[str], labels: Sequence[str]) -> list[Row]:
    """Return what the forward reads for texts, one row for each as none is longer than a window."""
    made = _rows(engine.prepare([Document(text, labels) for text in texts]))
    assert len(made) == len(texts), "a text has no words, or more than one window"
    return made


def readable(engine: Engine, texts: Sequence[str]) -> list[str]:
    """Return the texts with a word in them, and none without sub-tokens: after such the library's offsets are off."""
    kept = []
    for text in texts:
        words = [word for word, _, _ in engine._split_words(text)]
        if words and engine._tokenizer.encode(words)[1].min() > 0:
            kept.append(text)
    return kept


def chosen(engine: Engine, pool: Sequence[str], count: int) -> list[str]:
    """Return some readable texts, with the pool's mix of lengths."""
    return choose(readable(engine, pool), count)


def whole(engine: Engine, gliner: Any, texts: Sequence[str], labels: Sequence[str]) -> list[str]:
    """Shorten the texts that the library doesn't read whole, or that take more than one of our windows."""

    def fits(text: str) -> bool:
        (one,) = engine.prepare([Document(text, labels)])
        return one.windows == one.label_chunks == 1 and library.reads_whole(gliner, text, labels)

    shortened = [shorten(text, [end for _, _, end in engine._split_words(text)], fits) for text in texts]
    if not all(library.reads_whole(gliner, text, labels) for text in shortened):
        raise RuntimeError("the library doesn't read all texts whole: times wouldn't be of the same work")
    return shortened


def threshold(reference: Sequence[Tensor]) -> float:
    """Return the threshold that leaves `CANDIDATES` spans a text, in the mean, of the texts' logits `[W, K, C]`."""
    scores = torch.cat([possible(logits) for logits in reference]).sigmoid().sort(descending=True).values
    kept = min(CANDIDATES * len(reference), len(scores) - 1)
    return float((scores[kept - 1] + scores[kept]) / 2)


def possible(logits: Tensor) -> Tensor:
    """Return the logits of the spans that end in the text, flat."""
    words, widths, _ = logits.shape
    return logits[torch.arange(words)[:, None] + torch.arange(widths) < words].flatten()

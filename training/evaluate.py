"""Strict scores on held-out texts: the share of entities found with exactly their words and their label."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from gliner import GLiNER
from nervaluate import Evaluator

from training.corpora import Text, windows
from training.examples import MAX_WORDS, group_of
from training.labels import UNUSED, plain

LOWEST_THRESHOLD = 0.1
"""Spans that score less are not kept for any threshold."""

THRESHOLDS = tuple(round(0.20 + 0.05 * step, 2) for step in range(13))
"""What a threshold is chosen from."""


@dataclass(frozen=True)
class Question:
    """A window of a held-out text, the labels asked of it, and what is right, as character spans."""

    text: str
    labels: tuple[str, ...]
    gold: tuple[tuple[int, int, str], ...]


@dataclass(frozen=True)
class Answer:
    """An entity the model found: characters `start` to `end` (not included), label, score in [0, 1]."""

    start: int
    end: int
    label: str
    score: float


@dataclass(frozen=True)
class Score:
    """Strict micro-averaged scores in [0, 1], and how many entities there were to find."""

    precision: float
    recall: float
    f1: float
    entities: int


def questions(texts: Iterable[Text]) -> list[Question]:
    """Cut texts into windows and ask of each the labels its annotation scheme has, the unused ones left out."""
    pieces = [window for text in texts for window in windows(text, MAX_WORDS)]
    schemes: dict[str, set[str]] = defaultdict(set)
    for window in pieces:
        schemes[group_of(window)].update(name for span in window.spans if (name := plain(span.label)))
    return [
        Question(
            text=window.text,
            labels=tuple(sorted(schemes[group_of(window)])),
            gold=tuple(
                (window.offsets[span.start][0], window.offsets[span.end][1], plain(span.label) or "")
                for span in window.spans
                if span.label not in UNUSED
            ),
        )
        for window in pieces
    ]


def answer(model: GLiNER, asked: list[Question], batch_size: int = 16) -> list[list[Answer]]:
    """Let the model answer, flat, keeping every span from `LOWEST_THRESHOLD` on; in the order asked."""
    answers: list[list[Answer]] = [[] for _ in asked]
    by_labels: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index, question in enumerate(asked):
        by_labels[question.labels].append(index)
    for labels, indices in by_labels.items():
        ordered = sorted(indices, key=lambda index: len(asked[index].text))
        texts = [asked[index].text for index in ordered]
        with torch.inference_mode():
            found = model.inference(
                texts, list(labels), flat_ner=True, threshold=LOWEST_THRESHOLD, batch_size=batch_size
            )
        for index, entities in zip(ordered, found, strict=True):
            answers[index] = [Answer(e["start"], e["end"], e["label"], e["score"]) for e in entities]
    return answers


def score(asked: list[Question], answers: list[list[Answer]], threshold: float) -> Score:
    """Score answers of at least the threshold with nervaluate's strict scheme, over all labels together.

    Taking the threshold afterwards gives what the model gives at that threshold: flat decoding lets a span
    stand in the way of lower ones only.
    """
    labels = sorted({label for question in asked for label in question.labels})
    gold = [[{"label": name, "start": s, "end": e} for s, e, name in question.gold] for question in asked]
    found = [
        [
            {"label": a.label, "start": a.start, "end": a.end}
            for a in sorted(row, key=lambda a: a.start)
            if a.score >= threshold
        ]
        for row in answers
    ]
    strict = Evaluator(gold, found, tags=labels, loader="dict").evaluate()["overall"]["strict"]
    return Score(strict.precision, strict.recall, strict.f1, strict.possible)


def by_scheme(texts: Iterable[Text]) -> dict[str, list[Text]]:
    """Group the texts of a file by their annotation scheme: one group, or CrossNER's five domains."""
    groups: dict[str, list[Text]] = defaultdict(list)
    for text in texts:
        groups[group_of(text)].append(text)
    return dict(groups)


def choose_threshold(sets: Iterable[tuple[list[Question], list[list[Answer]]]]) -> float:
    """Choose the threshold with the highest mean F1 over the sets; the lowest such one."""
    rows = list(sets)
    means = {t: sum(score(asked, answers, t).f1 for asked, answers in rows) / len(rows) for t in THRESHOLDS}
    return max(means, key=lambda threshold: (means[threshold], -threshold))

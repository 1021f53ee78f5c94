"""Two answers for one text that are the same but for scores too close to tell apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from packing import Document, Entity
from packing.overlap import Candidate
from packing.windows import Window
from packing.words import Words

TIE = 1e-5
"""The library itself differs from itself by this much: entities this close to the threshold or to each other may."""

Spans = Mapping[tuple[int, int, str], float]


def of_result(entities: Iterable[Entity]) -> Spans:
    """Return the scores of the engine's answer by span and label."""
    return {(e.start, e.end, e.label): e.score for e in entities}


def of_library(answer: Iterable[Mapping[str, Any]]) -> Spans:
    """Return the scores of the model library's answer by span and label."""
    return {(e["start"], e["end"], e["label"]): float(e["score"]) for e in answer}


def of_candidates(words: Words, window: Window, candidates: Iterable[Candidate], labels: Sequence[str]) -> Spans:
    """Return the scores of a window's candidates by span and label, with offsets in the window's own text."""
    offset = int(words.starts[window.start])
    return {
        (
            int(words.starts[window.start + c.start]) - offset,
            int(words.ends[window.start + c.end - 1]) - offset,
            labels[c.label],
        ): c.score
        for c in candidates
    }


def differences(document: Document, ours: Spans, theirs: Spans) -> list[tuple[int, int, str]]:
    """Return the entities on which two answers differ and no tie is to blame.

    Shared ones must have the same score. Of the others a tie is to blame if its score lies at its threshold, or if
    another that shares text with it has the same score; and for all that such an entity let in or kept out.
    """
    wrong = [span for span in ours.keys() & theirs.keys() if abs(ours[span] - theirs[span]) > TIE]
    odd = {span: score for span, score in {**ours, **theirs}.items() if (span in ours) != (span in theirs)}
    rivals = {
        span: [other for other in odd if other != span and other[0] < span[1] and span[0] < other[1]] for span in odd
    }
    excused = [
        span
        for span, score in odd.items()
        if abs(score - document.threshold_of(span[2])) <= TIE
        or any(abs(score - odd[other]) <= TIE for other in rivals[span] if (other in ours) != (span in ours))
    ]
    reached = set(excused)
    while excused:
        for other in rivals[excused.pop()]:
            if other not in reached:
                reached.add(other)
                excused.append(other)
    return sorted([*wrong, *(odd.keys() - reached)])

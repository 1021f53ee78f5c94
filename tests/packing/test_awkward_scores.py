"""Awkward scores: which spans they let in, and which of these may stand beside each other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from packing import Overlap
from packing.overlap import Candidate, select
from tests.packing.test_decode import KINDS, answers, chosen, decoded, library, random_scores, row

MODES: list[Overlap] = ["flat", "nested", "multi"]

Spans = Sequence[tuple[int, int, int, float]]

STAIRCASE = [(at, at + 2, 0, (100 - at) / 100) for at in range(20)]
EVERY_OTHER = list(range(0, 20, 2))
ONION = [(at, 40 - at, 0, (at + 1) / 100) for at in range(20)]
MANY_LABELS = [(3, 5, label, (label + 1) / 100) for label in range(20)]

CHOICES: dict[str, tuple[Spans, list[int], list[int], list[int]]] = {
    "none": ([], [], [], []),
    "one": ([(2, 5, 0, 0.7)], [0], [0], [0]),
    "adjacent": ([(0, 2, 0, 0.6), (2, 4, 0, 0.9)], [0, 1], [0, 1], [0, 1]),
    "apart": ([(7, 9, 0, 0.6), (0, 2, 0, 0.9)], [0, 1], [0, 1], [0, 1]),
    "touching in one word, the first better": ([(0, 3, 0, 0.9), (2, 4, 0, 0.8)], [0], [0], [0]),
    "touching in one word, the second better": ([(0, 3, 0, 0.8), (2, 4, 0, 0.9)], [1], [1], [1]),
    "same start": ([(0, 2, 0, 0.8), (0, 3, 0, 0.9)], [1], [0, 1], [0, 1]),
    "same end": ([(0, 3, 0, 0.8), (2, 3, 0, 0.9)], [1], [0, 1], [0, 1]),
    "one inside another": ([(0, 5, 0, 0.9), (2, 3, 1, 0.8)], [0], [0, 1], [0, 1]),
    "two inside a worse one": ([(0, 6, 0, 0.7), (0, 2, 1, 0.8), (4, 6, 1, 0.9)], [1, 2], [0, 1, 2], [0, 1, 2]),
    "one span with two labels": ([(1, 3, 0, 0.8), (1, 3, 1, 0.9)], [1], [1], [0, 1]),
    "one span with two labels of one score": ([(1, 3, 1, 0.9), (1, 3, 0, 0.9)], [0], [0], [0, 1]),
    "one word with three labels": ([(1, 2, 0, 0.7), (1, 2, 1, 0.9), (1, 2, 2, 0.8)], [1], [1], [0, 1, 2]),
    "two labels inside another": ([(0, 4, 0, 0.7), (1, 2, 1, 0.9), (1, 2, 2, 0.8)], [1], [0, 1], [0, 1, 2]),
    "two labels across another": ([(0, 3, 0, 0.8), (2, 5, 0, 0.9), (2, 5, 1, 0.7)], [1], [1], [1, 2]),
    "a chain, its middle worst": ([(0, 3, 0, 0.9), (2, 6, 0, 0.7), (5, 8, 0, 0.8)], [0, 2], [0, 2], [0, 2]),
    "a chain, its middle best": ([(0, 3, 0, 0.8), (2, 6, 0, 0.9), (5, 8, 0, 0.7)], [1], [1], [1]),
    "a chain that frees its last": ([(0, 3, 0, 0.9), (2, 6, 0, 0.8), (5, 9, 0, 0.7)], [0, 2], [0, 2], [0, 2]),
    "equal scores across": ([(0, 3, 0, 0.5), (2, 4, 0, 0.5), (3, 5, 0, 0.5)], [0, 2], [0, 2], [0, 2]),
    "equal scores inside": ([(0, 3, 0, 0.5), (1, 2, 0, 0.5)], [0], [0, 1], [0, 1]),
    "a score of zero": ([(0, 3, 0, 0.0), (4, 5, 0, 0.0)], [0, 1], [0, 1], [0, 1]),
    "a score of zero beside one": ([(0, 3, 0, 0.0), (2, 4, 0, 1.0)], [1], [1], [1]),
    "20 in a staircase": (STAIRCASE, EVERY_OTHER, EVERY_OTHER, EVERY_OTHER),
    "20 in one another": (ONION, [19], list(range(20)), list(range(20))),
    "one span with 20 labels": (MANY_LABELS, [19], [19], list(range(20))),
}


@pytest.mark.parametrize("mode", range(3), ids=MODES)
@pytest.mark.parametrize("name", CHOICES)
def test_these_of_the_spans_stay(name: str, mode: int) -> None:
    spans, *kept = CHOICES[name]
    candidates = [Candidate(*span) for span in spans]
    overlap = MODES[mode]
    taken = select(candidates, overlap)
    assert sorted(taken) == sorted(candidates[i] for i in kept[mode])
    assert [c.score for c in taken] == sorted((c.score for c in taken), reverse=True)
    if len({c.score for c in candidates}) == len(candidates):
        assert select(reversed(candidates), overlap) == taken


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("threshold", "spans"), [(0.0, 10), (0.49999, 10), (0.5, 0), (1.0, 0)])
def test_logits_of_zero_are_scores_of_a_half(kind: str, threshold: float, spans: int) -> None:
    zeros = torch.zeros((4, 4, 2) if kind == "span" else (4, 2, 3))
    found = decoded(kind, zeros, (threshold,) * 2)
    assert [c.score for c in found] == [0.5] * 2 * spans


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label_count", [1, 100])
@pytest.mark.parametrize("logit", [-2.0, 0.5, 3.0])
def test_a_single_word_is_at_most_an_entity_of_each_label(kind: str, label_count: int, logit: float) -> None:
    scores = torch.full((1, 12, label_count) if kind == "span" else (1, label_count, 3), logit)
    found = decoded(kind, scores, (0.5,) * label_count)
    assert [(c.start, c.end, c.label) for c in found] == [(0, 1, label) for label in range(label_count) if logit > 0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("largest", [100.0, 1e4, 3e38])
def test_scores_as_large_as_single_precision_has_are_scores(kind: str, largest: float) -> None:
    shape = (3, 2, 2) if kind == "span" else (3, 2, 3)
    sure = decoded(kind, torch.full(shape, largest), (0.5, 0.999))
    assert {(c.score, c.label) for c in sure} == {(1.0, 0), (1.0, 1)}
    assert decoded(kind, torch.full(shape, largest), (1.0, 1.0)) == []
    assert decoded(kind, torch.full(shape, -largest), (0.0, 0.5)) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("overlap", MODES)
def test_a_hundred_labels_are_decoded_as_the_library_does(kind: str, overlap: Overlap) -> None:
    scores = random_scores(kind, 6, 100, seed=3)
    found = chosen(decoded(kind, scores, (0.7,) * 100), overlap)
    assert found == pytest.approx(library(kind, scores, 0.7, overlap), abs=2**-23)
    assert len(found) > 1


@pytest.mark.parametrize("kind", KINDS)
def test_64_rows_with_labels_of_their_own_are_decoded_as_each_alone(kind: str) -> None:
    shapes = [(1 + 7 * i % 23, 1 + 5 * i % 9) for i in range(64)]
    scores = [random_scores(kind, words, labels, seed=i) for i, (words, labels) in enumerate(shapes)]
    thresholds = [
        [0.2 + 0.7 * ((i + label) % 5) / 5 for label in range(labels)] for i, (_, labels) in enumerate(shapes)
    ]
    rows = [row(own, document) for document, own in enumerate(thresholds)]
    together = answers(kind, scores, rows).candidates()
    assert together == [decoded(kind, own, limits) for own, limits in zip(scores, thresholds, strict=True)]
    assert sum(map(bool, together)) > 50

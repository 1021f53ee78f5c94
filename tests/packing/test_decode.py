from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from gliner.decoding.decoder import SpanDecoder, TokenDecoder
from torch import Tensor

from packing import BadScores, Overlap, TooManyEntities, decode
from packing.decode import Answers
from packing.forward import Row
from packing.overlap import Candidate, select
from packing.prompts import Prompt

FLAGS: dict[Overlap, tuple[bool, bool]] = {"flat": (True, False), "nested": (False, False), "multi": (False, True)}
KINDS = ["span", "token"]
ROUNDING = 2**-23
"""The library's own scores differ by that much with the place of a number in its tensor."""

Span = tuple[int, int, int]


def row(thresholds: Sequence[float], document: int = 0) -> Row:
    labels = tuple(str(i) for i in range(len(thresholds)))
    return Row(Prompt(0, labels, ()), np.ones(1, np.int32), np.ones(1, np.int32), tuple(thresholds), document)


def answers(kind: str, scores: Sequence[Tensor], rows: Sequence[Row]) -> Answers:
    """Decode the rows as one pack, in the reverse of their order."""
    made = Answers(rows, scores[0].shape[1] if kind == "span" else None)
    order = list(reversed(range(len(rows))))
    flat = torch.cat([scores[i].flatten() for i in order])
    made.add(flat, [(scores[i].shape[0], scores[i].shape[1], scores[i].shape[2]) for i in order], order)
    return made


def decoded(kind: str, scores: Tensor, thresholds: Sequence[float]) -> list[Candidate]:
    return answers(kind, [scores], [row(thresholds)]).candidates()[0]


def library(kind: str, scores: Tensor, threshold: float, overlap: Overlap = "flat") -> dict[Span, float]:
    decoder: Any = SpanDecoder(None) if kind == "span" else TokenDecoder(None)
    labels = scores.shape[2] if kind == "span" else scores.shape[1]
    flat, multi = FLAGS[overlap]
    spans = decoder.decode(
        [["w"] * scores.shape[0]],
        {c + 1: str(c) for c in range(labels)},
        scores[None],
        flat_ner=flat,
        threshold=threshold,
        multi_label=multi,
    )[0]
    return {(s.start, s.end + 1, int(s.entity_type)): s.score for s in spans}


def chosen(candidates: list[Candidate], overlap: Overlap = "flat") -> dict[Span, float]:
    return {(c.start, c.end, c.label): c.score for c in select(candidates, overlap)}


def random_scores(kind: str, words: int, labels: int, seed: int, *, ties: bool = False, width: int = 5) -> Tensor:
    shape = (words, width, labels) if kind == "span" else (words, labels, 3)
    scores = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 2
    return scores.round() if ties else scores


def assert_same(found: list[Candidate], tried: list[Candidate]) -> None:
    assert [c[:3] for c in found] == [c[:3] for c in tried]
    assert [c.score for c in found] == pytest.approx([c.score for c in tried], abs=ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("overlap", FLAGS)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.3, 0.5, 0.9, 1.0])
def test_many_rows_at_once_give_the_librarys_entities_with_its_scores(
    kind: str, overlap: Overlap, ties: bool, threshold: float
) -> None:
    shapes = [(17, 4), (1, 1), (3, 2), (25, 1), (4, 9), (1, 30)]
    scores = [random_scores(kind, words, labels, i, ties=ties) for i, (words, labels) in enumerate(shapes)]
    rows = [row([threshold] * labels, i) for i, (_, labels) in enumerate(shapes)]
    found = answers(kind, scores, rows).candidates()
    assert any(found) or threshold == 1
    for own, candidates in zip(scores, found, strict=True):
        assert chosen(candidates, overlap) == pytest.approx(library(kind, own, threshold, overlap), abs=ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
def test_each_label_of_each_row_has_its_own_threshold(kind: str) -> None:
    random = np.random.default_rng(0)
    scores = [random_scores(kind, 12, labels, seed=labels) for labels in (3, 1, 6)]
    rows = [row(random.uniform(0.2, 0.9, labels).tolist()) for labels in (3, 1, 6)]
    found = answers(kind, scores, rows).candidates()
    for own, one, candidates in zip(scores, rows, found, strict=True):
        by_label = []
        for label, threshold in enumerate(one.thresholds):
            column = own[..., [label]] if kind == "span" else own[:, [label]]
            alone = decoded(kind, column, (threshold,))
            by_label += [c._replace(label=label) for c in alone]
        assert sorted(candidates) == sorted(by_label)
    assert any(found)


@pytest.mark.parametrize("threshold", [0.0, 0.4, 0.6])
def test_token_candidates_are_what_trying_every_span_gives(threshold: float) -> None:
    scores = random_scores("token", 14, 3, seed=1) + 1
    start, end, inside = scores.sigmoid().unbind(-1)
    tried = []
    for first, label in itertools.product(range(14), range(3)):
        for last in range(first, 14):
            insides = inside[first : last + 1, label]
            if start[first, label] > threshold and end[last, label] > threshold and (insides >= threshold).all():
                least = min(start[first, label].item(), end[last, label].item(), insides.min().item())
                tried.append(Candidate(first, last + 1, label, least))
    assert_same(decoded("token", scores, (threshold,) * 3), tried)


def test_span_candidates_come_by_start_length_and_label() -> None:
    scores = random_scores("span", 14, 3, seed=1)
    probabilities = scores.sigmoid()
    tried = [
        Candidate(word, word + k + 1, label, probabilities[word, k, label].item())
        for word, k, label in itertools.product(range(14), range(5), range(3))
        if probabilities[word, k, label] > 0.4 and word + k < 14
    ]
    assert_same(decoded("span", scores, (0.4,) * 3), tried)


def test_no_span_reaches_past_the_last_word() -> None:
    found = decoded("span", torch.full((3, 4, 1), 5.0), (0.5,))
    assert [(c.start, c.end) for c in found] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_must_exceed_its_threshold(kind: str) -> None:
    scores = torch.zeros((1, 1, 3) if kind == "span" else (1, 3, 3))  # a score of exactly 0.5
    assert [c.label for c in decoded(kind, scores, (0.4, 0.5, 0.6))] == [0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threshold", [1e-30, 1e-6, 0.1, 0.3, 0.7, 0.999999, 1 - 2**-24])
def test_a_score_is_compared_with_its_threshold_as_the_library_compares_them(kind: str, threshold: float) -> None:
    # thresholds that lie between two numbers of single precision, and scores all around the nearer of them
    at = torch.logit(torch.tensor(threshold, dtype=torch.float64)).float()
    around = torch.cat([at + at.abs().clamp(min=1) * torch.arange(-40, 41) * 2**-24, at + torch.linspace(-2, 2, 41)])
    scores = around[:, None, None] if kind == "span" else torch.stack([around, around, torch.full_like(around, 30)], -1)
    scores = scores if kind == "span" else scores[:, None]
    found, right = chosen(decoded(kind, scores, (threshold,))), library(kind, scores, threshold)
    for span in found.keys() & right.keys():
        assert found[span] == pytest.approx(right[span], rel=2 * ROUNDING)
    # at the last bit the library's own answer depends on the number's place in the tensor
    odd = [(found | right)[span] for span in found.keys() ^ right.keys()]
    assert odd == pytest.approx([float(np.float32(threshold))] * len(odd), rel=2 * ROUNDING)
    assert 0 < len(found) < len(around)


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_candidates_as_a_document_may_have_and_not_one_more(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = torch.full((4, 2, 3), 5.0) if kind == "span" else torch.full((4, 3, 3), 5.0)
    one = len(decoded(kind, scores, (0.5,) * 3))
    assert one == (21 if kind == "span" else 30)
    monkeypatch.setattr(decode, "MAX_CANDIDATES", 2 * one)
    rows = [row((0.5,) * 3, document) for document in (0, 1, 0, 1)]
    found = answers(kind, [scores] * 4, rows).candidates()
    assert [len(candidates) for candidates in found] == [one] * 4
    monkeypatch.setattr(decode, "MAX_CANDIDATES", 2 * one - 1)
    answers(kind, [scores] * 2, rows[:2])
    with pytest.raises(TooManyEntities, match=f"more than {2 * one - 1} spans"):
        answers(kind, [scores] * 4, rows)


@pytest.mark.parametrize("kind", KINDS)
def test_a_documents_candidates_are_counted_over_its_packs(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = torch.full((4, 2, 3), 5.0) if kind == "span" else torch.full((4, 3, 3), 5.0)
    shape = (scores.shape[0], scores.shape[1], 3)
    monkeypatch.setattr(decode, "MAX_CANDIDATES", 2 * len(decoded(kind, scores, (0.5,) * 3)) - 1)
    made = Answers([row((0.5,) * 3)] * 2, 2 if kind == "span" else None)
    made.add(scores.flatten(), [shape], [0])
    with pytest.raises(TooManyEntities):
        made.add(scores.flatten(), [shape], [1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_no_number_is_an_error_that_names_its_documents(kind: str, wrong: float) -> None:
    scores = [random_scores(kind, 6, 3, seed) for seed in range(5)]
    scores[1][1, 2, 0] = scores[3][5, 0, 2] = wrong
    with pytest.raises(BadScores) as caught:
        answers(kind, scores, [row((0.5,) * 3, document) for document in (0, 0, 1, 2, 3)]).candidates()
    assert caught.value.documents == (0, 2)


def test_a_bad_row_is_never_refused_for_too_many_entities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "MAX_CANDIDATES", 3)
    scores = torch.full((4, 2, 3), float("inf"))
    with pytest.raises(BadScores):
        answers("span", [scores], [row((0.5,) * 3)]).candidates()


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), float("-inf")])
def test_what_stands_past_the_last_word_is_of_no_matter(wrong: float) -> None:
    scores = [random_scores("span", words, 2, words) for words in (6, 2, 9)]
    rows = [row((0.5,) * 2)] * 3
    clean = answers("span", scores, rows).candidates()
    for own in scores:
        own[-1, 1:] = wrong
    assert answers("span", scores, rows).candidates() == clean
    assert any(clean)

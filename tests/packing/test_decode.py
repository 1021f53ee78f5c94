from __future__ import annotations

from typing import Any

import pytest
import torch
from gliner.decoding.decoder import SpanDecoder, TokenDecoder

from packing import BadScores, TooManyEntities
from packing.decode import span_candidates, token_candidates
from packing.overlap import select


def library(decoder: Any, logits: torch.Tensor, threshold: float) -> set[tuple[int, int, str]]:
    words, labels = logits.shape[0], logits.shape[2] if logits.shape[-1] != 3 else logits.shape[1]
    spans = decoder.decode(
        [["w"] * words],
        {c + 1: str(c) for c in range(labels)},
        logits[None],
        flat_ner=True,
        threshold=threshold,
    )[0]
    return {(s.start, s.end + 1, s.entity_type) for s in spans}


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_span_scores_give_the_librarys_entities(threshold: float, seed: int) -> None:
    logits = torch.randn(17, 5, 4, generator=torch.Generator().manual_seed(seed))
    chosen = select(span_candidates(logits, (threshold,) * 4), "flat")
    assert {(c.start, c.end, str(c.label)) for c in chosen} == library(SpanDecoder(None), logits, threshold)


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_token_scores_give_the_librarys_entities(threshold: float, seed: int) -> None:
    logits = torch.randn(17, 4, 3, generator=torch.Generator().manual_seed(seed))
    chosen = select(token_candidates(logits, (threshold,) * 4), "flat")
    assert {(c.start, c.end, str(c.label)) for c in chosen} == library(TokenDecoder(None), logits, threshold)


def test_no_span_reaches_past_the_last_word() -> None:
    found = span_candidates(torch.full((3, 4, 1), 5.0), (0.5,))
    assert [(c.start, c.end) for c in found] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_each_label_has_its_own_threshold_and_must_exceed_it() -> None:
    logits = torch.zeros(1, 1, 3)  # a score of exactly 0.5
    assert [c.label for c in span_candidates(logits, (0.4, 0.5, 0.6))] == [0]
    assert [c.label for c in token_candidates(torch.zeros(1, 3, 3), (0.4, 0.5, 0.6))] == [0]


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.7])
def test_a_score_is_compared_with_its_threshold_as_the_library_compares_them(threshold: float) -> None:
    # thresholds that lie between two numbers of single precision, and a score that is the nearer of them
    nearest = torch.tensor(threshold)
    logits = torch.logit(nearest.double()).float() + torch.arange(-3, 4) * 1e-7
    logits = torch.cat([logits, torch.logit(nearest)[None]])[:, None]
    assert (logits.sigmoid() == nearest).any()
    spans, tokens = logits[:, None], torch.stack([logits, logits, torch.full_like(logits, 9.0)], -1)
    chosen = select(span_candidates(spans, (threshold,)), "flat")
    assert {(c.start, c.end, "0") for c in chosen} == library(SpanDecoder(None), spans, threshold)
    chosen = select(token_candidates(tokens, (threshold,)), "flat")
    assert {(c.start, c.end, "0") for c in chosen} == library(TokenDecoder(None), tokens, threshold)


def test_as_many_candidates_as_are_allowed_and_not_one_more() -> None:
    spans, tokens = torch.full((4, 2, 3), 5.0), torch.full((4, 3, 3), 5.0)
    assert len(span_candidates(spans, (0.5,) * 3, 21)) == 21
    assert len(token_candidates(tokens, (0.5,) * 3, 30)) == 30
    with pytest.raises(TooManyEntities, match="more than 1,000,000 spans"):
        span_candidates(spans, (0.5,) * 3, 20)
    with pytest.raises(TooManyEntities, match="more than 1,000,000 spans"):
        token_candidates(tokens, (0.5,) * 3, 29)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_no_number_is_an_error_and_never_an_empty_answer(wrong: float) -> None:
    logits = torch.zeros(2, 3, 3)
    logits[1, 2, 0] = wrong
    for decode in (span_candidates, token_candidates):
        with pytest.raises(BadScores):
            decode(logits, (0.5,) * 3)

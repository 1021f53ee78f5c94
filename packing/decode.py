"""Scores of one row -> candidate spans."""

from __future__ import annotations

import torch
from torch import Tensor

from packing.errors import BadScores
from packing.overlap import Candidate


def span_candidates(logits: Tensor, thresholds: tuple[float, ...]) -> list[Candidate]:
    """Decode the scores of a span model.

    Args:
        logits: `[W, K, C]`: of the span of `k + 1` words from word `w`, for label `c`.
        thresholds: One per label.

    Returns:
        Candidates by start, then length, then label.

    Raises:
        BadScores: A logit is NaN or infinite.
    """
    scores, limits = _scores(logits, thresholds)
    words, widths, _ = scores.shape
    last = torch.arange(words, device=scores.device)[:, None] + torch.arange(widths, device=scores.device)
    above = (scores > limits) & (last < words)[..., None]
    where = above.nonzero().tolist()
    values = scores[above].tolist()
    return [Candidate(w, w + k + 1, c, score) for (w, k, c), score in zip(where, values, strict=True)]


def token_candidates(logits: Tensor, thresholds: tuple[float, ...]) -> list[Candidate]:
    """Decode the scores of a token-level model.

    A span's first word must exceed the threshold as a start and its last as an end; all its words must reach
    it as insides. Its score is the least of these.

    Args:
        logits: `[W, C, 3]`: of word `w` as start, end and inside of an entity with label `c`.
        thresholds: One per label.

    Returns:
        Candidates by start, then label, then length.

    Raises:
        BadScores: A logit is NaN or infinite.
    """
    scores, _ = _scores(logits, thresholds)
    start, end, inside = scores.cpu().double().unbind(-1)
    limits = torch.tensor(thresholds, dtype=torch.float64)
    starts = (start > limits).nonzero().tolist()
    start_scores, end_scores, inside_scores = start.tolist(), end.tolist(), inside.tolist()
    found: list[Candidate] = []
    for first, label in starts:
        limit = thresholds[label]
        least = start_scores[first][label]
        for word in range(first, len(inside_scores)):
            if inside_scores[word][label] < limit:
                break
            least = min(least, inside_scores[word][label])
            if end_scores[word][label] > limit:
                found.append(Candidate(first, word + 1, label, min(least, end_scores[word][label])))
    return found


def _scores(logits: Tensor, thresholds: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    if not torch.isfinite(logits).all():
        raise BadScores("the model gave scores that are NaN or infinite; another dtype or device may help")
    return logits.float().sigmoid(), torch.tensor(thresholds, dtype=torch.float32, device=logits.device)

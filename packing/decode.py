"""Scores of one row -> candidate spans."""

from __future__ import annotations

import torch
from torch import Tensor

from packing.errors import BadScores, TooManyEntities
from packing.overlap import Candidate

MAX_CANDIDATES = 1_000_000
"""Spans above their threshold that one document may have, before the best are chosen: some 150 MB. A text of
a full window, with 200 labels and the threshold 0, stays below."""


def span_candidates(logits: Tensor, thresholds: tuple[float, ...], most: int = MAX_CANDIDATES) -> list[Candidate]:
    """Decode the scores of a span model.

    Args:
        logits: `[W, K, C]`: of the span of `k + 1` words from word `w`, for label `c`.
        thresholds: One per label.
        most: How many candidates there may be.

    Returns:
        Candidates by start, then length, then label.

    Raises:
        BadScores: A logit is NaN or infinite.
        TooManyEntities: There are more than `most` candidates.
    """
    scores, limits = _scores(logits, thresholds)
    words, widths, _ = scores.shape
    last = torch.arange(words, device=scores.device)[:, None] + torch.arange(widths, device=scores.device)
    above = (scores > limits) & (last < words)[..., None]
    if int(above.count_nonzero()) > most:
        raise _too_many()
    where = above.nonzero().tolist()
    values = scores[above].tolist()
    return [Candidate(w, w + k + 1, c, score) for (w, k, c), score in zip(where, values, strict=True)]


def token_candidates(logits: Tensor, thresholds: tuple[float, ...], most: int = MAX_CANDIDATES) -> list[Candidate]:
    """Decode the scores of a token-level model.

    A span's first word must exceed the threshold as a start and its last as an end; all its words must reach
    it as insides. Its score is the least of these.

    Args:
        logits: `[W, C, 3]`: of word `w` as start, end and inside of an entity with label `c`.
        thresholds: One per label.
        most: How many candidates there may be.

    Returns:
        Candidates by start, then label, then length.

    Raises:
        BadScores: A logit is NaN or infinite.
        TooManyEntities: There are more than `most` candidates.
    """
    scores, limits = _scores(logits, thresholds)
    start, end, inside = scores.unbind(-1)
    starts, ends = (start > limits).nonzero().tolist(), (end > limits).tolist()
    start_scores, end_scores, inside_scores = start.tolist(), end.tolist(), inside.tolist()
    found: list[Candidate] = []
    for first, label in starts:
        # In double precision, unlike starts and ends: so the library compares insides, and so does this.
        limit = thresholds[label]
        least = start_scores[first][label]
        for word in range(first, len(inside_scores)):
            if inside_scores[word][label] < limit:
                break
            least = min(least, inside_scores[word][label])
            if ends[word][label]:
                if len(found) == most:
                    raise _too_many()
                found.append(Candidate(first, word + 1, label, min(least, end_scores[word][label])))
    return found


def _too_many() -> TooManyEntities:
    return TooManyEntities(
        f"more than {MAX_CANDIDATES:,} spans of the text exceed their threshold: "
        "ask with a higher threshold or for fewer labels"
    )


def _scores(logits: Tensor, thresholds: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    if not torch.isfinite(logits).all():
        raise BadScores("the model gave scores that are NaN or infinite; another dtype or device may help")
    return logits.float().sigmoid(), torch.tensor(thresholds, dtype=torch.float32, device=logits.device)

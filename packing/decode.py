"""Logits of a pack -> candidate spans of its rows, in a few operations for all of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from packing.errors import BadScores, TooManyEntities
from packing.forward import Row
from packing.overlap import Candidate

MAX_CANDIDATES = 1_000_000
"""Spans above their threshold that one document may have, before the best are chosen: some 150 MB. A text of
a full window, with 200 labels and the threshold 0, stays below."""

MARGIN = 1e-5
"""By how much, relatively, a score may miss its threshold and still be looked at: far above what float32 rounds."""

Shape = tuple[int, int, int]
Integers = NDArray[np.int64]
Floats = NDArray[np.float32]


class Answers:
    """The candidates of a call's rows, gathered pack by pack.

    A span of a span model needs a score above its label's threshold. One of a token-level model must exceed it with
    its first word as a start and with its last as an end, and reach it with all its words as insides; its score is the
    least of these. Scores are compared as the library compares them: in float32, but insides in float64.
    """

    def __init__(self, rows: Sequence[Row], width: int | None) -> None:
        """Start without any candidate.

        Args:
            rows: All rows of the call.
            width: Most words of a span, `K`; None of a token-level model.
        """
        self._rows = rows
        self._width = width
        self._found: list[list[Candidate]] = [[] for _ in rows]
        self._counts: Counter[int] = Counter()  # candidates by document
        self._bad: list[int] = []

    def add(self, logits: Tensor, shapes: Sequence[Shape], numbers: Sequence[int]) -> None:
        """Decode some rows.

        Args:
            logits: Their logits end to end, float32 `[N]`.
            shapes: Of each row's: `[W, K, C]` of the spans of `k + 1` words from word `w` with label `c`, those past
                the last word being any numbers, or `[W, C, 3]` of word `w` as start, end and inside.
            numbers: Which of the call's rows they are.

        Raises:
            TooManyEntities: A document has more than `MAX_CANDIDATES` candidates.
        """
        bad = self._not_finite(logits, shapes)
        self._bad.extend(numbers[i] for i in bad)
        segments = _Segments.of(shapes, [self._rows[number].thresholds for number in numbers], bad)
        find = _token_spans if self._width is None else _spans
        found = find(logits, segments, lambda counts: self._admit(counts, numbers))
        if found is not None:
            fields = [field.tolist() for field in found[1:]]
            candidates = list(map(Candidate._make, zip(*fields, strict=True)))
            bounds = np.searchsorted(found[0], np.arange(len(numbers) + 1)).tolist()
            for number, (start, end) in zip(numbers, pairwise(bounds), strict=True):
                self._found[number] = candidates[start:end]

    def candidates(self) -> list[list[Candidate]]:
        """Return each row's: of a span model by start, length and label, else by start, label and length.

        Raises:
            BadScores: A logit was NaN or infinite.
        """
        if self._bad:
            raise BadScores(
                "the model gave scores that are NaN or infinite; another dtype or device may help",
                tuple(sorted({self._rows[number].document for number in self._bad})),
            )
        return self._found

    def _admit(self, counts: Integers, numbers: Sequence[int]) -> None:
        """Count the segments' candidates, before they take memory."""
        for number, count in zip(numbers, counts.tolist(), strict=True):
            document = self._rows[number].document
            self._counts[document] += count
            if self._counts[document] > MAX_CANDIDATES:
                raise TooManyEntities(
                    f"more than {MAX_CANDIDATES:,} spans of the text exceed their threshold: "
                    "ask with a higher threshold or for fewer labels"
                )

    def _not_finite(self, logits: Tensor, shapes: Sequence[Shape]) -> list[int]:
        """Return the segments with a logit that is NaN or infinite, but for those of spans past the last word."""
        if math.isfinite(logits.sum().item()):
            return []
        bad: list[int] = []
        sizes = [math.prod(shape) for shape in shapes]
        for i, (own, shape) in enumerate(zip(logits.split_with_sizes(sizes), shapes, strict=True)):
            wrong = ~own.view(shape).isfinite()
            if self._width is not None:
                last = torch.arange(shape[0])[:, None] + torch.arange(shape[1])
                wrong &= (last < shape[0])[..., None].to(wrong.device)
            if wrong.any():
                bad.append(i)
        return bad


@dataclass(frozen=True, slots=True)
class _Segments:
    """What is known of a pack's `B` segments, apart from the logits.

    Attributes:
        starts: Where each one's logits start, `[B + 1]`.
        words: How many words each has, `[B]`.
        widths: Of how many words its spans may be, `[B]`; without meaning for a token-level model.
        labels: How many labels, `[B]`.
        label_starts: Where each one's thresholds start, `[B]`.
        thresholds: All labels' thresholds, float64 `[C]`.
        limits: The same in float32, but for those segments that no candidate is wanted of: infinity.
    """

    starts: Integers
    words: Integers
    widths: Integers
    labels: Integers
    label_starts: Integers
    thresholds: NDArray[np.float64]
    limits: Floats

    @classmethod
    def of(cls, shapes: Sequence[Shape], thresholds: Sequence[tuple[float, ...]], bad: Sequence[int]) -> _Segments:
        words, widths, _ = np.array(shapes).T
        labels = np.array([len(own) for own in thresholds])
        starts = np.cumsum([0, *map(math.prod, shapes)])
        label_starts = labels.cumsum() - labels
        flat = np.array(list(chain.from_iterable(thresholds)))
        limits = flat.astype(np.float32)
        for i in bad:
            limits[label_starts[i] : label_starts[i] + labels[i]] = np.inf
        return cls(starts, words, widths, labels, label_starts, flat, limits)

    def least(self) -> float:
        """Return a logit that the score of no candidate falls below."""
        score = float(self.thresholds.min()) * (1 - MARGIN)
        return math.log(score / (1 - score)) if score > 0 else -math.inf


Fields = tuple[Integers, Integers, Integers, Integers, Floats]
"""Of each candidate, segment by segment: its segment, its first word, the word after its last, its label, its score."""

Admit = Callable[[Integers], None]


def _sigmoid(logits: Tensor) -> Floats:
    """Return scores, `[N]`.

    It is the library's formula, but equal logits give equal scores wherever they stand: in torch the last few of a
    tensor are computed by another routine, and differ in the last bit.
    """
    with np.errstate(over="ignore"):
        exponential = np.exp(-logits.cpu().numpy().astype(np.float64)).astype(np.float32)
    scores: Floats = np.reciprocal(1 + exponential)
    return scores


def _spans(logits: Tensor, segments: _Segments, admit: Admit) -> Fields | None:
    where = (logits > segments.least()).nonzero()[:, 0]
    if not len(where):
        return None
    scores = _sigmoid(logits[where])
    places: Integers = where.cpu().numpy()
    segment = np.searchsorted(segments.starts, places, side="right") - 1
    span, label = np.divmod(places - segments.starts[segment], segments.labels[segment])
    start, longer = np.divmod(span, segments.widths[segment])
    end = start + longer + 1
    limits = segments.limits[segments.label_starts[segment] + label]
    kept = (scores > limits) & (end <= segments.words[segment])
    segment = segment[kept]
    admit(np.bincount(segment, minlength=len(segments.words)))
    return segment, start[kept], end[kept], label[kept], scores[kept]


def _token_spans(logits: Tensor, segments: _Segments, admit: Admit) -> Fields | None:
    if not (logits[::3] > segments.least()).any():
        return None
    scores = _sigmoid(logits).reshape(-1, 3)
    pairs = segments.words * segments.labels
    segment = np.arange(len(pairs)).repeat(pairs)
    first = segments.starts[segment] // 3  # pair of the segment
    words = segments.words[segment]
    word, label = np.divmod(np.arange(len(scores)) - first, segments.labels[segment])
    of_label = segments.label_starts[segment] + label
    above = scores[:, :2] > segments.limits[of_label][:, None]
    starts = above[:, 0].nonzero()[0]
    # A label's words side by side: a span is then a run of places.
    column = first + label * words
    place = column + word
    inside = np.full(len(scores) + 1, np.inf, np.float32)  # one more, for what `reduceat` reads and no one needs
    inside[place] = scores[:, 2]
    at = np.empty_like(place)
    at[place] = np.arange(len(scores))
    ends = above[at, 1].nonzero()[0]
    # In double precision, unlike starts and ends: so the library compares insides, and so does this.
    outside = (inside[:-1].astype(np.float64) < segments.thresholds[of_label[at]]).nonzero()[0]
    start_places = place[starts]
    stops = np.append(outside, len(scores))[np.searchsorted(outside, start_places)]
    stops = np.minimum(stops, column[starts] + words[starts])
    lows = np.searchsorted(ends, start_places)
    counts = np.searchsorted(ends, stops) - lows
    admit(np.bincount(segment[starts], counts, len(pairs)).astype(np.int64))
    which = np.arange(len(starts)).repeat(counts)
    if not len(which):
        return None
    end_places = ends[np.arange(len(which)) + (lows - (counts.cumsum() - counts))[which]]
    runs = np.stack([start_places[which], end_places + 1], -1).ravel()
    score = np.minimum.reduceat(inside, runs)[::2]
    first_pair, last_pair = starts[which], at[end_places]
    score = np.minimum(score, np.minimum(scores[first_pair, 0], scores[last_pair, 1]))
    return segment[first_pair], word[first_pair], word[last_pair] + 1, label[first_pair], score

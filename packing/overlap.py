"""Candidate spans -> the ones that may stand beside each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from packing.documents import Overlap


class Candidate(NamedTuple):
    """A span of words whose score exceeds its label's threshold.

    Attributes:
        start: First word.
        end: Word after the last.
        label: Position of the label among those asked.
        score: Probability in [0, 1].
    """

    start: int
    end: int
    label: int
    score: float


def select(candidates: Iterable[Candidate], overlap: Overlap) -> list[Candidate]:
    """Take candidates from the highest score down, leaving out those that exclude a taken one.

    Equal scores keep the order they come in. Two spans exclude each other if they are the same (unless
    `overlap` is `multi`), or share words without one holding the other (under `flat`, share words at all).
    """
    taken: list[Candidate] = []
    ends: dict[int, set[int]] = defaultdict(set)  # of the taken spans, by their start
    longest = 0
    for candidate in sorted(candidates, key=lambda c: -c.score):
        nearby = range(candidate.start - longest + 1, candidate.end)
        if any(
            _exclude(candidate.start, candidate.end, start, end, overlap)
            for start in nearby
            if start in ends
            for end in ends[start]
        ):
            continue
        taken.append(candidate)
        ends[candidate.start].add(candidate.end)
        longest = max(longest, candidate.end - candidate.start)
    return taken


def _exclude(start: int, end: int, other_start: int, other_end: int, overlap: Overlap) -> bool:
    if (start, end) == (other_start, other_end):
        return overlap != "multi"
    if start >= other_end or other_start >= end:
        return False
    inside = start <= other_start and other_end <= end
    around = other_start <= start and end <= other_end
    return overlap == "flat" or not (inside or around)

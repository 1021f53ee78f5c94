"""Long document -> overlapping windows; windows' candidates -> the document's.

Pure: a window is a range of word positions, and a word is the number of its sub-tokens.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from packing.overlap import Candidate
from packing.words import Words

WINDOW_WORDS = 192
"""Words of a window. Fewer than most models read, for long sequences cost recall: in long documents the bundled model's
F1 is 75 in windows of 192 words and 70 in windows of 384; shorter ones cost tokens (`make bench-long`)."""

CONTEXT_WORDS = 12
"""Words that two windows share beyond the longest entity where the cut is inside a sentence: at its worst place an
entity still has half of them on either side in one of the windows."""

SENTENCE_SLACK = 4
"""A window may give up one part in so many to end with a sentence."""

# Possessive, and only at the start of a run of marks, so that no text takes more than linear time.
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+\s|[。！？]|\n\s*\n")


class Window(NamedTuple):
    """The words from `start` up to `end`."""

    start: int
    end: int


def sentence_ends(text: str, words: Words) -> list[int]:
    """Return the positions, ascending, of the words that start a new sentence; roughly, by punctuation."""
    offsets = [match.end() for match in _SENTENCE_END.finditer(text)]
    return sorted(set(np.searchsorted(words.starts, offsets).tolist()))


def split(bounds: Sequence[int], cuts: Sequence[int], *, max_words: int, max_tokens: int, overlap: int) -> list[Window]:
    """Cover all words with windows that the model can read, each sharing words with the next.

    Args:
        bounds: Running totals of the words' sub-tokens, `[W + 1]`, from 0.
        cuts: Word positions, ascending, before which a window rather ends than elsewhere.
        max_words: Most words in a window.
        max_tokens: Most sub-tokens in a window; a word with more is a window of its own.
        overlap: Words shared by neighbours; `CONTEXT_WORDS` more where the cut isn't at one of `cuts`. At most half of
            `max_words`, and less where they would take up more than half of `max_tokens`: so the windows hold at most
            about twice the sub-tokens of the text.
    """
    n = len(bounds) - 1
    windows: list[Window] = []
    start = 0
    while start < n:
        # bisect on value + 1: the last position whose total still fits
        fits = bisect_left(bounds, bounds[start] + max_tokens + 1) - 1
        end = min(n, start + max_words, max(fits, start + 1))
        shared = overlap + CONTEXT_WORDS
        if end < n:
            least = end - (end - start) // SENTENCE_SLACK
            cut = cuts[bisect_left(cuts, end + 1) - 1] if cuts and cuts[0] <= end else 0
            previous = windows[-1].end if windows else 0
            if cut >= max(least, previous + 1, start + 1):
                end, shared = cut, overlap
        windows.append(Window(start, end))
        if end == n:
            break
        light = bisect_left(bounds, bounds[end] - max_tokens // 2)
        start = max(end - min(shared, max_words // 2), light, start + 1)
        # the next word must fit too, or the next window would bring nothing new
        while start < end and bounds[end + 1] - bounds[start] > max_tokens:
            start += 1
    return windows


def merge(windows: Sequence[Window], found: Iterable[tuple[Window, Iterable[Candidate]]]) -> list[Candidate]:
    """Return the document's candidates, each span and label once, with the highest of its scores.

    Args:
        windows: All windows of the document.
        found: What was found in a window, positions counted from its start; a window may come repeatedly.

    A span that ends where its window does may be a part of a longer entity: it counts only if no other window
    reads it with words around it.
    """
    starts = [window.start for window in windows]
    n = windows[-1].end if windows else 0
    best: dict[tuple[int, int, int], float] = {}
    for window, candidates in found:
        for at, to, label, score in candidates:
            start, end = window.start + at, window.start + to
            if _touches_cut(window, start, end, n):
                # of the windows that start before the span, the last reaches farthest
                other = windows[max(bisect_left(starts, start) - 1, 0)]
                if not _touches_cut(other, start, end, n) and end <= other.end:
                    continue
            key = (start, end, label)
            best[key] = max(best.get(key, 0.0), score)
    return [Candidate(*key, score) for key, score in best.items()]


def _touches_cut(window: Window, start: int, end: int, n: int) -> bool:
    return (start == window.start and start > 0) or (end == window.end and end < n)

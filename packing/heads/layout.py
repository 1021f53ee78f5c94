"""Which tokens of a pack a head reads: those of words and of labels, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from packing.forward import Row
from packing.pack import ROUNDING, Pack
from packing.tokenizer import IntArray

Pooling = Literal["first", "last", "mean", "max"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions in a pack of `B` segments with `W` words and `C` labels in all, int32.

    Attributes:
        read: Sub-tokens, `[R]`: first those that words are made of, segment by segment, one for each word or all of
            them; then the one that speaks for each label, none of a bi-encoder. Either part is rounded up with the
            pack's first token, so that matrix products meet few different shapes; but not where words have several.
        texts: How many of `read` are the words'.
        word_starts: Which of `read` are words' first ones, `[W]`; None if each word has one alone.
        word_lengths: Words of each segment, at least 1, `[B]`.
        label_lengths: Labels of each segment, at least 1, `[B]`.
    """

    read: IntArray
    texts: int
    word_starts: IntArray | None
    word_lengths: IntArray
    label_lengths: IntArray


def lay_out(pack: Pack, rows: Sequence[Row], *, pooling: Pooling, label_offset: int) -> Layout:
    """Find words and labels.

    Args:
        pack: The pack.
        rows: What its segments are made of, in its order: prompt, text, and then what ends a sequence.
        pooling: Which of a word's sub-tokens make the word: the first, the last, or (`mean`, `max`) all.
        label_offset: How far behind a label's marker its sub-token is: 0 for the marker itself.
    """
    counts = np.concatenate([row.counts for row in rows])
    word_lengths = _lengths([len(row.counts) for row in rows])
    text_lengths = _lengths([len(row.ids) for row in rows])
    label_lengths = _lengths([len(row.prompt.labels) for row in rows])
    # The texts end to end would start at `texts`; in the pack they start behind their prompts.
    ends = counts.cumsum(dtype=np.int32)
    texts = text_lengths.cumsum(dtype=np.int32) - text_lengths
    shift = pack.starts + _lengths([len(row.prompt.ids) for row in rows]) - texts
    word_starts = None
    if pooling == "first":
        tokens = _rounded(ends - counts + shift.repeat(word_lengths))
    elif pooling == "last":
        tokens = _rounded(ends - 1 + shift.repeat(word_lengths))
    else:
        tokens = np.arange(text_lengths.sum(), dtype=np.int32) + shift.repeat(text_lengths)
        word_starts = ends - counts
    marks = [row.prompt.marks for row in rows]
    mark_lengths = _lengths([len(positions) for positions in marks])
    labels = _rounded(np.concatenate(marks) + pack.starts.repeat(mark_lengths) + np.int32(label_offset))
    return Layout(np.concatenate([tokens, labels]), len(tokens), word_starts, word_lengths, label_lengths)


def _rounded(positions: IntArray) -> IntArray:
    return np.pad(positions, (0, -len(positions) % ROUNDING))


def _lengths(values: list[int]) -> IntArray:
    return np.array(values, np.int32)

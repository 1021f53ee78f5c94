"""Text -> words with character offsets, whatever the text holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from packing.tokenizer import IntArray, SubTokenizer, legible

Split = Callable[[str], Iterable[tuple[str, int, int]]]
"""The model's word splitter: a text's words as (word, start, end), offsets in code points."""

LONGEST_WORD = 1000
"""Characters after which a word is read in pieces, so that one 'word' of a million characters costs no more
than as many characters of prose. No word of any language is near it."""

_BLOCK = 8192  # words encoded at a time: bounds the memory that a very long text takes on its way


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text that the model can read, in order.

    Attributes:
        starts: Offset of each word's first character, in code points, int32 `[W]`.
        ends: Offset after each word's last character, int32 `[W]`.
        ids: All sub-tokens, int32 `[T]`.
        bounds: Word `i` has the sub-tokens `ids[bounds[i]:bounds[i + 1]]`, at least one, int32 `[W + 1]`.
    """

    starts: IntArray
    ends: IntArray
    ids: IntArray
    bounds: IntArray

    def __len__(self) -> int:
        return len(self.starts)


def read_words(text: str, split: Split, tokenizer: SubTokenizer, max_word_tokens: int) -> Words:
    """Split a text into words and these into sub-tokens.

    A lone surrogate is a space to the model, and so is a word without sub-tokens (NUL, zero-width space, soft
    hyphen, with most tokenizers): the other words keep their own offsets and scores. A word of more than
    `max_word_tokens` sub-tokens or `LONGEST_WORD` characters is read in pieces.
    """
    starts: list[int] = []
    ends: list[int] = []
    ids: list[IntArray] = [np.empty(0, np.int32)]
    counts: list[IntArray] = [np.zeros(1, np.int32)]
    pieces = _pieces(split(legible(text)))
    while block := list(islice(pieces, _BLOCK)):
        block_ids, block_counts = tokenizer.encode([word for word, _, _ in block])
        if block_counts.min() >= 1 and block_counts.max() <= max_word_tokens:
            spans = [(start, end) for _, start, end in block]
        else:
            spans, block_ids, block_counts = _repair(block, block_ids, block_counts, tokenizer, max_word_tokens)
        starts.extend(start for start, _ in spans)
        ends.extend(end for _, end in spans)
        ids.append(block_ids)
        counts.append(block_counts)
    return Words(
        starts=np.array(starts, np.int32),
        ends=np.array(ends, np.int32),
        ids=np.concatenate(ids),
        bounds=np.concatenate(counts).cumsum(dtype=np.int32),
    )


def _pieces(words: Iterable[tuple[str, int, int]]) -> Iterator[tuple[str, int, int]]:
    for word, start, end in words:
        if len(word) <= LONGEST_WORD:
            yield word, start, end
        else:
            for at in range(0, len(word), LONGEST_WORD):
                piece = word[at : at + LONGEST_WORD]
                yield piece, start + at, min(start + at + len(piece), end)


def _repair(
    block: list[tuple[str, int, int]],
    ids: IntArray,
    counts: IntArray,
    tokenizer: SubTokenizer,
    max_word_tokens: int,
) -> tuple[list[tuple[int, int]], IntArray, IntArray]:
    """Drop the words without sub-tokens and halve those with too many."""
    spans: list[tuple[int, int]] = []
    kept_ids: list[IntArray] = [np.empty(0, np.int32)]
    kept_counts: list[int] = []
    bounds = np.concatenate(([0], counts.cumsum()))
    for (word, start, end), first, last in zip(block, bounds, bounds[1:], strict=False):
        waiting = [(word, start, end, ids[first:last])]
        while waiting:
            piece, piece_start, piece_end, piece_ids = waiting.pop()
            if len(piece_ids) > max_word_tokens and len(piece) > 1:
                half = len(piece) // 2
                for part, at in ((piece[half:], piece_start + half), (piece[:half], piece_start)):
                    waiting.append((part, at, min(at + len(part), piece_end), tokenizer.encode([part])[0]))
            elif len(piece_ids):
                spans.append((piece_start, piece_end))
                kept_ids.append(piece_ids)
                kept_counts.append(len(piece_ids))
    return spans, np.concatenate(kept_ids), np.array(kept_counts, np.int32)

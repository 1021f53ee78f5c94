"""Labels -> what the model reads before the text, in as many chunks as it takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from packing.tokenizer import IntArray, SubTokenizer, legible

TEXT_SHARE = 0.5
"""Part of the model's sequence that labels leave to the text at least, unless the text needs less."""

CHUNK_LABELS = 25
"""Labels that are asked at once where they are too many for that: what published GLiNER models were trained with
(their `max_types`)."""

CACHED_LABEL_SETS = 256
"""Label sets whose prompts are remembered; a stream asks for a few sets again and again."""

CACHED_LABELS = 256
CACHED_CHARACTERS = 8192
"""A set of more labels or characters is read anew each time: it is rare, and 256 of them would take gigabytes."""


class CacheCounts(NamedTuple):
    """How often something was remembered, and how often it had to be made, since the model was loaded."""

    hits: int
    misses: int

    def plus(self, asked: int, missing: int) -> CacheCounts:
        """Return the counts after so many more were asked for, of which some were missing."""
        return CacheCounts(self.hits + asked - missing, self.misses + missing)


@dataclass(frozen=True, slots=True)
class Prompt:
    """Some or all of a document's labels, ready for the model.

    Attributes:
        first: Position of the first label among all labels asked.
        labels: The labels by the names they were asked with.
        ids: The sequence up to the text: prefix, each label after its marker, separator.
        label_ids: For a bi-encoder a sequence for each label, else empty.
        marks: Where in `ids` each label's marker is, none for a bi-encoder, int32 `[C]`.
        array: `ids`, int32.
    """

    first: int
    labels: tuple[str, ...]
    ids: tuple[int, ...]
    label_ids: tuple[tuple[int, ...], ...] = ()
    marks: IntArray = field(default_factory=lambda: np.empty(0, np.int32), compare=False)
    array: IntArray = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "array", np.array(self.ids, np.int32))


class PromptChoice(NamedTuple):
    """The ways to ask for a set of labels.

    Attributes:
        whole: All labels at once, however long that is; the model library's own way.
        chunks: `whole` alone where it leaves enough of the sequence to the text; else the labels in prompts that do,
            in the order asked.
    """

    whole: Prompt
    chunks: tuple[Prompt, ...]


class Prompts:
    """Turn label sets into prompts, remembering the last `CACHED_LABEL_SETS` sets.

    A label is read as plain text even where it holds a special token of the model, such as `<<ENT>>`.
    """

    def __init__(
        self,
        tokenizer: SubTokenizer,
        *,
        ent_token: str,
        sep_token: str,
        max_tokens: int,
        text_share: float = TEXT_SHARE,
        chunk_labels: int = CHUNK_LABELS,
        label_tokenizer: SubTokenizer | None = None,
        max_label_tokens: int = 0,
    ) -> None:
        """Prepare for one model.

        Args:
            tokenizer: The model's.
            ent_token: The marker before each label.
            sep_token: The marker after the last label.
            max_tokens: The longest sequence that the model reads, in sub-tokens.
            text_share: Part of it that is left to the text at least, in (0, 1); labels that would take more are
                asked in chunks.
            chunk_labels: Most labels of a chunk, at least 1.
            label_tokenizer: A bi-encoder's, whose labels aren't part of the text's sequence; else None.
            max_label_tokens: The longest sequence that a bi-encoder's label encoder reads, in sub-tokens.
        """
        self._tokenizer = tokenizer
        self._ent = tokenizer.marker(ent_token)
        self._sep = tokenizer.marker(sep_token)
        self._frame = len(tokenizer.prefix) + len(self._sep) + len(tokenizer.suffix)
        self._budget = int(max_tokens * (1 - text_share))
        self._chunk_labels = chunk_labels
        self._label_tokenizer = label_tokenizer
        if label_tokenizer is None:
            self._label_room = self._budget - self._frame - len(self._ent)
        else:
            self._label_room = max_label_tokens - len(label_tokenizer.prefix) - len(label_tokenizer.suffix)
        self._cached = lru_cache(maxsize=CACHED_LABEL_SETS)(self._choice)

    def __call__(self, pairs: tuple[tuple[str, str], ...]) -> PromptChoice:
        """Return the prompts for (label, what the model reads for it) pairs, in the order asked.

        Raises:
            ValueError: A label that the tokenizer can't read, or one too long to leave its share of the sequence
                to a text (of a bi-encoder: too long for the label encoder).
        """
        small = len(pairs) <= CACHED_LABELS and sum(len(text) for _, text in pairs) <= CACHED_CHARACTERS
        return self._cached(pairs) if small else self._choice(pairs)

    def counts(self) -> CacheCounts:
        """Return how often a label set was known; those too large to be remembered don't count."""
        known = self._cached.cache_info()
        return CacheCounts(known.hits, known.misses)

    def _choice(self, pairs: tuple[tuple[str, str], ...]) -> PromptChoice:
        labels = [label for label, _ in pairs]
        tokenizer = self._label_tokenizer or self._tokenizer
        encoded = [self._encode(tokenizer, number, text) for number, (_, text) in enumerate(pairs, start=1)]
        if self._label_tokenizer:
            sequences = tuple((*tokenizer.prefix, *ids, *tokenizer.suffix) for ids in encoded)
            alone = Prompt(0, tuple(labels), self._tokenizer.prefix, sequences)
            return PromptChoice(alone, (alone,))
        whole = self._prompt(0, labels, encoded)
        if len(whole.ids) + len(self._tokenizer.suffix) <= self._budget:
            return PromptChoice(whole, (whole,))
        ends = self._chunk_ends(encoded)
        starts = [0, *ends[:-1]]
        chunks = tuple(self._prompt(at, labels[at:to], encoded[at:to]) for at, to in zip(starts, ends, strict=True))
        return PromptChoice(whole, chunks)

    def _encode(self, tokenizer: SubTokenizer, number: int, text: str) -> tuple[int, ...]:
        ids, _ = tokenizer.encode([legible(text)])
        if not len(ids):
            raise ValueError(f"label {number} has no character that the model can read")
        if len(ids) > self._label_room:
            raise ValueError(f"label {number} is {len(ids)} sub-tokens long, the model has room for {self._label_room}")
        return tuple(ids.tolist())

    def _chunk_ends(self, encoded: list[tuple[int, ...]]) -> list[int]:
        """Return after which labels a chunk ends, the last one included."""
        ends: list[int] = []
        first, used = 0, self._frame
        for at, ids in enumerate(encoded):
            cost = len(self._ent) + len(ids)
            if at > first and (used + cost > self._budget or at - first == self._chunk_labels):
                ends.append(at)
                first, used = at, self._frame
            used += cost
        return [*ends, len(encoded)]

    def _prompt(self, first: int, labels: list[str], encoded: list[tuple[int, ...]]) -> Prompt:
        prefix = self._tokenizer.prefix
        marked = (i for ids in encoded for i in (*self._ent, *ids))
        sizes = [len(self._ent) + len(ids) for ids in encoded]
        marks = len(prefix) + np.cumsum([0, *sizes[:-1]], dtype=np.int32)
        return Prompt(first, tuple(labels), (*prefix, *marked, *self._sep), marks=marks)

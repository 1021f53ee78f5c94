"""Labels -> what the model reads before the text, in as many chunks as it takes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from packing.tokenizer import SubTokenizer, legible

CACHED_LABEL_SETS = 256
"""Label sets whose prompts are remembered; a stream asks for a few sets again and again."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One chunk of a document's labels, ready for the model.

    Attributes:
        first: Position of the chunk's first label among all labels asked.
        labels: The labels by the names they were asked with.
        texts: What the model reads for each.
        ids: The sequence up to the text: prefix, each label after its marker, separator.
    """

    first: int
    labels: tuple[str, ...]
    texts: tuple[str, ...]
    ids: tuple[int, ...]


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
        in_sequence: bool = True,
    ) -> None:
        """Prepare for one model.

        Args:
            tokenizer: The model's.
            ent_token: The marker before each label.
            sep_token: The marker after the last label.
            max_tokens: The longest sequence that the model reads, in sub-tokens.
            in_sequence: False for a bi-encoder, whose labels aren't part of the text's sequence.
        """
        self._tokenizer = tokenizer
        self._ent = tokenizer.marker(ent_token)
        self._sep = tokenizer.marker(sep_token)
        self._frame = len(tokenizer.prefix) + len(self._sep) + len(tokenizer.suffix)
        self._budget = max_tokens // 2
        self._in_sequence = in_sequence
        self._cached = lru_cache(maxsize=CACHED_LABEL_SETS)(self._chunks)

    def __call__(self, pairs: tuple[tuple[str, str], ...]) -> tuple[Prompt, ...]:
        """Return the prompts for (label, what the model reads for it) pairs, in the order asked.

        There is more than one where a single one would leave the text less than half of the sequence.

        Raises:
            ValueError: A label that the tokenizer can't read, or one too long to fit.
        """
        return self._cached(pairs)

    def _chunks(self, pairs: tuple[tuple[str, str], ...]) -> tuple[Prompt, ...]:
        if not self._in_sequence:
            return (self._prompt(0, pairs, [()] * len(pairs)),)
        encoded = [self._encode(number, text) for number, (_, text) in enumerate(pairs, start=1)]
        chunks: list[Prompt] = []
        first, used = 0, self._frame
        for at, ids in enumerate(encoded):
            cost = len(self._ent) + len(ids)
            if at > first and used + cost > self._budget:
                chunks.append(self._prompt(first, pairs[first:at], encoded[first:at]))
                first, used = at, self._frame
            used += cost
        chunks.append(self._prompt(first, pairs[first:], encoded[first:]))
        return tuple(chunks)

    def _encode(self, number: int, text: str) -> tuple[int, ...]:
        ids, _ = self._tokenizer.encode([legible(text)])
        room = self._budget - self._frame - len(self._ent)
        if not len(ids):
            raise ValueError(f"label {number} has no character that the model can read")
        if len(ids) > room:
            raise ValueError(f"label {number} is {len(ids)} sub-tokens long, the model has room for {room}")
        return tuple(ids.tolist())

    def _prompt(self, first: int, pairs: tuple[tuple[str, str], ...], encoded: list[tuple[int, ...]]) -> Prompt:
        ids = self._tokenizer.prefix
        if self._in_sequence:
            ids += tuple(i for label in encoded for i in (*self._ent, *label)) + self._sep
        return Prompt(first, tuple(label for label, _ in pairs), tuple(legible(text) for _, text in pairs), ids)

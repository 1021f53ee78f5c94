"""What a forward reads and gives: the seam between the engine and whatever runs the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from packing.overlap import Candidate
from packing.prompts import CacheCounts, Prompt
from packing.tokenizer import IntArray

if TYPE_CHECKING:
    from torch import Tensor  # importing this module shall not import torch


@dataclass(frozen=True, slots=True)
class Row:
    """One window of a document with one chunk of its labels: a sequence for the model.

    Attributes:
        prompt: The labels, and the ids before the text.
        ids: The text's sub-tokens, int32 `[T]`.
        counts: Sub-tokens of each word, each at least 1, int32 `[W]`; they add up to `T`.
        thresholds: One per label of the prompt, in [0, 1].
        document: Number of the document that the window is of; its rows share one bound on candidates.
    """

    prompt: Prompt
    ids: IntArray
    counts: IntArray
    thresholds: tuple[float, ...]
    document: int = 0


class Forward(Protocol):
    """Run the model."""

    def label_counts(self) -> CacheCounts | None:
        """Return how often a bi-encoder's label was known; None of a forward that remembers no labels."""

    def candidates(self, rows: Sequence[Row]) -> list[list[Candidate]]:
        """Return, for each row in order, the spans whose score exceeds their label's threshold.

        Positions are words of the row, labels are positions in its prompt. The answer for a row doesn't
        depend on the others. One call at a time.

        Raises:
            BadScores: A score is NaN or infinite.
            TooManyEntities: The rows of a document have more than `MAX_CANDIDATES` such spans together.
        """


class LogitForward(Forward, Protocol):
    """A forward that can be compared with another.

    Attributes:
        width: Most words of a span; None of a token-level model.
        padding: Why the encoder reads padded batches; None if it reads a flat stream.
    """

    width: int | None
    padding: str | None

    def logits(self, rows: Sequence[Row]) -> list[Tensor]:
        """Return each row's logits, float32.

        They are `[W, K, C]` of the spans of `k + 1` words from word `w`, those past the last word being any numbers, or
        `[W, C, 3]` of words as start, end and inside of an entity.
        """

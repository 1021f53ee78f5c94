"""What can go wrong in `packing` besides a wrong value in a document."""

from __future__ import annotations


class ModelError(ValueError):
    """The model can't be used: not there, no GLiNER, of an unsupported kind, or no such device or dtype."""


class TooManyEntities(ValueError):  # noqa: N818, as a reader of a dead letter sees it
    """More spans of one document exceed their threshold than can be held and compared."""


class BadScores(RuntimeError):  # noqa: N818, what was found, as a reader of a dead letter sees it
    """A forward gave scores that aren't numbers (NaN) or are infinite, so there is no answer.

    Attributes:
        rows: Which of the forward's rows have such scores, ascending; the others' are sound.
    """

    def __init__(self, message: str, rows: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.rows = rows

"""What can go wrong in `packing` besides a wrong value in a document."""

from __future__ import annotations


class ModelError(ValueError):
    """The model can't be used: not there, no GLiNER, of an unsupported kind, or no such device or dtype."""


class TooManyEntities(ValueError):  # noqa: N818, as a reader of a dead letter sees it
    """More spans of one document exceed their threshold than can be held and compared."""


class BadScores(RuntimeError):  # noqa: N818, what was found, as a reader of a dead letter sees it
    """A forward gave scores that aren't numbers (NaN) or are infinite, so there is no answer.

    Attributes:
        documents: Positions of the documents that have such scores among those asked together, ascending; the others'
            are sound.
    """

    def __init__(self, message: str, documents: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.documents = documents


class WindowTooLong(ValueError):  # noqa: N818, likewise
    """A window is longer than the model reads. It isn't cut: windows of that length aren't made by `prepare`."""

"""What goes in and what comes out: `Document`, `Entity`, `Result`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Overlap = Literal["flat", "nested", "multi"]
"""Which entities may share text.

- `flat`: none overlap.
- `nested`: one may lie inside another; each span has one label.
- `multi`: one may lie inside another; a span may have several labels.

Of entities that exclude each other the one with the higher score stays.
"""


@dataclass(frozen=True, slots=True)
class Document:
    """One text and what is asked of it.

    Attributes:
        text: Any string: empty, blank, with NUL or lone surrogates, of any length.
        labels: The labels to look for, or a map from label to the description that the model reads in
            its place. Repeated labels count once. Their order is kept: it can change the scores.
        threshold: An entity is reported if its score is strictly greater; in [0, 1], one for all labels
            or a map from label to threshold.
        overlap: Which entities may share text, see `Overlap`.
        default_threshold: The threshold of a label that is missing from a threshold map.

    Raises:
        ValueError: A blank label or description, two labels with one description, a threshold outside
            [0, 1], an unknown overlap, or a value of the wrong type.
    """

    text: str
    labels: Sequence[str] | Mapping[str, str]
    threshold: float | Mapping[str, float] = 0.5
    overlap: Overlap = "flat"
    default_threshold: float = 0.5

    def __post_init__(self) -> None:
        _require(isinstance(self.text, str), f"text must be a string, not {type(self.text).__name__}")
        modes = get_args(Overlap)
        _require(self.overlap in modes, f"overlap must be one of {', '.join(modes)}, not {self.overlap!r}")
        _check_labels(self.labels)
        _check_threshold("default_threshold", self.default_threshold)
        if isinstance(self.threshold, Mapping):
            for label, value in self.threshold.items():
                _check_threshold(f"threshold of label {label!r}", value)
        else:
            _check_threshold("threshold", self.threshold)

    def prompts(self) -> tuple[tuple[str, str], ...]:
        """Return each label once, in the order asked, with what the model reads for it."""
        if isinstance(self.labels, Mapping):
            return tuple(self.labels.items())
        return tuple((label, label) for label in dict.fromkeys(self.labels))

    def threshold_of(self, label: str) -> float:
        """Return the score that an entity with this label must exceed."""
        if isinstance(self.threshold, Mapping):
            return self.threshold.get(label, self.default_threshold)
        return self.threshold


@dataclass(frozen=True, slots=True)
class Entity:
    """A span of the document's text with its label.

    Attributes:
        start: Offset of the first character, in Unicode code points.
        end: Offset after the last character, in Unicode code points.
        text: Exactly `document.text[start:end]`.
        label: One of the document's labels.
        score: The model's probability, in [0, 1].
    """

    start: int
    end: int
    text: str
    label: str
    score: float


@dataclass(frozen=True, slots=True)
class Result:
    """The answer for one document.

    Attributes:
        entities: By start, then the longer first, then by label.
        windows: How many overlapping parts the text was read in; 0 if there was nothing to read.
        label_chunks: How many passes the labels took; 0 if there was nothing to read.
    """

    entities: tuple[Entity, ...]
    windows: int
    label_chunks: int


def _check_labels(labels: Sequence[str] | Mapping[str, str]) -> None:
    listed = isinstance(labels, Sequence) and not isinstance(labels, (str, bytes))
    _require(
        listed or isinstance(labels, Mapping),
        f"labels must be a list of strings or a map, not {type(labels).__name__}",
    )
    names = list(labels)
    descriptions = list(labels.values()) if isinstance(labels, Mapping) else []
    for what, values in (("label", names), ("description", descriptions)):
        for number, value in enumerate(values, start=1):
            _require(isinstance(value, str), f"{what} {number} must be a string, not {type(value).__name__}")
            _require(bool(value.strip()), f"{what} {number} is blank")
    _require(
        len(set(descriptions)) == len(descriptions),
        "two labels have the same description and can't be told apart",
    )


def _check_threshold(name: str, value: float) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    _require(number, f"{name} must be a number, not {type(value).__name__}")
    _require(0 <= value <= 1, f"{name} must lie in [0, 1], not {value}")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)

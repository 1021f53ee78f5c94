"""What the fields that take more than one type must hold.

Each rule sees the value before pydantic does, returns it, or refuses it in words. Types are compared exactly,
because to Python a boolean is an integer. Places are named by number, never by content: an entry may quote
the document.
"""

from typing import Any

from pydantic_core import PydanticCustomError

from schemas.unreadable import kind


def string_or_integer(value: Any) -> Any:
    """Accept a string or an integer; 17.0 is neither."""
    if type(value) not in (str, int):
        raise _refusal(f"expected a string or an integer, got {kind(value)}")
    return value


def one(value: Any) -> Any:
    """Accept the integer 1, and neither `true` nor 1.0, which compare equal to it."""
    if type(value) is not int or value != 1:
        raise _refusal(f"expected 1, got {'another number' if type(value) is int else kind(value)}")
    return value


def labels(value: Any) -> Any:
    """Accept a list of labels, or a map of label to description.

    A repeated label of a list is dropped. The prompt shows the description in the label's place, so two equal
    descriptions can't be told apart and are refused.
    """
    if type(value) is list:
        for place, label in enumerate(value, 1):
            _require_words(label, f"entry {place}: expected a label")
        return list(dict.fromkeys(value))
    if type(value) is dict:
        first_place: dict[str, int] = {}
        for place, (label, description) in enumerate(value.items(), 1):
            _require_words(label, f"entry {place}: expected a label")
            _require_words(description, f"entry {place}: expected a description")
            if (first := first_place.setdefault(description, place)) != place:
                raise _refusal(f"entries {first} and {place} have the same description, so they can't be told apart")
        return value
    raise _refusal(f"expected a list of labels or a map of label to description, got {kind(value)}")


def threshold(value: Any) -> Any:
    """Accept a number from 0 to 1, or a map of label to such a number."""
    if type(value) is dict:
        for place, number in enumerate(value.values(), 1):
            _require_probability(number, f"entry {place}: expected a number from 0 to 1")
    else:
        _require_probability(value, "expected a number from 0 to 1 or a map of label to such a number")
    return value


def _require_words(value: object, expected: str) -> None:
    if type(value) is not str:
        raise _refusal(f"{expected} (a string), got {kind(value)}")
    if not value.strip():
        raise _refusal(f"{expected}, got a blank string")


def _require_probability(value: object, expected: str) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _refusal(f"{expected}, got {kind(value)}")
    if not 0 <= value <= 1:  # NaN, too, is not
        raise _refusal(f"{expected}, got one outside")


def _refusal(reason: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{reason}", {"reason": reason})

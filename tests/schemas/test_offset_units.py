"""Offsets as other languages count them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import OffsetUnit
from schemas.offset_units import convert

UNITS: list[OffsetUnit] = ["code_points", "utf16", "bytes"]

# One of each width: 1, 2, 3 and 4 bytes, and a lone surrogate; then the end.
MIXED = "aé€😀\ud800z"


@pytest.mark.parametrize(
    ("unit", "offsets"),
    [
        ("code_points", [0, 1, 2, 3, 4, 5, 6]),
        ("utf16", [0, 1, 2, 3, 5, 6, 7]),
        ("bytes", [0, 1, 3, 6, 10, 13, 14]),
    ],
)
def test_every_width_counts_what_it_should(unit: OffsetUnit, offsets: list[int]) -> None:
    assert convert(MIXED, range(7), unit) == offsets


def test_positions_may_come_in_any_order_and_twice() -> None:
    assert convert(MIXED, [5, 0, 4, 5], "bytes") == [13, 0, 10, 13]
    assert convert(MIXED, [], "bytes") == []


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("text", ["abc", "äbc"])
def test_an_offset_outside_the_text_is_refused(text: str, unit: OffsetUnit) -> None:
    for outside in (-1, 4):
        with pytest.raises(ValueError, match="outside the text, which has 3 code points"):
            convert(text, [0, outside], unit)


def one_by_one(text: str, position: int, unit: OffsetUnit) -> int:
    """The definition, character by character."""
    points = [ord(character) for character in text[:position]]
    match unit:
        case "code_points":
            return len(points)
        case "utf16":
            return sum(2 if point > 0xFFFF else 1 for point in points)
        case "bytes":
            return sum(1 + (point > 0x7F) + (point > 0x7FF) + (point > 0xFFFF) for point in points)


@given(st.data(), st.text(st.characters(codec=None)), st.sampled_from(UNITS))
def test_conversion_agrees_with_counting_one_by_one(data: st.DataObject, text: str, unit: OffsetUnit) -> None:
    positions = data.draw(st.lists(st.integers(0, len(text))))

    assert convert(text, positions, unit) == [one_by_one(text, position, unit) for position in positions]


def test_a_long_text_with_many_entities_takes_linear_time() -> None:
    text = "é😀" * 500_000
    started = time.perf_counter()

    converted = convert(text, range(0, len(text), 10), "utf16")

    assert converted[-1] == 3 * (len(text) - 10) // 2
    assert time.perf_counter() - started < 10  # quadratic, it would take minutes

"""Offsets in code points, as Python counts, to what other languages count."""

from collections.abc import Sequence
from itertools import pairwise

from schemas.events import OffsetUnit


def convert(text: str, positions: Sequence[int], unit: OffsetUnit) -> list[int]:
    """Convert offsets into `text` from code points to `unit`.

    A character outside the Basic Multilingual Plane counts 2 in UTF-16; a lone surrogate counts 1 there and 3
    in bytes. Takes time linear in the text, plus the sorting of the positions.

    Args:
        text: the text that the offsets count in.
        positions: offsets from 0 to `len(text)`, in any order, repeats allowed.
        unit: what the returned offsets count.

    Returns:
        The converted offsets, in the order of `positions`.

    Raises:
        ValueError: an offset lies outside the text.
    """
    if positions and not 0 <= min(positions) <= max(positions) <= len(text):
        raise ValueError(f"an offset lies outside the text, which has {len(text)} code points")
    if unit == "code_points" or text.isascii():
        return list(positions)
    converted = {0: 0}
    for start, end in pairwise(sorted({0, *positions})):
        converted[end] = converted[start] + _length(text[start:end], unit)
    return [converted[position] for position in positions]


def _length(text: str, unit: OffsetUnit) -> int:
    if unit == "utf16":
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
    return len(text.encode("utf-8", "surrogatepass"))

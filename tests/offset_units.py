"""Whether offsets, in any of the units there are, address a text's part."""

from __future__ import annotations

from collections.abc import Callable

from schemas import OffsetUnit

UNITS: dict[OffsetUnit, tuple[str, int]] = {
    "code_points": ("utf-32-le", 4),
    "utf16": ("utf-16-le", 2),
    "bytes": ("utf-8", 1),
}
"""An encoding in which a unit has a fixed width, and that width in bytes."""


def addressing(text: str, unit: OffsetUnit) -> Callable[[int, int, str], bool]:
    """Return a function of start, end and the part that should stand there."""
    encoding, width = UNITS[unit]
    encoded = text.encode(encoding, "surrogatepass")

    def addressed(start: int, end: int, part: str) -> bool:
        return encoded[width * start : width * end] == part.encode(encoding, "surrogatepass")

    return addressed

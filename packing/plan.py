"""Lengths + capacity -> packs."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence


def plan(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Distribute sequences over packs of at most `capacity` tokens: best-fit decreasing.

    A longer sequence is a pack of its own. Best fit needs at most 11/9 of the fewest packs possible, plus one
    (Johnson 1974); the sorted list of free room makes it `O(n log n)`, but for the list's moves.

    Args:
        lengths: Tokens of each sequence.
        capacity: Tokens of a pack.

    Returns:
        The positions in each pack, the longest sequence first.
    """
    packs: list[list[int]] = []
    room: list[tuple[int, int]] = []  # (tokens still free, pack), ascending
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        tightest = bisect_left(room, (lengths[i], -1))
        if tightest < len(room):
            free, number = room.pop(tightest)
            packs[number].append(i)
        else:
            free, number = max(capacity, lengths[i]), len(packs)
            packs.append([i])
        if free > lengths[i]:
            insort(room, (free - lengths[i], number))
    return packs

"""Ways of doing the same thing, timed side by side."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Ratio(NamedTuple):
    """A ratio of times, taken round by round.

    Attributes:
        median: Of the rounds.
        low: The least.
        high: The greatest.
    """

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


class Timed(NamedTuple, Generic[T]):
    """What ways took and gave.

    Attributes:
        seconds: By way, one of each round.
        given: By way, the last round's.
    """

    seconds: dict[str, list[float]]
    given: dict[str, T]

    def median(self, way: str) -> float:
        """Return a way's seconds."""
        return statistics.median(self.seconds[way])

    def fastest(self, ways: Mapping[str, object] | list[str]) -> str:
        """Return which of some ways takes least."""
        return min(ways, key=self.median)

    def ratio(self, slow: str, fast: str) -> Ratio:
        """Return how many times as long as `fast` the way `slow` takes."""
        return ratio(self.seconds[slow], self.seconds[fast])


def ratio(slow: list[float], fast: list[float]) -> Ratio:
    """Return the ratio of times that were taken in the same rounds."""
    ratios = [a / b for a, b in zip(slow, fast, strict=True)]
    return Ratio(statistics.median(ratios), min(ratios), max(ratios))


def interleave(ways: Mapping[str, Callable[[], T]], rounds: int, *, warm: bool = True) -> Timed[T]:
    """Time every way once a round, each round in another order, so that what else the machine does meets all alike.

    Args:
        ways: What to run, by name.
        rounds: How often.
        warm: Whether each runs once before, unmeasured.
    """
    if warm:
        for run in ways.values():
            run()
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    given: dict[str, T] = {}
    names = list(ways)
    gc.collect()
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            start = time.perf_counter()
            given[name] = ways[name]()
            seconds[name].append(time.perf_counter() - start)
    return Timed(seconds, given)

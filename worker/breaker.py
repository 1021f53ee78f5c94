"""The circuit breaker: a topic is not emptied into the dead letters for one and the same reason. Pure.

A wrong setting or a changed producer makes every record a dead letter. When most of what was answered within a minute
went there for one reason, the worker pauses and says so, and then tries a little again.
"""

from collections import Counter, deque
from collections.abc import Iterable

WINDOW_S = 60.0
LEAST = 20
"""Dead letters of one reason within the window below which nothing is a pattern."""


class Breaker:
    """Opens when one reason's share of the answers of the last minute is too large.

    Args:
        share: the share from which on it opens, in (0, 1]; 0 never.
        pause_s: how long it stays open, in seconds.
    """

    def __init__(self, share: float, pause_s: float) -> None:
        self._share = share
        self._pause_s = pause_s
        self._answers: deque[tuple[float, Counter[str | None]]] = deque()
        self._total: Counter[str | None] = Counter()
        self._open_until = float("-inf")

    def note(self, now: float, reasons: Iterable[str | None]) -> str | None:
        """Take note of answers: of each the reason why it is a dead letter, None where it isn't one.

        Returns:
            the reason for which the breaker opens with these answers, if it does.
        """
        if not self._share:
            return None
        counted = Counter(reasons)
        self._answers.append((now, counted))
        self._total += counted
        while self._answers[0][0] < now - WINDOW_S:
            self._total -= self._answers.popleft()[1]
        for reason, times in self._total.most_common():
            if reason is not None and times >= LEAST and times >= self._share * self._total.total():
                self._open_until = now + self._pause_s
                self._answers.clear()
                self._total.clear()
                return reason
        return None

    def is_open(self, now: float) -> bool:
        """Return whether the worker is to pause."""
        return now < self._open_until

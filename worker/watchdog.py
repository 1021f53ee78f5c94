"""The watchdog: a client call that never comes back ends in an exit code, not in a process that only looks alive."""

import time


class Watchdog:
    """Knows how long ago the watched thread gave a sign of life.

    Args:
        patience_s: the longest silence that is taken for work, in seconds.
    """

    def __init__(self, patience_s: float) -> None:
        self.patience_s = patience_s
        self._sign: tuple[float, str] | None = None

    def sign(self, doing: str) -> None:
        """Give a sign of life, and say what is done next."""
        self._sign = time.monotonic(), doing

    def hung(self) -> str | None:
        """Return what the thread has been doing for longer than the patience; None while all is well."""
        if self._sign is None:
            return None
        since, doing = self._sign
        return doing if time.monotonic() - since > self.patience_s else None

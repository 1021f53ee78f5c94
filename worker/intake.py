"""What was taken from Kafka and not touched yet: raw records, by partition, in the order of their offsets. Pure.

A record that is only held here can't have killed anybody: tokenising and the forward are what a text can break.
"""

import heapq
from collections import deque
from collections.abc import Callable

from worker.records import Partition, Record


class Intake:
    """Raw records that wait to be tokenised."""

    def __init__(self) -> None:
        self._waiting: dict[Partition, deque[Record]] = {}
        self._records = self._size = 0

    def __len__(self) -> int:
        return self._records

    @property
    def size(self) -> int:
        """Bytes of the records that wait."""
        return self._size

    @property
    def heads(self) -> list[Record]:
        """The next record of each partition, the one that was taken first leading."""
        return sorted((records[0] for records in self._waiting.values()), key=lambda record: record.arrived)

    def add(self, record: Record) -> None:
        """Append a record to what waits of its partition."""
        self._waiting.setdefault(record.partition, deque()).append(record)
        self._records += 1
        self._size += record.size

    def head(self, partition: Partition) -> Record | None:
        """Return the next record of a partition."""
        waiting = self._waiting.get(partition)
        return waiting[0] if waiting else None

    def take(self, most: int, most_bytes: int, allowed: Callable[[Record], bool]) -> list[Record]:
        """Remove and return the records that came first, each after those before it in its partition.

        Args:
            most: how many at most.
            most_bytes: no more are taken once they have so many bytes.
            allowed: says whether a record may go; one that may not holds up its partition.
        """
        taken: list[Record] = []
        size = 0
        heads = [(waiting[0].arrived, partition) for partition, waiting in self._waiting.items()]
        heapq.heapify(heads)
        while heads and len(taken) < most and size < most_bytes:
            _, partition = heapq.heappop(heads)
            waiting = self._waiting[partition]
            if not allowed(waiting[0]):
                continue
            taken.append(self.pop(partition))
            size += taken[-1].size
            if partition in self._waiting:
                heapq.heappush(heads, (waiting[0].arrived, partition))
        return taken

    def pop(self, partition: Partition) -> Record:
        """Remove and return the next record of a partition that has one."""
        waiting = self._waiting[partition]
        record = waiting.popleft()
        if not waiting:
            del self._waiting[partition]
        self._records -= 1
        self._size -= record.size
        return record

    def drop(self, partition: Partition) -> None:
        """Forget what waits of a partition."""
        for record in self._waiting.pop(partition, ()):
            self._records -= 1
            self._size -= record.size

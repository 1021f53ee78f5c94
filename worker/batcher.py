"""The micro-batch: which waiting records share the next checkpoint, and when it closes.

Pure: no I/O, no threads, and the clock is an argument (seconds of one monotonic clock).
"""

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from worker.records import Partition


class Waiting(Protocol):
    """What the batcher needs to know of an item."""

    @property
    def partition(self) -> Partition:
        """The partition the item came from."""

    @property
    def tokens(self) -> int:
        """Tokens the forward will read for it; at least 1."""

    @property
    def size(self) -> int:
        """Bytes it holds in the buffer."""

    @property
    def arrived(self) -> float:
        """When it was taken, in seconds."""


Item = TypeVar("Item", bound=Waiting)


class Closed(StrEnum):
    """Why a micro-batch was closed."""

    BUDGET = "budget"
    LATENCY = "latency"
    IDLE = "idle"
    DRAIN = "drain"


@dataclass(frozen=True, slots=True)
class MicroBatch(Generic[Item]):
    """Items that share one checkpoint: a prefix of what waited in each of their partitions, in its order."""

    items: Sequence[Item]
    tokens: int
    reason: Closed


class MicroBatcher(Generic[Item]):
    """Buffer of waiting items, closed into micro-batches by a token budget and a latency deadline.

    Items of one partition leave in the order they came: only then does one committed offset say exactly what
    is done. Across partitions the oldest goes first, and one that doesn't fit any more holds up its own
    partition alone; it leads the next micro-batch, being the oldest then.

    Args:
        budget_tokens: tokens a micro-batch may hold; an item of more is a micro-batch of its own.
        max_latency_s: seconds from the arrival of an item to the end of its forward that the batcher aims at.
        forward_seconds: predicts the seconds of a forward of so many tokens.
    """

    def __init__(
        self,
        *,
        budget_tokens: int,
        max_latency_s: float,
        forward_seconds: Callable[[int], float],
    ) -> None:
        self._budget_tokens = budget_tokens
        self._max_latency_s = max_latency_s
        self._forward_seconds = forward_seconds
        self._waiting: dict[Partition, deque[Item]] = {}
        self._tokens = self._bytes = self._records = 0

    def __len__(self) -> int:
        return self._records

    @property
    def tokens(self) -> int:
        """Tokens of the items that wait."""
        return self._tokens

    @property
    def size(self) -> int:
        """Bytes of the items that wait."""
        return self._bytes

    def add(self, item: Item) -> None:
        """Append an item to what waits of its partition. Items come in the order of their offsets."""
        self._waiting.setdefault(item.partition, deque()).append(item)
        self._count(item, 1)

    def holds(self, partition: Partition) -> bool:
        """Return whether anything of a partition waits."""
        return partition in self._waiting

    def head(self, partition: Partition) -> Item | None:
        """Return the next item of a partition."""
        waiting = self._waiting.get(partition)
        return waiting[0] if waiting else None

    def drop(self, partition: Partition) -> int:
        """Forget what waits of a partition; returns how many items that were."""
        dropped = self._waiting.pop(partition, deque())
        for item in dropped:
            self._count(item, -1)
        return len(dropped)

    def deadline(self) -> float | None:
        """Return when the forward has to start for the oldest item to be in time; None when nothing waits."""
        if not self._waiting:
            return None
        oldest = min(items[0].arrived for items in self._waiting.values())
        return oldest + self._max_latency_s - self._forward_seconds(min(self._tokens, self._budget_tokens))

    def close(
        self, now: float, *, idle: bool = False, draining: bool = False, full_only: bool = False
    ) -> MicroBatch[Item] | None:
        """Close a micro-batch if one is due.

        Args:
            now: the present time in seconds.
            idle: the source has nothing more to give at the moment.
            draining: the worker takes no more records.
            full_only: close only what reached the budget, because a forward is still running: what closes
                now would wait for it instead of growing.

        Returns:
            the micro-batch, or None while there is something to gain from waiting.
        """
        reason = self._due(now, idle=idle, draining=draining)
        if reason is None or (full_only and reason is not Closed.BUDGET):
            return None
        items = self._take()
        return MicroBatch(items, sum(item.tokens for item in items), reason)

    def _due(self, now: float, *, idle: bool, draining: bool) -> Closed | None:
        deadline = self.deadline()
        if deadline is None:
            return None
        if self._tokens >= self._budget_tokens:
            return Closed.BUDGET
        if draining:
            return Closed.DRAIN
        if now >= deadline:
            return Closed.LATENCY
        return Closed.IDLE if idle else None

    def _take(self) -> list[Item]:
        taken: list[Item] = []
        room = self._budget_tokens
        heads = [(items[0].arrived, partition) for partition, items in self._waiting.items()]
        heapq.heapify(heads)
        while heads:
            _, partition = heapq.heappop(heads)
            items = self._waiting[partition]
            if items[0].tokens > room and taken:
                continue
            item = items.popleft()
            taken.append(item)
            room -= item.tokens
            self._count(item, -1)
            if items:
                heapq.heappush(heads, (items[0].arrived, partition))
            else:
                del self._waiting[partition]
        return taken

    def _count(self, item: Item, sign: int) -> None:
        self._records += sign
        self._tokens += sign * item.tokens
        self._bytes += sign * item.size

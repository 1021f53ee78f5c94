"""Numbered texts that keep coming while things go wrong."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, Message, Producer

from tests.delivery.watcher import Watcher
from tests.end_to_end.conftest import Stream

BURST_S = 0.2
"""Texts come in bursts, so that micro-batches hold several whatever the speed of the workers."""
MOST_WAITING = 300
"""So many texts without an answer fit into any worker's buffer: no partition waits because of another's backlog."""


class Feed:
    """Produces in turn to the partitions; see `feeding`.

    It has its own thread; every question may be asked from another.
    """

    def __init__(self, stream: Stream, answered: Callable[[], int], partitions: int, per_second: int) -> None:
        self._stream = stream
        self._answered = answered
        self._partitions = partitions
        self._burst = max(1, round(per_second * BURST_S))
        self._sent = 0
        self._acknowledged: Counter[int] = Counter()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Begin to produce."""
        self._thread.start()

    def stop(self) -> int:
        """Produce no more; returns how many texts there are once all are acknowledged."""
        self._stop.set()
        self._thread.join()
        assert self._acknowledged.total() == self._sent, f"{self._sent} sent, {self._acknowledged.total()} acknowledged"
        return self._sent

    @property
    def produced(self) -> dict[int, int]:
        """How many texts each partition has."""
        return dict(self._acknowledged)

    @property
    def total(self) -> int:
        """How many texts there are so far."""
        return self._acknowledged.total()

    def _run(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self._stream.bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
        )

        def acknowledged(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self._acknowledged[message.partition() or 0] += 1

        due = time.monotonic()
        while not self._stop.is_set():
            burst = self._burst if self._sent - self._answered() < MOST_WAITING else 0
            for number in range(self._sent, self._sent + burst):
                producer.produce(
                    self._stream.texts,
                    value=json.dumps({"id": number, "text": f"Ann saw number {number} in Oslo"}),
                    key=str(number),
                    partition=number % self._partitions,
                    on_delivery=acknowledged,
                )
            self._sent += burst
            due += BURST_S
            producer.poll(0)
            while (left := due - time.monotonic()) > 0 and not self._stop.is_set():
                producer.poll(min(left, 0.05))
        producer.flush(60)


@contextmanager
def feeding(stream: Stream, watcher: Watcher, *, partitions: int, per_second: int) -> Iterator[Feed]:
    """Produce numbered texts to a stream until the feed is stopped, at the latest at the end of the block.

    Args:
        stream: what to feed.
        watcher: knows how many are answered: while too many are not, none are added.
        partitions: how many its input has.
        per_second: how many texts at most.
    """
    feed = Feed(stream, lambda: watcher.answered, partitions, per_second)
    feed.start()
    try:
        yield feed
    finally:
        feed.stop()

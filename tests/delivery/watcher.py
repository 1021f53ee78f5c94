"""A reader of the committed that watches a stream while things go wrong, and knows when which partition went on."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer, TopicPartition

from tests.delivery.answers import Ledger, read_answer
from tests.end_to_end.conftest import Stream
from tests.end_to_end.workers import wait_until
from tests.kafka_server.read_back import partitions_of

GRACE_S = 0.1
"""What arrives so soon after a fault may have been committed before it."""


class Watcher:
    """Reads both topics of answers from their beginning; see `watching`.

    It has its own thread; every question may be asked from another.
    """

    def __init__(self, stream: Stream, *, repeats_allowed: bool = False) -> None:
        self._stream = stream
        self._repeats_allowed = repeats_allowed
        self._ledger = Ledger()
        self._arrivals: dict[int, list[float]] = {}
        self._failure: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Read no more."""
        self._stop.set()
        self._thread.join()

    def check(self) -> None:
        """Look whether all is well so far.

        Raises:
            AssertionError: a text was answered twice or out of order.
        """
        if self._failure:
            raise AssertionError(f"the watcher can't go on: {self._failure!r}") from self._failure
        wrong = [*([] if self._repeats_allowed else self._ledger.doubled), *self._ledger.out_of_order]
        assert not wrong, f"seen while the stream ran: {len(wrong)} doubled or out of order, the first: {wrong[0]}"

    @property
    def answered(self) -> int:
        """How many texts have their answer."""
        return len(self._ledger.answers)

    def answered_of(self, partition: int) -> int:
        """Return how many texts of an input partition have their answer."""
        return len(self._arrivals.get(partition, ()))

    def last_arrival(self, partition: int) -> float:
        """Return when the latest answer to a text of an input partition came, in seconds of the monotonic clock."""
        return self._arrivals[partition][-1]

    def lagging(self, produced: Mapping[int, int]) -> set[int]:
        """Return the input partitions with texts that have no answer yet, given how many each has."""
        return {partition for partition, count in produced.items() if self.answered_of(partition) < count}

    def wait_for(self, count: int, timeout_s: float, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Return once so many texts have their answer, doing something between two looks.

        Raises:
            TimeoutError: they haven't, in time.
            AssertionError: as `check` does, at once.
        """

        def reached() -> bool:
            self.check()
            meanwhile()
            return self.answered >= count

        wait_until(reached, timeout_s, lambda: f"{count} answers, {self.answered} are there\n{self._logs()}")

    def recovery_s(
        self,
        since: float,
        partitions: Collection[int],
        timeout_s: float,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> float:
        """Wait until each of these input partitions shows a next answer; return after how many seconds the last did.

        Args:
            since: when things went wrong, in seconds of the monotonic clock.
            partitions: those that had texts without an answer then.
            timeout_s: counted from now.
            meanwhile: done between two looks.

        Raises:
            TimeoutError: a partition shows none in time.
            AssertionError: as `check` does, at once.
        """

        def silent() -> set[int]:
            return {partition for partition in partitions if self._next(partition, since) is None}

        def reached() -> bool:
            self.check()
            meanwhile()
            return not silent()

        wait_until(reached, timeout_s, lambda: f"partitions {sorted(silent())} to go on\n{self._logs()}")
        return max((found - since for part in partitions if (found := self._next(part, since)) is not None), default=0)

    def _next(self, partition: int, since: float) -> float | None:
        arrivals = self._arrivals.get(partition, [])
        first = bisect_right(arrivals, since + GRACE_S)
        return arrivals[first] if first < len(arrivals) else None

    def _run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._stream.bootstrap,
                "group.id": "watcher",  # never joined: partitions are assigned by hand
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 50,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        try:
            topics = (self._stream.entities, self._stream.dead_letters)
            consumer.assign(
                [
                    TopicPartition(topic, partition, 0)
                    for topic in topics
                    for partition in partitions_of(self._stream.bootstrap, topic)
                ]
            )
            while not self._stop.is_set():
                message = consumer.poll(0.1)
                # An error here is a broker that is away: what a fault under test may well be.
                if message is not None and message.error() is None:
                    answer = read_answer(self._stream, message)
                    if answer.source not in self._ledger.answers:
                        self._arrivals.setdefault(answer.source.partition, []).append(time.monotonic())
                    self._ledger.take(answer)
        except Exception as error:
            self._failure = error
        finally:
            consumer.close()

    def _logs(self) -> str:
        return "\n".join(f"--- {worker.log.name}\n{worker.tail(8)}" for worker in self._stream.workers[-4:])


@contextmanager
def watching(stream: Stream, *, repeats_allowed: bool = False) -> Iterator[Watcher]:
    """Watch a stream for as long as the block runs.

    Args:
        stream: what to watch.
        repeats_allowed: an answer may come again (`at_least_once`).

    Raises:
        AssertionError: at the end of the block, if something was wrong.
    """
    watcher = Watcher(stream, repeats_allowed=repeats_allowed)
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.stop()
    watcher.check()

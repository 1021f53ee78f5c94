"""The life of a micro-batch, from the records at hand to their commit: the one place where the parts meet.

Two threads, so that while a forward runs the next micro-batch is prepared and the last one published: one runs
forwards and nothing else; the caller's does all that touches Kafka, so that no partition can be taken away between
the check that it is held and the commit.
"""

import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Collection
from dataclasses import dataclass

import structlog

from schemas.events import ModelInfo
from worker.answers import Writer
from worker.assignment import Assignment
from worker.batcher import Closed, MicroBatch
from worker.checkpoint import Checkpoint
from worker.config import Settings
from worker.consumer import TextConsumer
from worker.delivery import Delivery
from worker.forecast import ForwardTimes
from worker.forward import Answer, answer_tasks
from worker.publisher import new_publisher
from worker.records import Partition
from worker.tasks import Extractor, Task, new_batcher, read_tasks
from worker.topics import Topics

log = structlog.get_logger()

FORWARDS = "forwards"
"""Name of the thread that runs forwards."""
TAKE_RECORDS = 256
TAKE_BYTES = 500_000
"""What is taken is tokenised before the next poll, at about a megabyte a second: no more than that waits for it."""
EMPTY_POLL_S = 0.1
BUSY_POLL_S = 0.005
"""How long a poll without records may keep a finished forward waiting for its publication."""
PROGRESS_S = 30.0
CLOSED_AHEAD = 2
"""Forwards that may be running or waiting: one runs, and one that is full is ready for when it ends."""
IN_FLIGHT = 4
"""Micro-batches between closed and committed: more would only wait for a slow broker."""


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A micro-batch whose forward is done, with the seconds it took."""

    answers: list[Answer]
    tokens: int
    seconds: float
    reason: Closed


class Worker:
    """Reads texts, finds entities, and publishes them with the offsets they answer.

    Args:
        settings: the worker's settings.
        engine: finds the entities.
        model: names the engine's model in every event.
        topics: the three topics, as `topics.inspect` found them.
        run: name of this process, unique.
        stop: set it to make the worker finish what is in flight and leave.

    Raises:
        ConfigError: librdkafka refuses a property.
    """

    def __init__(
        self,
        settings: Settings,
        engine: Extractor,
        model: ModelInfo,
        topics: Topics,
        *,
        run: str,
        stop: threading.Event,
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._run = run
        self._stop = stop
        self._forward_times = ForwardTimes()
        self._batcher = new_batcher(settings, self._forward_times)
        self._publisher = new_publisher(settings, topics, run=run)
        self._assignment = Assignment()
        self._consumer = TextConsumer(
            settings, self._assignment, stamp=self._stamp, finish=self._finish, forget=self._forget
        )
        self._delivery = Delivery(
            self._publisher,
            self._consumer,
            self._assignment,
            Writer(settings, topics, model),
            stamp=self._stamp,
        )
        self._closed: queue.SimpleQueue[MicroBatch[Task] | None] = queue.SimpleQueue()
        self._forwarded: queue.SimpleQueue[Forwarded | Exception] = queue.SimpleQueue()
        self._forwards: deque[frozenset[Partition]] = deque()
        self._batches = 0
        self._counts: Counter[str] = Counter()
        self._leave_by = float("inf")

    def run(self) -> Counter[str]:
        """Work until `stop` is set and what was in flight is done, or dropped when `drain_ms` are over.

        Returns:
            the records answered: `events`, `dead_letters`, `tombstones`.

        Raises:
            ConsumerError, OffsetsGoneError, PublishError, EngineError, KafkaException: the worker can't go on. What
                was not committed is read again by whoever gets its partitions.
        """
        threading.Thread(target=self._run_forwards, name=FORWARDS, daemon=True).start()
        clean = False
        try:
            self._publisher.start()
            self._consumer.join()
            self._loop()
            clean = True
        finally:
            if not clean:
                self._leave_by = 0.0
                self._stop.set()
            self._closed.put(None)
            try:
                self._consumer.close(clean=clean)
            finally:
                self._publisher.close()
        return self._counts

    def _loop(self) -> None:
        last_report = time.monotonic()
        while not self._drained():
            self._consumer.apply_rewinds()
            self._pause_or_resume()
            records = self._consumer.take(TAKE_RECORDS, TAKE_BYTES, self._patience())
            for task in read_tasks(records, self._engine, self._settings):
                # A rebalance between two of the records taken may have ended the epoch of the first.
                if self._assignment.holds(task.partition, task.record.epoch):
                    self._batcher.add(task)
            self._close_batch(idle=not records)
            self._publish(wait_s=0)
            self._consumer.mend(self._busy)
            if time.monotonic() - last_report >= PROGRESS_S:
                last_report = time.monotonic()
                log.info("progress", buffered=len(self._batcher), in_flight=self._in_flight, **self._counts)

    def _close_batch(self, *, idle: bool) -> None:
        if len(self._forwards) >= CLOSED_AHEAD or self._in_flight >= IN_FLIGHT:
            return
        batch = self._batcher.close(
            time.monotonic(), idle=idle, draining=self._stop.is_set(), full_only=bool(self._forwards)
        )
        if batch is not None:
            self._forwards.append(frozenset(task.partition for task in batch.items))
            self._closed.put(batch)

    def _run_forwards(self) -> None:
        while (batch := self._closed.get()) is not None:
            started = time.monotonic()
            try:
                answers = answer_tasks(self._engine, batch.items)
            except Exception as error:
                self._forwarded.put(error)
                return
            self._forwarded.put(Forwarded(answers, batch.tokens, time.monotonic() - started, batch.reason))

    def _publish(self, *, wait_s: float) -> None:
        """Take a forward that is done, waiting up to `wait_s` seconds for one, and publish what is due."""
        try:
            done = self._forwarded.get(timeout=wait_s) if wait_s else self._forwarded.get_nowait()
        except queue.Empty:
            pass
        else:
            if isinstance(done, Exception):
                raise done
            self._forwards.popleft()
            self._forward_times.observe(done.tokens, done.seconds)
            self._delivery.add(done.answers)
            self._batches += 1
            log.debug(
                "forward", records=len(done.answers), tokens=done.tokens, seconds=done.seconds, closed=done.reason
            )
        if published := self._delivery.work(time.monotonic()):
            self._counts.update(answer.kind for answer in published)
            log.debug("published", records=len(published))

    def _pause_or_resume(self) -> None:
        if self._stop.is_set() or self._batcher.full:
            self._consumer.pause(True)
        elif self._batcher.half_empty:
            self._consumer.pause(False)

    def _patience(self) -> float:
        """Return for how long the poll may wait: until the next thing to do, in seconds."""
        if self._in_flight or self._stop.is_set():
            return BUSY_POLL_S
        deadline = self._batcher.deadline()
        if deadline is None:
            return EMPTY_POLL_S
        return min(max(deadline - time.monotonic(), 0), self._settings.idle_ms / 1000)

    @property
    def _in_flight(self) -> int:
        return len(self._forwards) + len(self._delivery)

    def _drained(self) -> bool:
        if not self._stop.is_set():
            return False
        self._leave_by = min(self._leave_by, time.monotonic() + self._settings.drain_ms / 1000)
        if not (self._batcher or self._in_flight):
            return True
        if time.monotonic() < self._leave_by:
            return False
        log.warning("work_dropped", buffered=len(self._batcher), batches_in_flight=self._in_flight)
        return True

    def _busy(self, partition: Partition) -> bool:
        return (
            self._batcher.holds(partition)
            or self._delivery.touches([partition])
            or any(partition in batch for batch in self._forwards)
        )

    def _finish(self, partitions: Collection[Partition]) -> None:
        """Publish what of these partitions is in flight, for `drain_ms` at most; forget what only waits."""
        self._forget(partitions)
        leave_by = min(self._leave_by, time.monotonic() + self._settings.drain_ms / 1000)
        while time.monotonic() < leave_by and (
            self._delivery.touches(partitions) or any(not batch.isdisjoint(partitions) for batch in self._forwards)
        ):
            self._publish(wait_s=BUSY_POLL_S)

    def _forget(self, partitions: Collection[Partition]) -> None:
        for partition in partitions:
            self._batcher.drop(partition)

    def _stamp(self, clean: bool) -> Checkpoint:
        return Checkpoint(run=self._run, batch=self._batches, clean=clean)

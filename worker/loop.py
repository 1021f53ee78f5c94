"""The worker, where the parts meet: takes records, does what the stream says, and tells it what came of that.

Two threads, so that while a forward runs the next micro-batch is prepared and the last one published: one runs
forwards and nothing else; the caller's does all that touches Kafka, so that no partition can be taken away between
the check that it is held and the commit. What the stream decides is in `stream.py`; nothing is decided here.
"""

import queue
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import structlog
from confluent_kafka import KafkaException

from schemas.events import ModelInfo
from worker import metrics
from worker.actions import Action, Ask, Canary, Forward, Prepare, Publish, Read, Trial, mark
from worker.answers import Writer
from worker.assignment import Assignment
from worker.breaker import Breaker
from worker.commits import commit_points
from worker.config import Settings
from worker.consumer import TextConsumer
from worker.forecast import ForwardTimes
from worker.forward import Answer, answer_alone, answer_tasks, check_engine
from worker.isolation import Suspicion
from worker.progress import Progress
from worker.publisher import Offsets, Outcome, RefusedError, new_publisher
from worker.records import Partition, Record
from worker.sandbox import Load, Sandbox, SandboxError
from worker.status import Status
from worker.stream import Limits, Stream
from worker.tasks import Extractor, Failure, new_batcher, read_tasks
from worker.topics import Topics
from worker.watchdog import Watchdog

log = structlog.get_logger()

FORWARDS = "forwards"
"""Name of the thread that runs forwards."""
TAKE_RECORDS = 1000
TAKE_BYTES = 4_000_000
EMPTY_POLL_S = 0.1
BUSY_POLL_S = 0.005
"""How long a poll without records may keep a finished forward waiting for its publication."""
PROGRESS_S = 30.0
LOOK_S = 1.0
"""How often the metrics of the partitions and the readiness are brought up to date."""


@dataclass(frozen=True, slots=True)
class _Forwarded:
    """A micro-batch whose forward is done, with the seconds it took."""

    job: Forward
    answers: list[Answer]
    seconds: float


@dataclass(frozen=True, slots=True)
class _Tried:
    record: Record
    answer: Answer | None


@dataclass(frozen=True, slots=True)
class _Checked:
    in_child: bool
    found: bool


_Job: TypeAlias = Forward | Trial | Canary
_Done: TypeAlias = _Forwarded | _Tried | _Checked


class Worker:
    """Reads texts, finds entities, and publishes them with the offsets they answer.

    Args:
        settings: the worker's settings.
        engine: finds the entities.
        load: loads such an engine, in a child process.
        model: names the engine's model in every event.
        topics: the three topics, as `topics.inspect` found them.
        run: name of this process, unique.
        stop: set it to make the worker finish what is in flight and leave.
        watchdog: is given signs of life.
        status: is told what keeps the stream from flowing.

    Raises:
        ConfigError: librdkafka refuses a property.
    """

    def __init__(
        self,
        settings: Settings,
        engine: Extractor,
        load: Load,
        model: ModelInfo,
        topics: Topics,
        *,
        run: str,
        stop: threading.Event,
        watchdog: Watchdog,
        status: Status,
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._stop = stop
        self._watchdog = watchdog
        self._status = status
        self._progress = Progress()
        self._sandbox = Sandbox(settings, load)
        self._publisher = new_publisher(settings, topics, run=run)
        self._assignment = Assignment(run)
        self._consumer = TextConsumer(settings, self._assignment, self, run=run)
        self._stream = new_stream(settings, self._assignment, Writer(settings, topics, model))
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[_Done | Exception] = queue.SimpleQueue()
        self._counts: Counter[str] = Counter()
        self._leave_by = float("inf")
        self._clean = False

    def run(self) -> Counter[str]:
        """Work until `stop` is set and what was in flight is done, or dropped when `drain_ms` are over.

        Returns:
            the records answered: `events`, `dead_letters`, `tombstones`.

        Raises:
            ConsumerError, OffsetsGoneError, PublishError, UndeliverableError, EngineError, KafkaException: the worker
                can't go on. What was not committed is read again by whoever gets its partitions.
        """
        threading.Thread(target=self._run_jobs, name=FORWARDS, daemon=True).start()
        self._clean = True
        try:
            self._watchdog.sign("starting the producer")
            self._publisher.start()
            self._consumer.join()
            self._loop()
        except BaseException:
            self._clean = False
            raise
        finally:
            if not self._clean:
                self._leave_by = 0.0
                self._stop.set()
            self._jobs.put(None)
            try:
                self._watchdog.sign("closing the consumer")
                self._consumer.close()
            finally:
                self._watchdog.sign("closing the producer")
                self._publisher.close()
        return self._counts

    # What the consumer tells

    def begin(self, partition: Partition, base: int, suspicion: Suspicion | None) -> None:
        """Read a partition from its committed offset."""
        self._stream.begin(partition, base, suspicion)

    def leave(self, partitions: Collection[Partition]) -> None:
        """Publish what of these partitions is in flight, for `drain_ms` at most, and mark them as left in order."""
        self._stream.forget(partitions)
        leave_by = min(self._leave_by, time.monotonic() + self._settings.drain_ms / 1000)
        while time.monotonic() < leave_by and not self._stream.drained(partitions):
            self._collect(BUSY_POLL_S)
            self._deliver()
        stamps = self._stream.clean_stamps(partitions) if self._clean else {}
        if stamps and not self._commit(mark(stamps)):
            log.warning("clean_mark_failed", partitions=[str(partition) for partition in stamps])

    def end(self, partitions: Collection[Partition]) -> None:
        """Drop all that is in hand of these partitions."""
        self._stream.end(partitions)

    # The polling thread

    def _loop(self) -> None:
        last_report = last_look = time.monotonic()
        while not self._drained():
            self._watchdog.sign("polling")
            self._consumer.pause(self._paused())
            records = self._consumer.take(TAKE_RECORDS, TAKE_BYTES, self._patience())
            self._stream.take(records)
            self._collect(0)
            while action := self._next(idle=not records):
                self._watchdog.sign(type(action).__name__)
                self._perform(action)
            self._consumer.mend(self._stream.holds)
            if time.monotonic() - last_look >= LOOK_S:
                last_look = time.monotonic()
                self._look(last_look)
            if time.monotonic() - last_report >= PROGRESS_S:
                last_report = time.monotonic()
                log.info("progress", held=len(self._stream), in_flight=self._stream.in_flight, **self._counts)

    def _look(self, now: float) -> None:
        """Bring metrics and readiness up to date."""
        bases = {part: base for part in self._assignment if (base := self._assignment.base(part)) is not None}
        behind = self._consumer.behind() | {partition for partition in bases if self._stream.holds(partition)}
        self._progress.note(now, bases, behind)
        stalled = self._progress.stalled(now)
        metrics.show_partitions(bases, self._consumer.ends(), stalled)
        metrics.HELD_RECORDS.set(len(self._stream))
        metrics.HELD_BYTES.set(self._stream.size)
        metrics.BREAKER_OPEN.set(self._stream.breaker_open(now))
        faults = [
            f"{partition} has made no progress for {seconds:.0f} s"
            for partition, seconds in stalled.items()
            if seconds * 1000 > self._settings.stall_ms
        ]
        faults += [f"answers of {partition} can't be published" for partition in self._stream.troubled]
        if self._stream.breaker_open(now):
            faults.append("most records became dead letters for the same reason, so it pauses")
        if not self._consumer.is_member():
            faults.append("it is not a member of the group")
        self._status.faults = faults

    def _next(self, *, idle: bool) -> Action | None:
        return self._stream.next(time.monotonic(), idle=idle, draining=self._stop.is_set())

    def _perform(self, action: Action) -> None:
        match action:
            case Prepare():
                self._stream.prepared(read_tasks(action.records, self._engine, self._settings))
            case Forward() | Canary() | Trial():
                self._jobs.put(action)
            case Read():
                if action.anew:
                    self._stream.begin(action.partition, action.offset, None)
                self._consumer.read(action.partition, action.offset)
            case Publish():
                self._publish(action)
            case Ask():
                self._ask(action)

    def _deliver(self) -> None:
        while action := self._stream.deliver(time.monotonic()):
            self._watchdog.sign(type(action).__name__)
            self._perform(action)

    def _publish(self, action: Publish) -> None:
        started = time.monotonic()
        try:
            committed = self._commit(action)
        except RefusedError as refused:
            self._stream.refused({index: error.str() for index, error in refused.reasons.items()})
            return
        now = time.monotonic()
        if committed:
            self._count(self._stream.published(now))
        else:
            metrics.PUBLISH_FAILURES.inc()
            self._stream.failed(now, now - started)

    def _commit(self, action: Publish) -> bool:
        """Return whether messages and offsets are certainly committed.

        Raises:
            RefusedError: the broker refused messages for good.
        """
        # Brokers don't validate an empty member id: a commit of a worker outside the group would pass.
        if not self._consumer.is_member():
            return False
        messages = [written.message for written in action.answers]
        offsets = Offsets(
            commit_points(action.ends, action.stamps),
            self._consumer.group_metadata,
            lambda: self._consumer.commit(action.ends, action.stamps),
        )
        return self._publisher.publish(messages, offsets) is Outcome.COMMITTED

    def _ask(self, action: Ask) -> None:
        started = time.monotonic()
        try:
            found = self._consumer.committed(action.partitions)
        except KafkaException as error:
            log.warning("committed_unknown", error=error.args[0].name(), reason=error.args[0].str())
            now = time.monotonic()
            self._stream.failed(now, now - started)
            return
        offsets = {partition: commit.offset for partition, commit in found.items() if commit}
        self._count(self._stream.asked(offsets, time.monotonic()))

    def _count(self, published: Iterable[Answer]) -> None:
        answers = list(published)
        kinds = Counter(answer.kind for answer in answers)
        for answer in answers:
            metrics.ANSWERS.labels(answer.kind).inc()
            if isinstance(answer.outcome, Failure):
                metrics.DEAD_LETTERS.labels(answer.outcome.stage).inc()
        if kinds:
            self._counts.update(kinds)
            log.debug("published", records=kinds.total())

    def _paused(self) -> frozenset[Partition]:
        return frozenset(self._assignment) if self._stop.is_set() else self._stream.paused(time.monotonic())

    def _patience(self) -> float:
        """Return for how long the poll may wait: until the next thing to do, in seconds."""
        if self._stream.in_flight or self._stop.is_set():
            return BUSY_POLL_S
        deadline = self._stream.deadline(time.monotonic())
        if deadline is None:
            return EMPTY_POLL_S
        return min(max(deadline - time.monotonic(), 0), self._settings.idle_ms / 1000)

    def _drained(self) -> bool:
        if not self._stop.is_set():
            return False
        self._leave_by = min(self._leave_by, time.monotonic() + self._settings.drain_ms / 1000)
        if self._stream.idle:
            return True
        if time.monotonic() < self._leave_by:
            return False
        log.warning("work_dropped", held=len(self._stream), batches_in_flight=self._stream.in_flight)
        return True

    # The forwards' thread

    def _run_jobs(self) -> None:
        try:
            while (job := self._jobs.get()) is not None:
                self._done.put(self._run_job(job))
        except Exception as error:
            self._done.put(error)
        finally:
            self._sandbox.close()

    def _run_job(self, job: _Job) -> _Done:
        match job:
            case Forward(batch):
                # Nothing is suspect any more: the second model has done its work.
                self._sandbox.close()
                started = time.monotonic()
                answers = answer_tasks(self._engine, batch.items)
                return _Forwarded(job, answers, time.monotonic() - started)
            case Trial(record, in_child=True):
                return _Tried(record, self._sandbox.run(record))
            case Trial(record):
                return _Tried(record, answer_alone(self._engine, record, self._settings))
            case Canary(in_child=True):
                try:
                    self._sandbox.canary()
                except SandboxError as error:
                    log.warning("sandbox_unavailable", reason=f"{error}; suspect records run in the worker itself")
                    return _Checked(in_child=True, found=False)
                return _Checked(in_child=True, found=True)
            case Canary():
                check_engine(self._engine)
                return _Checked(in_child=False, found=True)

    def _collect(self, wait_s: float) -> None:
        """Take what the forwards' thread has done, waiting up to `wait_s` seconds for something."""
        while True:
            try:
                done = self._done.get(timeout=wait_s) if wait_s else self._done.get_nowait()
            except queue.Empty:
                return
            wait_s = 0
            now = time.monotonic()
            match done:
                case Exception():
                    raise done
                case _Forwarded(Forward(batch), answers, seconds):
                    self._stream.forwarded(answers, batch.tokens, seconds, now)
                    metrics.FORWARD_SECONDS.observe(seconds)
                    metrics.BATCH_TOKENS.observe(batch.tokens)
                    metrics.BATCHES.labels(batch.reason).inc()
                    log.debug(
                        "forward", records=len(answers), tokens=batch.tokens, seconds=seconds, closed=batch.reason
                    )
                case _Tried(record, answer):
                    log.debug("trial", partition=str(record.partition), offset=record.offset, died=answer is None)
                    metrics.TRIALS.labels("yes" if answer is None else "no").inc()
                    self._stream.tried(record, answer, now)
                case _Checked(in_child, found):
                    self._stream.sound(in_child, found)


def new_stream(settings: Settings, assignment: Assignment, writer: Writer) -> Stream:
    """Return the stream with the bounds that are set."""
    times = ForwardTimes()
    return Stream(
        assignment,
        new_batcher(settings, times),
        writer.write,
        times,
        Breaker(settings.breaker_share, settings.breaker_pause_ms / 1000),
        Limits(
            buffer_records=settings.buffer_records,
            buffer_bytes=settings.buffer_bytes,
            trials=settings.trials,
            children=settings.trial_process,
        ),
        budget_tokens=settings.batch_tokens,
    )

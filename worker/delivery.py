"""The delivery of answers: what to publish next, and what an outcome means. Pure: actions out, outcomes in.

What was answered is never inferred again: the same answers are tried until the committed offset covers them, or their
partition is taken away. Whoever runs it performs one action at a time and reports its outcome before asking for the
next.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from worker.actions import Ask, Publish
from worker.answers import Written, refuse
from worker.assignment import Assignment
from worker.checkpoint import Checkpoint
from worker.forward import Answer
from worker.records import Partition

log = structlog.get_logger()

RETRY_PAUSE_S = 0.1
MAX_RETRY_PAUSE_S = 5.0
TOGETHER = 2
"""Tries of a whole micro-batch before each of its partitions is tried alone, so that a bad one holds up no other."""
MAX_REFUSALS = 1


class UndeliverableError(Exception):
    """A record has no answer that the broker takes; the message says which and why."""


@dataclass(slots=True)
class _Waiting:
    """Answers that are published in one try.

    Attributes:
        due: when to try next, in seconds.
        doubtful: a try ended with an unknown outcome, so the committed offsets have to be asked first.
        stamps: the checkpoints of the last try.
    """

    answers: list[Written]
    due: float
    doubtful: bool = False
    pause: float = RETRY_PAUSE_S
    tries: int = 0
    stamps: Mapping[Partition, Checkpoint] = field(default_factory=dict)


class Delivery:
    """Delivers the answers of micro-batches in the order they were added, per partition in any case.

    Args:
        assignment: says which answers may still be published, and learns what is committed.
        write: makes a message of an answer.
        stamp: makes the checkpoint of a commit of this offset.
    """

    def __init__(
        self,
        assignment: Assignment,
        write: Callable[[Answer], Written],
        stamp: Callable[[Partition, int], Checkpoint],
    ) -> None:
        self._assignment = assignment
        self._write = write
        self._stamp = stamp
        self._queue: deque[_Waiting] = deque()
        self._troubled: dict[Partition, deque[_Waiting]] = {}
        self._tried: deque[_Waiting] | None = None

    def __len__(self) -> int:
        return len(self._queue) + sum(len(queue) for queue in self._troubled.values())

    @property
    def waiting(self) -> list[Answer]:
        """The answers that are not published yet."""
        return [*_answers([self._queue]), *self.stuck]

    @property
    def in_turn(self) -> int:
        """Micro-batches that wait for their turn, and not for a partition in trouble."""
        return len(self._queue)

    @property
    def stuck(self) -> list[Answer]:
        """The answers that wait for a partition in trouble."""
        return _answers(self._troubled.values())

    @property
    def troubled(self) -> Collection[Partition]:
        """The partitions whose answers failed repeatedly: each is tried alone until it works again."""
        return self._troubled.keys()

    def add(self, answers: Sequence[Answer], now: float) -> None:
        """Append the answers of a micro-batch; they are published after those added before."""
        self._queue.append(_Waiting([self._write(answer) for answer in answers], now))

    def touches(self, partitions: Collection[Partition]) -> bool:
        """Return whether answers of one of these partitions are still to be published."""
        return any(answer.task.partition in partitions for answer in self.waiting)

    def next(self, now: float) -> Publish | Ask | None:
        """Return what to do now; its outcome is to be reported before the next call."""
        self._sort_out(now)
        queues = [queue for queue in (self._queue, *self._troubled.values()) if queue and queue[0].due <= now]
        if not queues:
            return None
        self._tried = min(queues, key=lambda queue: queue[0].due)
        batch = self._tried[0]
        ends = _ends(batch.answers)
        if batch.doubtful:
            return Ask(tuple(ends))
        batch.stamps = {partition: self._stamp(partition, end) for partition, end in ends.items()}
        self._assignment.unsettle(ends)
        return Publish(tuple(batch.answers), ends, batch.stamps)

    def committed(self) -> list[Answer]:
        """Note that what was to be published is committed; returns the answers, in their last form."""
        batch = self._taken()
        for partition, end in _ends(batch.answers).items():
            self._assignment.settle(partition, end, batch.stamps[partition])
        self._forget_untroubled()
        return [written.answer for written in batch.answers]

    def failed(self, now: float, took_s: float) -> None:
        """Note that publishing failed, or may have; or that the committed offsets asked for aren't known.

        Args:
            now: the time in seconds.
            took_s: how long the try took: others get at least as much time before the next.
        """
        batch = self._taken()
        batch.doubtful = True
        batch.tries += 1
        batch.due = now + max(batch.pause, took_s)
        batch.pause = min(2 * batch.pause, MAX_RETRY_PAUSE_S)
        if self._tried is self._queue and batch.tries >= TOGETHER:
            for partition in _ends(batch.answers):
                alone = [written for written in batch.answers if written.answer.task.partition == partition]
                stamps = {partition: batch.stamps[partition]} if partition in batch.stamps else {}
                waiting = _Waiting(alone, batch.due, True, batch.pause, batch.tries, stamps)
                self._troubled[partition] = deque([waiting])
            log.warning("publishing_in_trouble", partitions=[str(partition) for partition in _ends(batch.answers)])
        else:
            assert self._tried is not None
            self._tried.appendleft(batch)

    def asked(self, committed: Mapping[Partition, int]) -> list[Answer]:
        """Take note of the committed offsets; returns the answers that turn out to be published."""
        batch = self._taken()
        batch.doubtful = False
        ends = _ends(batch.answers)
        done = {partition for partition, offset in committed.items() if offset == ends[partition]}
        for partition, offset in committed.items():
            if partition in done:
                self._assignment.settle(partition, offset, batch.stamps.get(partition))
            elif offset == self._assignment.base(partition):
                self._assignment.settle(partition, offset)
            else:
                log.warning("commit_moved", partition=str(partition), found=offset)
                self._assignment.rewind(partition, offset)
        published = [written.answer for written in batch.answers if written.answer.task.partition in done]
        batch.answers = [written for written in batch.answers if written.answer.task.partition not in done]
        if batch.answers:
            assert self._tried is not None
            self._tried.appendleft(batch)
        self._forget_untroubled()
        return published

    def refused(self, reasons: Mapping[int, str]) -> None:
        """Note that the broker refused some of the messages for good (their index, and why); nothing is committed.

        A broker refuses the whole record batch in which one record is wrong, so that only an answer refused alone is
        known to be the one: of several, two halves are tried, of one its next form.

        Raises:
            UndeliverableError: even an answer's last form is refused.
        """
        batch = self._taken()
        for partition in _ends(batch.answers):
            if (base := self._assignment.base(partition)) is not None:
                self._assignment.settle(partition, base)
        middle = len(batch.answers) // 2
        halves = [batch.answers[:middle], batch.answers[middle:]]
        if len(batch.answers) == 1:
            halves = [[self._next_form(batch.answers[0], reasons[0])]]
        assert self._tried is not None
        self._tried.extendleft(_Waiting(half, batch.due) for half in reversed(halves))

    def _sort_out(self, now: float) -> None:
        """Drop what may not be published any more, and put what comes after a troubled answer behind it."""
        for queue in (self._queue, *self._troubled.values()):
            for batch in queue:
                batch.answers = [written for written in batch.answers if self._held(written)]
            while queue and not queue[0].answers:
                queue.popleft()
        self._forget_untroubled()
        if not (self._queue and self._troubled):
            return
        first = self._queue[0]
        for partition, queue in self._troubled.items():
            behind = [written for written in first.answers if written.answer.task.partition == partition]
            if behind:
                queue.append(_Waiting(behind, now))
                first.answers = [written for written in first.answers if written.answer.task.partition != partition]
        if not first.answers:
            self._queue.popleft()
            self._sort_out(now)

    def _taken(self) -> _Waiting:
        assert self._tried is not None
        return self._tried.popleft()

    def _forget_untroubled(self) -> None:
        self._troubled = {partition: queue for partition, queue in self._troubled.items() if queue}

    def _held(self, written: Written) -> bool:
        record = written.answer.task.record
        return self._assignment.holds(record.partition, record.epoch)

    def _next_form(self, written: Written, reason: str) -> Written:
        answer = written.answer
        record = answer.task.record
        if answer.refused >= MAX_REFUSALS:
            raise UndeliverableError(
                f"{record.partition}, offset {record.offset}: even its dead letter is refused: {reason}"
            )
        log.warning("answer_refused", partition=str(record.partition), offset=record.offset, reason=reason)
        return self._write(refuse(answer, reason))


def _answers(queues: Iterable[Iterable[_Waiting]]) -> list[Answer]:
    return [written.answer for queue in queues for batch in queue for written in batch.answers]


def _ends(answers: Iterable[Written]) -> dict[Partition, int]:
    """Return the offset to commit for each partition: one after the last answered."""
    records = (written.answer.task.record for written in answers)
    return {record.partition: record.offset + 1 for record in records}

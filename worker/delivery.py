"""The delivery of answers: published with the offsets they cover, and settled when an outcome is unknown.

It belongs to the polling thread. Between two tries polling goes on; within one, the client's own calls wait for the
broker, for as long as a message or a transaction may take.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import structlog
from confluent_kafka import KafkaException

from worker.answers import Writer, Written, refuse
from worker.assignment import Assignment
from worker.checkpoint import Checkpoint
from worker.commits import commit_points
from worker.consumer import TextConsumer
from worker.forward import Answer
from worker.publisher import Offsets, Outcome, Publisher, PublishError, RefusedError
from worker.records import Partition

log = structlog.get_logger()

RETRY_PAUSE_S = 0.1
MAX_RETRY_PAUSE_S = 5.0
MAX_REFUSALS = 1


@dataclass(slots=True)
class _Waiting:
    """Answers of one micro-batch that are not published yet.

    Attributes:
        doubtful: an attempt ended with an unknown outcome, so the committed offsets have to be asked first.
        due: when to try next, in seconds.
    """

    answers: list[Written]
    doubtful: bool = False
    due: float = 0.0
    pause: float = RETRY_PAUSE_S


class Delivery:
    """Delivers the answers of micro-batches, one after the other.

    What was answered is never inferred again: the same answers are tried until the committed offset covers them,
    or their partition is taken away.

    Args:
        publisher: publishes and commits.
        consumer: the group member whose offsets are committed.
        assignment: says which answers may still be published.
        writer: makes messages of answers.
        stamp: makes the checkpoint of a commit (`clean` as given).
    """

    def __init__(
        self,
        publisher: Publisher,
        consumer: TextConsumer,
        assignment: Assignment,
        writer: Writer,
        *,
        stamp: Callable[[bool], Checkpoint],
    ) -> None:
        self._publisher = publisher
        self._consumer = consumer
        self._assignment = assignment
        self._writer = writer
        self._stamp = stamp
        self._waiting: deque[_Waiting] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, answers: Sequence[Answer]) -> None:
        """Append the answers of a micro-batch; they are published after those added before."""
        self._waiting.append(_Waiting([self._writer.write(answer) for answer in answers]))

    def touches(self, partitions: Collection[Partition]) -> bool:
        """Return whether answers of one of these partitions are still to be published."""
        return any(written.answer.task.partition in partitions for batch in self._waiting for written in batch.answers)

    def work(self, now: float) -> list[Answer]:
        """Publish what is due at `now` (seconds); returns what was published and committed, in its last form.

        Raises:
            PublishError: it can't be done, and trying again would not help.
        """
        published: list[Answer] = []
        while self._waiting and self._waiting[0].due <= now:
            batch = self._waiting.popleft()
            published += self._settle_doubt(batch)
            batch.answers = [written for written in batch.answers if self._held(written)]
            if not batch.answers:
                continue
            try:
                tried = self._try(batch)
            except RefusedError as refused:
                self._waiting.extendleft(reversed(self._without_refused(batch.answers, refused)))
                continue
            if tried:
                published += [written.answer for written in batch.answers]
            else:
                batch.due = now + batch.pause
                batch.pause = min(2 * batch.pause, MAX_RETRY_PAUSE_S)
                self._waiting.appendleft(batch)
        return published

    def _try(self, batch: _Waiting) -> bool:
        """Return whether the answers are published now."""
        # Brokers don't validate an empty member id: a commit of a worker outside the group would pass.
        if batch.doubtful or not self._consumer.is_member():
            return False
        ends, stamp = _ends(batch.answers), self._stamp(False)
        self._assignment.unsettle(ends)
        outcome = self._publisher.publish(
            [written.message for written in batch.answers],
            Offsets(
                commit_points(ends, stamp), self._consumer.group_metadata, lambda: self._consumer.commit(ends, stamp)
            ),
        )
        if outcome is Outcome.COMMITTED:
            self._settle(ends, ends)
        else:
            batch.doubtful = True
        return outcome is Outcome.COMMITTED

    def _settle_doubt(self, batch: _Waiting) -> list[Answer]:
        """Ask what is committed where an attempt's outcome is unknown; returns what turns out to be published."""
        ends = _ends(written for written in batch.answers if self._held(written))
        if not batch.doubtful or (committed := self._ask(ends)) is None:
            return []
        batch.doubtful = False
        done = self._settle(ends, committed)
        published = [written.answer for written in batch.answers if written.answer.task.partition in done]
        batch.answers = [written for written in batch.answers if written.answer.task.partition not in done]
        return published

    def _without_refused(self, answers: list[Written], refused: RefusedError) -> list[_Waiting]:
        """Return what to try instead: of one answer its next form, of several, two halves.

        A broker refuses the whole record batch in which one record is wrong, so that only an answer refused alone is
        known to be the one.
        """
        if len(answers) == 1:
            return [_Waiting([self._refuse(answers[0], refused.reasons[0].str())])]
        middle = len(answers) // 2
        return [_Waiting(answers[:middle]), _Waiting(answers[middle:])]

    def _ask(self, partitions: Iterable[Partition]) -> dict[Partition, int] | None:
        try:
            found = self._consumer.committed(partitions)
        except KafkaException as error:
            log.warning("committed_unknown", error=error.args[0].name(), reason=error.args[0].str())
            return None
        return {partition: commit.offset for partition, commit in found.items() if commit}

    def _settle(self, ends: dict[Partition, int], committed: dict[Partition, int]) -> set[Partition]:
        """Take note of committed offsets; returns the partitions whose commit they cover."""
        done = set()
        for partition, offset in committed.items():
            if offset == ends[partition]:
                done.add(partition)
                self._assignment.settle(partition, offset)
            elif offset == self._assignment.base(partition):
                self._assignment.settle(partition, offset)
            else:
                log.warning("commit_moved", partition=str(partition), found=offset)
                self._assignment.rewind(partition, offset)
        return done

    def _held(self, written: Written) -> bool:
        task = written.answer.task
        return self._assignment.holds(task.partition, task.record.epoch)

    def _refuse(self, written: Written, reason: str) -> Written:
        answer = written.answer
        record = answer.task.record
        if answer.refused >= MAX_REFUSALS:
            raise PublishError(f"{record.partition}, offset {record.offset}: even its dead letter is refused: {reason}")
        log.warning("answer_refused", partition=str(record.partition), offset=record.offset, reason=reason)
        return self._writer.write(refuse(answer, reason))


def _ends(answers: Iterable[Written]) -> dict[Partition, int]:
    """Return the offset to commit for each partition: one after the last answered."""
    records = (written.answer.task.record for written in answers)
    return {record.partition: record.offset + 1 for record in records}

"""Answers as the forward would give them, and messages as the writer would make of them."""

from packing import Result
from tests.worker.records import record
from worker.answers import Written
from worker.forward import Answer
from worker.records import OutgoingMessage, Partition
from worker.tasks import Failure, Task

FOUND = Result((), 1, 1)


def answer(partition: Partition, offset: int, epoch: int, outcome: Result | Failure | None = FOUND) -> Answer:
    """Return the answer of a record that was read under an epoch."""
    read = record(b"text", partition=partition, offset=offset, epoch=epoch)
    return Answer(Task(read), outcome)


def write(given: Answer) -> Written:
    """Return an answer with a message that says no more than where it goes."""
    topic = "texts-dlq" if isinstance(given.outcome, Failure) else "entities"
    return Written(given, OutgoingMessage(topic, given.task.partition.number, None, None, None, ()))

"""The forward over a micro-batch's tasks: an answer for each, and no task's fault on another's head."""

from collections.abc import Sequence
from dataclasses import dataclass

from packing import Document, Result
from worker.config import Settings
from worker.records import Record
from worker.tasks import Extractor, Failure, Task, failure_of, read_tasks

CANARY = Document("Ada Lovelace worked with Charles Babbage in London.", ("person", "location"))


class EngineError(Exception):
    """The model or its device is broken: a text known to be harmless fails too."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a task.

    Attributes:
        outcome: the entities; or why there are none to be had; None for a tombstone.
        refused: how often the broker has refused to take the answer in its earlier forms.
    """

    task: Task
    outcome: Result | Failure | None
    refused: int = 0

    @property
    def kind(self) -> str:
        """What it becomes: one of `events`, `dead_letters`, `tombstones`."""
        match self.outcome:
            case None:
                return "tombstones"
            case Failure():
                return "dead_letters"
            case Result():
                return "events"


def answer_tasks(engine: Extractor, tasks: Sequence[Task]) -> list[Answer]:
    """Answer tasks in their order with one forward; a task that makes it fail is found by bisection.

    Raises:
        EngineError: a harmless text fails as well, so the fault is not the tasks'.
    """
    readable = [task for task in tasks if task.prepared is not None]
    outcomes = iter(_infer(engine, readable))
    return [Answer(task, next(outcomes) if task.prepared is not None else task.failure) for task in tasks]


def answer_alone(engine: Extractor, record: Record, settings: Settings) -> Answer:
    """Return the answer of one record that is read, tokenised and run all by itself.

    Raises:
        EngineError: a harmless text fails as well.
    """
    return answer_tasks(engine, read_tasks([record], engine, settings))[0]


def check_engine(engine: Extractor, failure: Exception | None = None) -> None:
    """Make sure that a text known to be harmless gets its answer.

    Args:
        engine: the engine.
        failure: what gave rise to the question.

    Raises:
        EngineError: it doesn't.
    """
    try:
        engine.infer(engine.prepare([CANARY]))
    except Exception as error:
        raise EngineError(
            f"the forward fails on a harmless text too ({type(error).__name__}: {error}), so the model or its "
            "device is at fault, not the records; nothing was dead-lettered"
        ) from failure


def _infer(engine: Extractor, tasks: Sequence[Task]) -> list[Result | Failure]:
    if not tasks:
        return []
    try:
        return list(engine.infer([task.prepared for task in tasks]))
    except Exception as error:
        check_engine(engine, error)
        if len(tasks) == 1:
            return [failure_of("infer", error)]
    middle = len(tasks) // 2
    return _infer(engine, tasks[:middle]) + _infer(engine, tasks[middle:])

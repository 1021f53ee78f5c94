"""A task: what one record asks for, read and checked; or why it can't be read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from packing import Document, Result
from schemas.codec import decode_text_event
from schemas.events import TextEvent
from schemas.strict_json import depth
from schemas.unreadable import Unreadable
from worker.batcher import MicroBatcher
from worker.config import Settings
from worker.forecast import ForwardTimes
from worker.records import LOST_HEADERS, Partition, Record


class Prepared(Protocol):
    """A document made ready for the forward."""

    @property
    def tokens(self) -> int:
        """Sub-tokens the forward will read."""

    @property
    def windows(self) -> int:
        """Windows that the text takes."""


class Extractor(Protocol):
    """What the worker needs of an engine; `packing.Engine` is one. `prepare` and `infer` run in two threads."""

    def prepare(self, documents: Sequence[Document]) -> Sequence[Any]:
        """Make documents ready for the forward: a `Prepared` each."""

    def infer(self, prepared: Sequence[Any]) -> Sequence[Result]:
        """Find the entities of prepared documents, in their order."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a record has no entity event.

    Attributes:
        stage: `decode`, `too_large`, `prepare`, `infer`, `encode`, `result_too_large`, `result_refused` or
            `crash`.
        exception: name of the exception's class.
        message: what was wrong; our own words, or the first line of what a library's exception says.
        attempts: how often it was tried.
    """

    stage: str
    exception: str
    message: str
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Task:
    """A record with what it asks for.

    Attributes:
        event: the text event; None for a tombstone and for a record that can't be read.
        prepared: what the forward has to read; None where there is nothing for it to do.
        failure: why the record can't be read; None for all others.
    """

    record: Record
    event: TextEvent | None = None
    prepared: Prepared | None = None
    failure: Failure | None = None

    @property
    def partition(self) -> Partition:
        """The partition of the record."""
        return self.record.partition

    @property
    def tokens(self) -> int:
        """Tokens the forward will read; 1 where there are none, so that any stream fills a micro-batch."""
        return max(1, self.prepared.tokens) if self.prepared else 1

    @property
    def size(self) -> int:
        """Bytes of the record."""
        return self.record.size

    @property
    def arrived(self) -> float:
        """When the record was taken, in seconds."""
        return self.record.arrived


def new_batcher(settings: Settings, forward_times: ForwardTimes) -> MicroBatcher[Task]:
    """Return a batcher of tasks with the bounds that are set."""
    return MicroBatcher(
        budget_tokens=settings.batch_tokens,
        max_latency_s=settings.max_latency_ms / 1000,
        forward_seconds=forward_times.predict,
    )


def failure_of(stage: str, error: Exception) -> Failure:
    """Return an exception as a failure, its message shortened to one line."""
    line = str(error).partition("\n")[0][:500]
    return Failure(stage, type(error).__name__, line or type(error).__name__)


def read_tasks(records: Sequence[Record], engine: Extractor, settings: Settings) -> list[Task]:
    """Return the task of each record, in order. No record stops another: what can't be read is a `Failure`."""
    tasks = [_decode(record, settings) for record in records]
    events = {index: task.event for index, task in enumerate(tasks) if task.event is not None}
    for index, prepared in zip(events, _prepare(engine, list(events.values()), settings), strict=True):
        if isinstance(prepared, Failure):
            tasks[index] = replace(tasks[index], failure=prepared)
        elif prepared.windows > settings.max_windows:
            failure = _over("text", "windows", prepared.windows, "max_windows", settings)
            tasks[index] = replace(tasks[index], failure=failure)
        else:
            tasks[index] = replace(tasks[index], prepared=prepared)
    return tasks


def _decode(record: Record, settings: Settings) -> Task:
    if record.headers_lost:
        reason = "headers: a header's name is not UTF-8; the Kafka client can't give them, so they are not kept here"
        return Task(record, failure=Failure("decode", LOST_HEADERS, reason))
    if record.value is None:
        return Task(record)
    if len(record.value) > settings.max_record_bytes:
        return Task(record, failure=_over("value", "bytes", len(record.value), "max_record_bytes", settings))
    try:
        event = decode_text_event(record.value, input_format=settings.input_format)
    except Unreadable as error:
        return Task(record, failure=Failure("decode", type(error).__name__, str(error)))
    if event.labels is not None and len(event.labels) > settings.max_labels:
        return Task(record, failure=_over("labels", "labels", len(event.labels), "max_labels", settings))
    if (levels := depth(event.meta)) > settings.max_meta_depth:
        return Task(record, failure=_over("meta", "levels", levels, "max_meta_depth", settings))
    return Task(record, event)


def _over(field: str, unit: str, found: int, limit: str, settings: Settings) -> Failure:
    message = f"{field}: {found} {unit}, more than {limit} allows ({getattr(settings, limit)})"
    return Failure("too_large", "TooLarge", message)


def _document(event: TextEvent, settings: Settings) -> Document:
    return Document(
        text=event.text,
        labels=settings.labels if event.labels is None else event.labels,
        threshold=settings.threshold if event.threshold is None else event.threshold,
        default_threshold=settings.threshold,
        overlap=event.overlap or settings.overlap,
    )


def _prepare(engine: Extractor, events: Sequence[TextEvent], settings: Settings) -> list[Any]:
    if not events:
        return []
    try:
        return list(engine.prepare([_document(event, settings) for event in events]))
    except Exception as error:
        if len(events) == 1:
            return [failure_of("prepare", error)]
    return [prepared for event in events for prepared in _prepare(engine, [event], settings)]

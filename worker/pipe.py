"""Texts on standard input, entity events on standard output: the worker without Kafka."""

import json
import os
import select
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from packing import Result
from schemas.codec import encode_entity_event
from schemas.events import ModelInfo, event_id
from worker.answers import entity_event, source_of
from worker.backpressure import Backpressure
from worker.batcher import MicroBatcher
from worker.config import Settings
from worker.forecast import ForwardTimes
from worker.forward import Answer, answer_tasks
from worker.records import Partition, Record
from worker.tasks import Extractor, Failure, Task, new_batcher, read_tasks

STDIN = Partition("stdin", 0)
CHUNK_BYTES = 65_536


@dataclass(slots=True)
class Lines:
    """The lines of a file descriptor, split at line feeds only, as they become available."""

    descriptor: int
    ended: bool = False
    _rest: list[bytes] = field(default_factory=list)

    def read(self, timeout_s: float | None) -> list[bytes]:
        """Return the lines that are whole by now, waiting up to `timeout_s` for some; at the end, what is left."""
        ready, _, _ = select.select([self.descriptor], [], [], timeout_s)
        if not ready:
            return []
        chunk = os.read(self.descriptor, CHUNK_BYTES)
        if not chunk:
            self.ended = True
            last = b"".join(self._rest)
            return [last] if last else []
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join([*self._rest, whole[0]])
            self._rest = []
        self._rest.append(rest)
        return whole


def pipe(source: int, sink: BinaryIO, engine: Extractor, model: ModelInfo, settings: Settings) -> None:
    """Answer each line of `source` with one line on `sink`, in the same order, flushed per micro-batch.

    A line that has no answer becomes `{"id", "text_id", "source", "error": {"stage", "exception", "message"}}`.

    Raises:
        EngineError: the model or its device is broken.
        OSError: reading or writing failed; a reader that went away is a BrokenPipeError.
    """
    times = ForwardTimes()
    batcher = new_batcher(settings, times)
    backpressure = Backpressure(settings.buffer_records, settings.buffer_bytes)
    lines = Lines(source)
    number = 0
    while not lines.ended or batcher:
        new = (
            []
            if lines.ended or backpressure.paused(len(batcher), batcher.size)
            else lines.read(_patience(batcher, settings))
        )
        records = [_record(line, number + index) for index, line in enumerate(new)]
        number += len(records)
        for task in read_tasks(records, engine, settings):
            batcher.add(task)
        while batch := batcher.close(time.monotonic(), idle=not new, draining=lines.ended):
            started = time.monotonic()
            answers = answer_tasks(engine, batch.items)
            times.observe(batch.tokens, time.monotonic() - started)
            sink.writelines(line + b"\n" for line in _written(answers, model, settings))
            sink.flush()


def _patience(batcher: MicroBatcher[Task], settings: Settings) -> float | None:
    return settings.idle_ms / 1000 if batcher else None


def _record(line: bytes, number: int) -> Record:
    return Record(STDIN, number, 0, None, None, line, (), time.monotonic())


def _written(answers: list[Answer], model: ModelInfo, settings: Settings) -> Iterator[bytes]:
    for answer in answers:
        match answer.outcome:
            case Result() as result:
                yield encode_entity_event(entity_event(answer.task, result, model, settings))
            case Failure() as failure:
                yield _error_line(answer.task, failure)


def _error_line(task: Task, failure: Failure) -> bytes:
    record = task.record
    line = {
        "id": event_id(*record.partition, record.offset),
        "text_id": task.event.id if task.event else None,
        "source": source_of(record).model_dump(),
        "error": {"stage": failure.stage, "exception": failure.exception, "message": failure.message},
    }
    return json.dumps(line, separators=(",", ":")).encode()

"""Faults put in on purpose: a fuzzer that can't find them shows nothing by finding none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import worker.answers
import worker.tasks
from packing import Result
from schemas.codec import InputFormat, decode_text_event
from schemas.events import OffsetUnit, TextEvent
from schemas.offset_units import convert
from schemas.unreadable import Unreadable
from worker.config import Settings
from worker.forward import Answer, answer_tasks
from worker.tasks import Extractor, Failure, Task

_prepare = worker.tasks._prepare


def _no_threshold_maps(value: bytes, *, input_format: InputFormat) -> TextEvent:
    event = decode_text_event(value, input_format=input_format)
    if isinstance(event.threshold, dict) and len(event.threshold) > 1:
        raise KeyError("threshold")
    return event


def _no_descriptions_with_overlap(value: bytes, *, input_format: InputFormat) -> TextEvent:
    event = decode_text_event(value, input_format=input_format)
    if isinstance(event.labels, dict) and event.overlap is not None:
        raise KeyError("labels")
    return event


def _quoting(value: bytes, *, input_format: InputFormat) -> TextEvent:
    try:
        return decode_text_event(value, input_format=input_format)
    except Unreadable as error:
        raise Unreadable(error.field, f"{error.reason} in {value[:20]!r}") from None


def _off_by_one(text: str, positions: Sequence[int], unit: OffsetUnit) -> list[int]:
    wrong = unit == "utf16" and not text.isascii()
    return [position + wrong for position in convert(text, positions, unit)]


def _one_for_all(engine: Extractor, events: Sequence[TextEvent], settings: Settings) -> list[Any]:
    prepared = _prepare(engine, events, settings)
    failures = [one for one in prepared if isinstance(one, Failure)]
    return failures[:1] * len(prepared) if failures else prepared


def _all_unprepared(_: Extractor, events: Sequence[TextEvent], __: Settings) -> list[Any]:
    return [Failure("prepare", "ValueError", "label 1 has no character that the model can read") for _ in events]


def _backwards(engine: Extractor, tasks: Sequence[Task]) -> list[Answer]:
    answers = answer_tasks(engine, tasks)
    outcomes: list[Result | Failure | None] = [answer.outcome for answer in answers]
    return [Answer(answer.task, outcome) for answer, outcome in zip(answers, reversed(outcomes), strict=True)]


MUTANTS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "a threshold map stops the worker": lambda: patch.object(worker.tasks, "decode_text_event", _no_threshold_maps),
    "a dead letter quotes its record": lambda: patch.object(worker.tasks, "decode_text_event", _quoting),
    "UTF-16 offsets are off by one": lambda: patch.object(worker.answers, "convert", _off_by_one),
    "a fault of one record is laid on all": lambda: patch.object(worker.tasks, "_prepare", _one_for_all),
    "a label that can be read is refused": lambda: patch.object(worker.tasks, "_prepare", _all_unprepared),
    "answers change places": lambda: patch("tests.fuzz.records.answer_tasks", _backwards),
}
"""Each is found by a seed."""

HIDDEN: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "descriptions beside an overlap stop the worker": lambda: patch.object(
        worker.tasks, "decode_text_event", _no_descriptions_with_overlap
    ),
}
"""No seed finds these."""

"""What is fuzzed: a record's bytes to the message that answers it, and all that has to be true of that message."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast, get_args

import numpy as np

from packing import Engine, Result
from schemas.codec import decode_entity_event, read_dead_letter
from schemas.events import Entity, EntityEvent, ModelInfo, OffsetUnit, Overlap, Source
from schemas.unreadable import kind
from tests.offset_units import UNITS, addressing
from tests.packing import tiny_models
from tests.packing.promises import clash
from worker.answers import Writer
from worker.config import Settings, load
from worker.forward import Answer, answer_tasks
from worker.records import LOST_HEADERS, OutgoingMessage, Partition, Record
from worker.tasks import Failure, read_tasks
from worker.topics import Topic, Topics

SEPARATOR: Final = b"\xff"
TOMBSTONE: Final = b"\xfe"
HEADERS_LOST: Final = b"\xfd"
"""Between records, and in a record's place; none of them occurs in UTF-8."""

MOST_RECORDS: Final = 4
MOST_BYTES: Final = 1000
MOST_LABELS: Final = 12
MOST_LEVELS: Final = 40
MOST_WINDOWS: Final = 8
SMALL_TOPIC: Final = 800

PARTITION: Final = Partition("texts", 3)
HEADERS: Final = (("traceparent", b"00-1"), ("empty", None))
FORMATS: Final = ("json", "text")
OVERLAPS: Final[tuple[Overlap, ...]] = get_args(Overlap)
MODELS: Final[Mapping[str, Mapping[str, Any]]] = {
    "bert": {"family": "bert"},
    "deberta": {"family": "deberta-v2", "token_level": True, "scale": 3.0, "seed": 2},
}
"""Each reads 40 words and 100 sub-tokens at once, so that a few sentences make windows and a few labels chunks."""


@dataclass(frozen=True, slots=True)
class Case:
    """Records that are answered together, and how."""

    records: tuple[Record, ...]
    settings: Settings
    engine: Engine
    topics: Topics


class Fault(AssertionError):  # noqa: N818, found in the product
    """An answer isn't what was promised."""


class Target:
    """The way from records to messages, with every setting that a first byte may choose."""

    def __init__(self, folder: Path) -> None:
        """Build the models in `folder`."""
        shape: dict[str, Any] = {"max_len": 40, "max_width": 6, "model_max_length": 100}
        self._engines = [
            Engine.load(tiny_models.build(folder / name, **model, **shape), device="cpu", dtype="float32")
            for name, model in MODELS.items()
        ]
        self._settings = [
            load(
                flags={
                    "input_format": input_format,
                    "overlap": overlap,
                    "labels": "person,city,date",
                    "threshold": 0.8,
                    "max_record_bytes": MOST_BYTES,
                    "max_labels": MOST_LABELS,
                    "max_meta_depth": MOST_LEVELS,
                    "max_windows": MOST_WINDOWS,
                }
            )
            for input_format in FORMATS
            for overlap in OVERLAPS
        ]
        self._topics = [
            Topics(*(Topic(name, 6, limit) for name in ("texts", "entities", "texts-dlq")))
            for limit in (1_000_000, SMALL_TOPIC)
        ]

    def choice(
        self, *, input_format: str = "json", overlap: Overlap = "flat", model: str = "bert", small: bool = False
    ) -> bytes:
        """Return the first byte that chooses these settings."""
        number = int(small) * len(self._engines) + list(MODELS).index(model)
        number = number * len(self._settings) + FORMATS.index(input_format) * len(OVERLAPS)
        return bytes([number + OVERLAPS.index(overlap)])

    def case(self, data: bytes) -> Case:
        """Return what fuzzed bytes stand for; any bytes stand for something."""
        number, settings = divmod(data[0] if data else 0, len(self._settings))
        topics, engine = divmod(number, len(self._engines))
        values = data[1:].split(SEPARATOR)[:MOST_RECORDS]
        return Case(
            tuple(_record(value, offset) for offset, value in enumerate(values)),
            self._settings[settings],
            self._engines[engine],
            self._topics[topics % len(self._topics)],
        )

    def check(self, data: bytes) -> list[str]:
        """Answer what fuzzed bytes stand for, and return the kind of each answer.

        Raises:
            Exception: an answer isn't what was promised (`Fault`), or there is none.
        """
        case = self.case(data)
        tasks = read_tasks(case.records, case.engine, case.settings)
        _require([task.record for task in tasks] == list(case.records), "a task for each record, in order")
        for task in tasks if len(tasks) > 1 else ():
            (alone,) = read_tasks([task.record], case.engine, case.settings)
            _require(task.failure == alone.failure, "what becomes of a record is its own affair")
        answers = answer_tasks(case.engine, tasks)
        _require([answer.task for answer in answers] == tasks, "an answer for each task, in order")
        return [_check_answer(answer, case) for answer in answers]


def _record(value: bytes, offset: int) -> Record:
    return Record(
        partition=PARTITION,
        offset=offset,
        epoch=1,
        timestamp=1_700_000_000_000 if offset % 2 else None,
        key=b"k",
        value=None if value == TOMBSTONE else value,
        headers=HEADERS,
        arrived=0.0,
        headers_lost=value == HEADERS_LOST,
    )


def _check_answer(answer: Answer, case: Case) -> str:
    kinds = set()
    for unit in UNITS:
        settings = _with_unit(case.settings, unit)
        writer = Writer(settings, case.topics, ModelInfo(name="tiny", revision=None))
        written = writer.write(answer)
        outcome, message = written.answer.outcome, written.message
        _require(written.answer.task is answer.task, "the answer is that of its task")
        _require(message.key == b"k" or message.value is None, "the key stays")
        match outcome:
            case None:
                _check_tombstone(answer, message, case)
                kinds.add("tombstone")
            case Failure():
                _check_dead_letter(answer.task.record, outcome, message, case)
                kinds.add(outcome.stage)
            case Result():
                _check_event(answer.task.record, message, case, settings)
                kinds.add("event")
    _require(len(kinds) == 1 or kinds == {"event", "result_too_large"}, "the offset unit is all that differs")
    return max(kinds)


_SETTINGS: dict[tuple[int, OffsetUnit], Settings] = {}


def _with_unit(settings: Settings, unit: OffsetUnit) -> Settings:
    key = id(settings), unit
    if key not in _SETTINGS:
        _SETTINGS[key] = settings.model_copy(update={"offset_unit": unit})
    return _SETTINGS[key]


def _check_tombstone(answer: Answer, message: OutgoingMessage, case: Case) -> None:
    record = answer.task.record
    _require(record.value is None, "only a record without a value is a tombstone")
    expected = OutgoingMessage(
        case.topics.output.name, PARTITION.number, record.timestamp, record.key, None, record.headers
    )
    _require(message == expected, "a tombstone goes on as it came")


_ONE_OF_EACH: Final[tuple[object, ...]] = (None, True, 1, 1.0, "", [], {})
_KIND: Final = f"(?:{'|'.join(map(kind, _ONE_OF_EACH))})"
_PROBABILITY: Final = rf"got (?:{_KIND}|one outside)"
_BAD_JSON: Final = (
    *("Expecting value", "Expecting property name enclosed in double quotes", "Expecting ':' delimiter"),
    *("Expecting ',' delimiter", "Unterminated string starting at", "Invalid control character at"),
    *("Invalid \\escape", "Invalid \\uXXXX escape", "Extra data"),
    *("Illegal trailing comma before end of object", "Illegal trailing comma before end of array"),
)
_MESSAGES: Final[Mapping[str, Sequence[str]]] = {
    "decode": (
        r"value: not UTF-8: (?:invalid start byte|invalid continuation byte|unexpected end of data) at byte \d+",
        r"value: empty, expected JSON",
        r"value: nested \d+ levels deep, at most 64 are read",
        rf"value: not JSON: (?:{'|'.join(map(re.escape, _BAD_JSON))}):? line \d+ column \d+ \(char \d+\)",
        r"value: not JSON: (?:NaN|-?Infinity) is no JSON number",
        r"value: a number is too large for a double",
        rf"value: expected a JSON object, got {_KIND}",
        rf"text: (?:missing|expected a string, got {_KIND})",
        rf"id: expected a string or an integer, got {_KIND}",
        rf"labels: expected a list of labels or a map of label to description, got {_KIND}",
        rf"labels: entry \d+: expected a (?:label|description)(?:, got a blank string| \(a string\), got {_KIND})",
        r"labels: entries \d+ and \d+ have the same description, so they can't be told apart",
        rf"threshold: expected a number from 0 to 1 or a map of label to such a number, {_PROBABILITY}",
        rf"threshold: entry \d+: expected a number from 0 to 1, {_PROBABILITY}",
        rf"overlap: expected 'flat', 'nested' or 'multi', got (?:another string|{_KIND})",
        r"overlap: expected one of its fixed values, got a string with a lone surrogate",
        r"headers: a header's name is not UTF-8; the Kafka client can't give them, so they are not kept here",
    ),
    "too_large": (
        rf"value: \d+ bytes, more than max_record_bytes allows \({MOST_BYTES}\)",
        rf"labels: \d+ labels, more than max_labels allows \({MOST_LABELS}\)",
        rf"meta: \d+ levels, more than max_meta_depth allows \({MOST_LEVELS}\)",
        rf"text: \d+ windows, more than max_windows allows \({MOST_WINDOWS}\)",
    ),
    "prepare": (
        r"label \d+ has no character that the model can read",
        r"label \d+ is \d+ sub-tokens long, the model has room for \d+",
    ),
    "result_too_large": (rf"an entity event of \d+ bytes, more than entities takes \({SMALL_TOPIC}\)",),
}
"""All that a dead letter may say, by its stage: a message with anything else in it may quote the record."""

_SAYABLE: Final = {stage: re.compile("|".join(messages)) for stage, messages in _MESSAGES.items()}


def _check_dead_letter(record: Record, failure: Failure, message: OutgoingMessage, case: Case) -> None:
    _require(failure.stage in _SAYABLE, f"no record of any bytes fails at {failure.stage} ({failure.message})")
    sayable = _SAYABLE[failure.stage].fullmatch(failure.message)
    _require(sayable, f"a dead letter's message is one of ours, not {failure.message!r}")
    names = {"Unreadable", "TooLarge", "ValueError", "ResultTooLarge", LOST_HEADERS}
    _require(failure.exception in names, f"a dead letter's exception is one of ours, not {failure.exception}")
    if failure.stage == "prepare":
        _check_label_is_unreadable(record, failure, case.settings)
    topic = case.topics.dead_letters
    _require((message.topic, message.partition) == (topic.name, PARTITION.number), "a dead letter goes to its place")
    if message.value == record.value and message.key == record.key:
        own = len(record.headers)
        _require(message.headers[:own] == record.headers, "a dead letter keeps its record's headers")
        _require(message.timestamp == record.timestamp, "a dead letter keeps its record's time")
    else:
        _require((message.key, message.value) == (None, None), "a record is kept whole or not at all")
        _require(topic.max_message_bytes == SMALL_TOPIC, "a record that has room is kept")
    _require(message.size <= topic.max_message_bytes, "a dead letter fits its topic")
    letter = read_dead_letter(message.headers)
    said = Failure(letter.stage, letter.exception, letter.message, letter.attempts)
    _require(said == failure, "a dead letter's headers say why")
    _require(letter.source == _source(record), "a dead letter's headers say where")


def _check_label_is_unreadable(record: Record, failure: Failure, settings: Settings) -> None:
    assert record.value is not None
    number, *tokens = map(int, re.findall(r"\d+", failure.message))
    labels = _labels(_asked(record.value, settings), settings)
    read = list(labels.values() if isinstance(labels, dict) else dict.fromkeys(labels))[number - 1]
    characters = unicodedata.normalize("NFKD", read)
    if tokens:
        _require(tokens[1] < tokens[0] <= 2 * len(characters) + 1, "a label that has room is read")
    else:
        _require(not any(map(str.isalnum, characters)), "a label of letters is read")


def _check_event(record: Record, message: OutgoingMessage, case: Case, settings: Settings) -> None:
    assert record.value is not None
    assert message.value is not None
    topic = case.topics.output
    _require(message.size <= topic.max_message_bytes, "an event fits its topic")
    place = OutgoingMessage(topic.name, PARTITION.number, record.timestamp, record.key, message.value, record.headers)
    _require(message == place, "an event goes to its place, with its record's key, headers and time")
    event = decode_entity_event(message.value)
    asked = _asked(record.value, settings)
    _require(event.id == f"{PARTITION.topic}:{PARTITION.number}:{record.offset}", "an event's id is its record's")
    _require(event.source == _source(record), "an event says what it was made of")
    _require(event.offset_unit == settings.offset_unit, "an event counts in the unit that is set")
    for name, given in (("id", event.text_id), ("meta", event.meta)):
        _require(_same(given, asked.get(name)), f"{name} comes back unchanged")
    _check_entities(event, asked, settings)


def _asked(value: bytes, settings: Settings) -> dict[str, Any]:
    text = value.decode("utf-8-sig")
    return {"text": text} if settings.input_format == "text" else cast("dict[str, Any]", json.loads(text))


def _labels(asked: dict[str, Any], settings: Settings) -> Sequence[str] | dict[str, str]:
    labels: Sequence[str] | dict[str, str] | None = asked.get("labels")
    return settings.labels if labels is None else labels


def _check_entities(event: EntityEvent, asked: dict[str, Any], settings: Settings) -> None:
    labels = _labels(asked, settings)
    threshold = settings.threshold if asked.get("threshold") is None else asked["threshold"]
    addressed = addressing(asked["text"], settings.offset_unit)
    for entity in event.entities:
        _require(addressed(entity.start, entity.end, entity.text), "an entity's offsets are those of its text")
        _require(entity.text.strip(), "an entity has words")
        _require(entity.label in labels, "an entity's label is one of those asked")
        limit = threshold.get(entity.label, settings.threshold) if isinstance(threshold, dict) else threshold
        _require(np.float32(entity.score) > np.float32(limit), "an entity's score exceeds its threshold")
    _require(event.windows > 0 or not event.entities, "what isn't read has no entities")
    _check_overlap(event.entities, asked.get("overlap") or settings.overlap)


def _check_overlap(entities: Sequence[Entity], overlap: Overlap) -> None:
    order = [(entity.start, -entity.end, entity.label) for entity in entities]
    _require(order == sorted(set(order)), "entities stand in the order of the text, each once")
    _require(not clash([(entity.start, entity.end) for entity in entities], overlap), f"entities are {overlap}")


def _source(record: Record) -> Source:
    return Source(topic=PARTITION.topic, partition=PARTITION.number, offset=record.offset, timestamp=record.timestamp)


def _same(value: object, other: object) -> bool:
    return json.dumps(value) == json.dumps(other)


def _require(condition: object, promise: str) -> None:
    if not condition:
        raise Fault(promise)


def tokens() -> Iterator[bytes]:
    """Return what a record is made of, for the fuzzer to put in."""
    yield from (f'"{name}":'.encode() for name in ("text", "id", "labels", "threshold", "overlap", "meta"))
    yield from (f'"{overlap}"'.encode() for overlap in OVERLAPS)
    yield from (b"null", b"true", b"{}", b"[]", b"1e400", b"-1", b"0.5", b"NaN", b'"",', b'{"text":"a",')
    yield from (rb"\ud800", rb"\udc00", rb"\ud83d\ude00", rb"\u0000", rb"\u200b")
    yield from ("\ufeff".encode(), "😀".encode(), "é".encode(), "\u200b".encode(), b"\xed\xa0\x80")
    yield from (SEPARATOR, SEPARATOR + TOMBSTONE, SEPARATOR + HEADERS_LOST, b'"labels":{"a":"b"},', b'["person"]')

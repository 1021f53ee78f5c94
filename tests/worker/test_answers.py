import json
from dataclasses import replace

import pytest

from packing import Entity, Result
from schemas.codec import decode_entity_event, read_dead_letter
from schemas.events import ModelInfo
from tests.worker.fake_engine import FakeEngine
from tests.worker.records import record
from worker.answers import Writer, place, refuse
from worker.config import Settings, load
from worker.forward import Answer
from worker.records import OutgoingMessage, Partition
from worker.tasks import Failure, Task, read_tasks
from worker.topics import Topic, Topics

MODEL = ModelInfo(name="demo", revision="abc")


def topics(*, inputs: int = 6, outputs: int = 6, output_bytes: int = 100_000, dead_bytes: int = 100_000) -> Topics:
    return Topics(
        Topic("texts", inputs, 100_000),
        Topic("entities", outputs, output_bytes),
        Topic("texts-dlq", 6, dead_bytes),
    )


def task(value: object, **about: object) -> Task:
    return read_tasks([record(value, **about)], FakeEngine(), Settings())[0]  # type: ignore[arg-type]


def message(answer: Answer, where: Topics | None = None, settings: Settings | None = None) -> OutgoingMessage:
    return Writer(settings or Settings(), where or topics(), MODEL).write(answer).message


FOUND = Result((Entity(2, 5, "Ann", "person", 0.75),), 1, 1)
ASKED = {"text": "🎺 Ann", "id": 7, "meta": {"n": 1}}


def test_an_entity_event_says_where_it_comes_from_and_what_was_found() -> None:
    out = message(Answer(task(ASKED, partition=Partition("texts", 4), offset=12), FOUND))
    assert (out.topic, out.partition, out.key, out.timestamp) == ("entities", 4, b"k", 1_700_000_000_000)
    assert out.headers == (("traceparent", b"00-1"),)
    assert json.loads(out.value or b"") == {
        "schema": 1,
        "id": "texts:4:12",
        "text_id": 7,
        "source": {"topic": "texts", "partition": 4, "offset": 12, "timestamp": 1_700_000_000_000},
        "entities": [{"start": 2, "end": 5, "text": "Ann", "label": "person", "score": 0.75}],
        "offset_unit": "code_points",
        "model": {"name": "demo", "revision": "abc"},
        "windows": 1,
        "label_chunks": 1,
        "meta": {"n": 1},
    }


@pytest.mark.parametrize(("unit", "start", "end"), [("code_points", 2, 5), ("utf16", 3, 6), ("bytes", 5, 8)])
def test_offsets_count_what_is_configured(unit: str, start: int, end: int) -> None:
    out = message(Answer(task(ASKED), FOUND), settings=load(flags={"offset_unit": unit}))
    event = decode_entity_event(out.value or b"")
    assert (event.entities[0].start, event.entities[0].end, event.offset_unit) == (start, end, unit)


def test_a_tombstone_becomes_a_tombstone_of_the_same_key() -> None:
    out = message(Answer(task(None), None))
    assert (out.topic, out.key, out.value) == ("entities", b"k", None)


def test_a_dead_letter_is_the_record_as_it_was_with_its_reason_in_headers() -> None:
    unreadable = task(b"\xff{", offset=3)
    out = message(Answer(unreadable, unreadable.failure))
    assert (out.topic, out.key, out.value, out.headers[0]) == ("texts-dlq", b"k", b"\xff{", ("traceparent", b"00-1"))
    letter = read_dead_letter(out.headers)
    assert (letter.stage, letter.source.offset, letter.attempts) == ("decode", 3, 1)


def test_an_event_too_large_for_its_topic_is_a_dead_letter_that_names_both_sizes() -> None:
    out = message(Answer(task(ASKED), FOUND), topics(output_bytes=200))
    assert out.topic == "texts-dlq"
    letter = read_dead_letter(out.headers)
    assert letter.stage == "result_too_large"
    assert "more than entities takes (200)" in letter.message
    assert json.loads(out.value or b"") == ASKED


def test_an_answer_that_makes_no_event_is_a_dead_letter_not_the_workers_end() -> None:
    impossible = Result((Entity(2, 5, "Ann", "person", 1.5),), 1, 1)
    written = Writer(Settings(), topics(), MODEL).write(Answer(task(ASKED), impossible))
    assert written.answer.kind == "dead_letters"
    assert read_dead_letter(written.message.headers).stage == "encode"


def test_an_event_too_large_for_its_topic_counts_as_a_dead_letter() -> None:
    written = Writer(Settings(), topics(output_bytes=200), MODEL).write(Answer(task(ASKED), FOUND))
    assert written.answer.kind == "dead_letters"


def test_a_dead_letter_too_large_for_its_topic_keeps_the_place_and_the_reason() -> None:
    long = task(b"{" * 500)
    out = message(Answer(long, long.failure), topics(dead_bytes=600))
    assert out.value is None
    assert out.size <= 600
    assert read_dead_letter(out.headers).source.topic == "texts"


def test_what_the_broker_refuses_is_dead_lettered_and_then_stripped() -> None:
    first = refuse(Answer(task(ASKED), FOUND), "invalid timestamp")
    assert first.outcome == Failure("result_refused", "ResultRefused", "invalid timestamp")
    assert message(first).value == record(ASKED).value
    assert message(first).timestamp is None
    assert read_dead_letter(message(first).headers).source.timestamp == 1_700_000_000_000
    assert message(refuse(first, "again")).value is None


@pytest.mark.parametrize(
    ("number", "key", "sources", "targets", "expected"),
    [
        (4, b"k", 6, 6, 4),  # as many on both sides: the same number
        (4, None, 6, 6, 4),
        (4, b"k", 6, 3, None),  # else by key
        (4, None, 6, 3, 1),  # and without one by the partition, so that order is kept
        (7, b"k", 6, 6, None),  # a partition added since the worker started
        (7, None, 6, 6, 1),
    ],
)
def test_where_an_answer_goes(number: int, key: bytes | None, sources: int, targets: int, expected: int | None) -> None:
    assert place(record(None, partition=Partition("texts", number), key=key), sources, targets) == expected


def test_the_size_of_a_message_bounds_what_the_broker_counts() -> None:
    out = message(Answer(task(ASKED), FOUND))
    assert out.size > len(out.value or b"") + len(out.key or b"")
    assert replace(out, headers=()).size < out.size

from dataclasses import replace

import pytest

from tests.worker.fake_engine import FakeEngine, FakePrepared
from tests.worker.records import record
from worker.config import Settings, load
from worker.tasks import Failure, Task, read_tasks

SETTINGS = load(flags={"labels": "person,city", "threshold": 0.3, "overlap": "nested"})


def task(value: object, settings: Settings = SETTINGS) -> Task:
    return read_tasks([record(value)], FakeEngine(), settings)[0]


def prepared(task: Task) -> FakePrepared:
    assert isinstance(task.prepared, FakePrepared)
    return task.prepared


def test_what_a_record_leaves_out_comes_from_the_settings() -> None:
    document = prepared(task({"text": "Ann"})).document
    assert list(document.labels) == ["person", "city"]
    assert document.threshold == 0.3
    assert document.overlap == "nested"


def test_what_a_record_asks_for_is_taken() -> None:
    asked = {"text": "Ann", "labels": {"dish": "food"}, "threshold": {"dish": 0.9}, "overlap": "multi"}
    document = prepared(task(asked)).document
    assert document.labels == {"dish": "food"}
    assert document.threshold == {"dish": 0.9}
    assert document.default_threshold == 0.3
    assert document.overlap == "multi"


def test_an_empty_label_list_is_not_the_default() -> None:
    assert list(prepared(task({"text": "Ann", "labels": []})).document.labels) == []


def test_a_tombstone_has_nothing_to_read() -> None:
    assert task(None) == Task(record(None))


def test_plain_text_is_taken_as_it_is() -> None:
    assert prepared(task(b'{"text": 1}', load(flags={"input_format": "text"}))).document.text == '{"text": 1}'


@pytest.mark.parametrize(
    ("value", "stage", "words"),
    [
        (b"not json", "decode", "JSON"),
        (b"\xff\xfe", "decode", "UTF-8"),
        ({"id": 1}, "decode", "text: missing"),
        ({"text": 5}, "decode", "text: expected a string"),
        ({"text": "a", "labels": ["x"] * 0 + [" "]}, "decode", "labels"),
        ({"text": "a" * 100}, "too_large", "value: 112 bytes, more than max_record_bytes allows (100)"),
        ({"text": "a", "labels": ["x", "y", "z"]}, "too_large", "labels: 3 labels, more than max_labels allows (2)"),
        ({"text": "a", "meta": {"a": [1, [2]]}}, "too_large", "meta: 3 levels, more than max_meta_depth allows (2)"),
        ({"text": "a b " * 10}, "too_large", "text: 5 windows, more than max_windows allows (4)"),
        ({"text": "UNPREPARED"}, "prepare", "a label that the model can't read"),
    ],
)
def test_what_cannot_be_read_is_a_failure_with_its_field_and_reason(value: object, stage: str, words: str) -> None:
    failure = task(
        value, load(flags={"max_record_bytes": 100, "max_labels": 2, "max_meta_depth": 2, "max_windows": 4})
    ).failure
    assert isinstance(failure, Failure)
    assert failure.stage == stage
    assert words in failure.message


def test_a_record_whose_headers_the_client_cannot_give_is_a_failure_of_its_own() -> None:
    lost = replace(record({"text": "Ann"}), headers_lost=True)
    found, other = read_tasks([lost, record({"text": "Bob"})], FakeEngine(), SETTINGS)
    assert found.failure is not None
    assert (found.failure.stage, found.failure.exception) == ("decode", "HeadersLost")
    assert other.prepared is not None


def test_one_unreadable_record_stops_no_other() -> None:
    records = [record(value) for value in ({"text": "Ann"}, b"{", {"text": "UNPREPARED"}, {"text": "Bob"})]
    tasks = read_tasks(records, FakeEngine(), SETTINGS)
    assert [task.prepared is not None for task in tasks] == [True, False, False, True]


def test_every_task_counts_for_the_budget() -> None:
    assert task({"text": "one two three"}).tokens == 3
    assert task({"text": ""}).tokens == task(None).tokens == task(b"{").tokens == 1

"""Awkward texts and requests as records, through the whole path but Kafka, with the bundled model."""

import io
import json
import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

from packing import DEMO_MODEL, Engine, Result
from schemas import EntityEvent, OffsetUnit, decode_entity_event, read_dead_letter
from schemas.events import ModelInfo
from tests.offset_units import UNITS, addressing
from tests.packing.awkward import CASES, SENTENCE, Case
from tests.packing.promises import assert_promises
from tests.packing.ties import differences, of_result
from tests.worker.records import record
from worker.answers import Writer
from worker.config import load
from worker.forward import answer_tasks
from worker.pipe import pipe
from worker.records import OutgoingMessage
from worker.tasks import read_tasks
from worker.topics import Topic, Topics

MODEL = ModelInfo(name="demo", revision=None)
TOPICS = Topics(Topic("texts", 1, 10**7), Topic("entities", 1, 10**7), Topic("texts-dlq", 1, 10**7))


def value(name: str, case: Case) -> bytes:
    labels = case.labels if isinstance(case.labels, dict) else list(case.labels)
    fields = {"text": case.text, "id": name, "labels": labels, "threshold": case.threshold, "overlap": case.overlap}
    return json.dumps(fields | {"meta": {"echo": case.text}}).encode()


GOOD = {name: value(name, case) for name, case in CASES.items()}


def asked(**fields: object) -> bytes:
    return json.dumps({"text": SENTENCE, **fields}).encode()


BAD = {
    "no bytes": (b"", "decode", "value: empty"),
    "no JSON": (b"Maria Santos", "decode", "value: not JSON"),
    "cut JSON": (asked()[:-3], "decode", "value: not JSON"),
    "two objects": (asked() * 2, "decode", "value: not JSON"),
    "a list": (b"[]", "decode", "value: expected a JSON object, got a list"),
    "a string": (b'"Maria Santos"', "decode", "value: expected a JSON object, got a string"),
    "UTF-16": (asked().decode().encode("utf-16"), "decode", "value: not UTF-8"),
    "Latin-1": (asked(text="é").replace(b"\\u00e9", b"\xe9"), "decode", "value: not UTF-8"),
    "overlong UTF-8": (asked(text="é").replace(b"\\u00e9", b"\xc0\xaf"), "decode", "value: not UTF-8"),
    "a surrogate in UTF-8": (asked(text="é").replace(b"\\u00e9", b"\xed\xa0\x80"), "decode", "value: not UTF-8"),
    "half an escape": (asked(text="é").replace(b"\\u00e9", b"\\ud8"), "decode", "value: not JSON"),
    "a raw NUL": (asked(text="é").replace(b"\\u00e9", b"\x00"), "decode", "value: not JSON"),
    "NaN": (b'{"text": "Maria", "threshold": NaN}', "decode", "value: not JSON: NaN"),
    "too deep": (asked(meta=json.loads("[" * 70 + "]" * 70)), "decode", "value: nested"),
    "no text": (b"{}", "decode", "text: missing"),
    "text null": (asked(text=None), "decode", "text: expected a string"),
    "text a list": (asked(text=["Maria"]), "decode", "text: expected a string"),
    "labels a string": (asked(labels="person"), "decode", "labels: expected a list of labels or a map"),
    "a blank label": (asked(labels=["person", "\u3000\n"]), "decode", "labels: entry 2: expected a label, got a blank"),
    "a label that is a number": (asked(labels=[1]), "decode", "labels: entry 1: expected a label"),
    "a blank description": (asked(labels={"a": " "}), "decode", "labels: entry 1: expected a description"),
    "equal descriptions": (asked(labels={"a": "x", "b": "x"}), "decode", "labels: entries 1 and 2"),
    "too many labels": (asked(labels=[str(n) for n in range(1001)]), "too_large", "labels: 1001 labels"),
    "a label of deleted characters": (asked(labels=["person", "\u200b\x00"]), "prepare", "label 2 has no character"),
    "a label that is a lone surrogate": (asked(labels=["\ud800"]), "prepare", "label 1 has no character"),
    "a label longer than the model reads": (asked(labels=["very " * 500]), "prepare", "label 1 is 500 sub-tokens"),
    "a negative threshold": (asked(threshold=-1e-10), "decode", "threshold: expected a number from 0 to 1"),
    "a threshold above 1": (asked(threshold={"a": 1.0001}), "decode", "threshold: entry 1: expected a number"),
    "a threshold in quotes": (asked(threshold="0.5"), "decode", "threshold: expected a number from 0 to 1"),
    "a threshold true": (asked(threshold=True), "decode", "threshold: expected a number from 0 to 1"),
    "an unknown overlap": (asked(overlap="Flat"), "decode", "overlap: expected 'flat', 'nested' or 'multi'"),
    "an id with a fraction": (asked(id=17.0), "decode", "id: expected a string or an integer"),
}

ALL = [*GOOD.values(), *(wrong for wrong, _, _ in BAD.values())]
# Bad between good ones: so they share batches.
ORDER = sorted(range(len(ALL)), key=lambda at: at * 7919 % 1009)

Written = Callable[[OffsetUnit], list[OutgoingMessage]]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine.load(DEMO_MODEL, device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def written(engine: Engine) -> Written:
    """Return each record's message, in the order of `ALL`, by the unit of the offsets."""
    records = [record(ALL[at], offset=at) for at in ORDER]
    answers = answer_tasks(engine, read_tasks(records, engine, load(flags={})))

    @cache
    def in_unit(unit: OffsetUnit) -> list[OutgoingMessage]:
        writer = Writer(load(flags={"offset_unit": unit}), TOPICS, MODEL)
        messages = [writer.write(answer).message for answer in answers]
        assert len(messages) == len(ORDER)
        return [message for _, message in sorted(zip(ORDER, messages, strict=True), key=lambda pair: pair[0])]

    return in_unit


@pytest.fixture(scope="module")
def found(engine: Engine) -> dict[str, Result]:
    """Return what the engine finds when it is asked directly."""
    return dict(zip(CASES, engine.extract([case.document() for case in CASES.values()]), strict=True))


@pytest.mark.parametrize("name", GOOD)
def test_an_awkward_text_is_an_event_whose_offsets_address_it_in_every_unit(
    written: Written, found: dict[str, Result], name: str
) -> None:
    at, text = list(GOOD).index(name), CASES[name].text
    for unit in UNITS:
        message = written(unit)[at]
        assert (message.topic, message.key) == ("entities", b"k")
        event = decode_entity_event(message.value or b"")
        assert (event.text_id, event.source.offset, event.offset_unit) == (name, at, unit)
        assert event.meta == {"echo": text}
        addressed = addressing(text, unit)
        assert all(addressed(entity.start, entity.end, entity.text) for entity in event.entities)
        if unit == "code_points":
            assert_found(name, event, found[name])


def assert_found(name: str, event: EntityEvent, result: Result) -> None:
    document = CASES[name].document()
    assert_promises(document, result)
    ours = {(entity.start, entity.end, entity.label): entity.score for entity in event.entities}
    assert differences(document, ours, of_result(result.entities)) == []
    assert (event.windows, event.label_chunks) == (result.windows, result.label_chunks)


@pytest.mark.parametrize("name", BAD)
def test_a_record_that_cannot_be_read_is_a_dead_letter_that_names_the_place(written: Written, name: str) -> None:
    value, stage, said = BAD[name]
    message = written("code_points")[len(GOOD) + list(BAD).index(name)]
    assert (message.topic, message.key, message.value) == ("texts-dlq", b"k", value)
    letter = read_dead_letter(message.headers)
    assert (letter.stage, letter.message[: len(said)]) == (stage, said)


def lines(engine: Engine, values: Iterable[bytes], budget: int, folder: Path) -> list[bytes]:
    source, sink = folder / "in", io.BytesIO()
    source.write_bytes(b"".join(value + b"\n" for value in values))
    descriptor = os.open(source, os.O_RDONLY)
    try:
        pipe(descriptor, sink, engine, MODEL, load(flags={"batch_tokens": budget}))
    finally:
        os.close(descriptor)
    return sink.getvalue().splitlines()


@pytest.mark.parametrize("budget", [64, 2000, 1_000_000])
def test_each_line_has_its_answer_in_order_whatever_the_batches(
    engine: Engine, found: dict[str, Result], budget: int, tmp_path: Path
) -> None:
    short = [at for at in ORDER if len(ALL[at]) < 2000]
    answers = lines(engine, (ALL[at] for at in short), budget, tmp_path)
    for number, (at, line) in enumerate(zip(short, answers, strict=True)):
        if at < len(GOOD):
            name = list(GOOD)[at]
            event = decode_entity_event(line)
            assert (event.id, event.text_id) == (f"stdin:0:{number}", name)
            assert_found(name, event, found[name])
        else:
            _, stage, said = list(BAD.values())[at - len(GOOD)]
            error = json.loads(line)["error"]
            assert (error["stage"], error["message"][: len(said)]) == (stage, said)

import io
import json
import os
import threading
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from schemas.events import ModelInfo
from tests.worker.fake_engine import FakeEngine
from worker.config import Settings, load
from worker.pipe import Lines, pipe

MODEL = ModelInfo(name="fake", revision=None)


def answers(source: bytes, settings: Settings | None = None) -> list[dict[str, Any]]:
    reading, writing = os.pipe()
    feeder = threading.Thread(target=_feed, args=(writing, source))
    feeder.start()
    sink = io.BytesIO()
    pipe(reading, sink, FakeEngine(), MODEL, settings or Settings())
    feeder.join()
    os.close(reading)
    *lines, rest = sink.getvalue().split(b"\n")
    assert rest == b""
    return [json.loads(line) for line in lines]


def _feed(descriptor: int, source: bytes) -> None:
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(source)


def test_a_text_and_a_fault_are_an_event_and_an_error_in_order() -> None:
    event, error = answers(b'{"text":"Ann met Bob","id":9}\nnot json\n')
    assert event["text_id"] == 9
    assert [entity["text"] for entity in event["entities"]] == ["Ann", "Bob"]
    assert event["source"] == {"topic": "stdin", "partition": 0, "offset": 0, "timestamp": None}
    assert error["error"]["stage"] == "decode"
    assert error["id"] == "stdin:0:1"


def test_a_line_that_is_read_but_not_answered_keeps_its_id() -> None:
    (error,) = answers(b'{"text":"POISON","id":"x"}\n')
    assert (error["text_id"], error["error"]["stage"]) == ("x", "infer")


def test_a_blank_line_is_an_error_line_and_the_last_needs_no_newline() -> None:
    found = answers(b'\n{"text":"Ann"}\n \n{"text":"Bob"}')
    assert ["error" in line for line in found] == [True, False, True, False]


def test_lines_end_at_line_feeds_only() -> None:
    found = answers('{"text":"Ann\u2028Bob\x0c\x1e"}\r\n{"text":"Cy\u0085"}\n'.encode().replace(b"\x0c\x1e", b""))
    assert [len(line["entities"]) for line in found] == [2, 1]


def test_no_input_is_no_output() -> None:
    assert answers(b"") == []


def test_in_text_format_a_line_is_the_text() -> None:
    (event,) = answers(b'{"text": "Ann"}\n', load(flags={"input_format": "text"}))
    assert [entity["text"] for entity in event["entities"]] == ["Ann"]


def test_thousands_of_lines_come_back_in_order_whatever_the_batches() -> None:
    source = b"".join(b'{"text":"%s","id":%d}\n' % (b"w " * (n % 90), n) for n in range(3000))
    assert [line["text_id"] for line in answers(source, load(flags={"batch_tokens": 64}))] == list(range(3000))


@given(st.binary(max_size=300))
def test_one_line_out_for_each_line_in(source: bytes) -> None:
    expected = source.count(b"\n") + (not source.endswith(b"\n") and source != b"")
    assert len(answers(source)) == expected


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=8), st.integers(1, 50))
def test_lines_survive_any_chunking(lines: list[bytes], size: int) -> None:
    reading, writing = os.pipe()
    source = b"".join(line + b"\n" for line in lines)
    read: list[bytes] = []
    found = Lines(reading)
    for start in range(0, len(source), size):
        os.write(writing, source[start : start + size])
        read += found.read(1.0)
    os.close(writing)
    while not found.ended:
        read += found.read(1.0)
    os.close(reading)
    assert read == lines


def test_an_answer_is_flushed_before_the_input_ends(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    sink_path = tmp_path / "out"
    with sink_path.open("wb") as sink:
        thread = threading.Thread(target=pipe, args=(reading, sink, FakeEngine(), MODEL, Settings()))
        thread.start()
        os.write(writing, b'{"text":"Ann"}\n')
        for _ in range(500):
            if sink_path.read_bytes():
                break
            thread.join(0.01)
        early = sink_path.read_bytes()
        os.close(writing)
        thread.join()
    os.close(reading)
    assert json.loads(early)["entities"][0]["text"] == "Ann"

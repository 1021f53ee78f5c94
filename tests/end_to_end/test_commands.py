"""The commands around the worker, against the real Kafka: produce, tail, doctor, demo."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.conftest import Kafka
from tests.end_to_end.conftest import Stream

MakeStream = Callable[..., Stream]


def glistream(*arguments: str, stream: Stream | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    ours = {} if stream is None else stream.environment()
    command = (sys.executable, "-m", "worker", *arguments)
    environment = os.environ | ours | {"COLUMNS": "200"}
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, env=environment, timeout=300, check=False
    )


def test_a_file_is_produced_and_its_entities_are_seen_in_their_texts(make_stream: MakeStream, tmp_path: Path) -> None:
    stream = make_stream(3)
    file = tmp_path / "texts.jsonl"
    lines = [json.dumps({"id": f"text-{number}", "text": f"Ann saw number {number} in Oslo"}) for number in range(20)]
    file.write_text("\n".join(lines) + "\n\n")
    produced = glistream("produce", str(file), "--key-field", "id", stream=stream)
    assert produced.returncode == 0, produced.stderr
    assert f"20 records produced to {stream.texts}, 0 failed, 1 blank lines passed over" in produced.stderr
    assert {message.key() for message in stream.messages(stream.texts)} == {b"text-%d" % n for n in range(20)}

    worker = stream.start()
    stream.wait_until_done()
    assert worker.stop() == 0, worker.tail()

    shown = glistream("tail", "--from-start", "--until-end", stream=stream)
    assert shown.returncode == 0, shown.stderr
    assert len(shown.stdout.splitlines()) == 20
    assert "[Ann|person] saw number 7 in [Oslo|person]" in shown.stdout
    assert len(glistream("tail", "--from-start", "--max", "3", stream=stream).stdout.splitlines()) == 3


def test_produce_reads_standard_input_and_names_a_file_that_is_not_there(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    assert glistream("produce", "-", stream=stream, stdin='{"text":"Ann"}').returncode == 0
    assert [message.value() for message in stream.messages(stream.texts)] == [b'{"text":"Ann"}']
    missing = glistream("produce", "nowhere.jsonl", stream=stream)
    assert (missing.returncode, missing.stderr) == (2, "glistream: nowhere.jsonl: No such file or directory\n")


@pytest.mark.parametrize("command", [("produce", "-"), ("tail",)])
def test_a_topic_that_is_not_there_is_named_at_once(make_stream: MakeStream, command: tuple[str, ...]) -> None:
    stream = make_stream(1)
    stream.texts, stream.entities = "nowhere-in", "nowhere-out"
    failed = glistream(*command, stream=stream, stdin='{"text":"Ann"}\n')
    assert failed.returncode == 2
    named = "nowhere-out" if command == ("tail",) else "nowhere-in"
    assert failed.stderr.startswith(f"glistream: topic {named} not there at {stream.bootstrap}; ")


@pytest.mark.parametrize("command", [("produce", "-"), ("tail",)])
def test_without_a_broker_a_command_ends_at_once(command: tuple[str, ...]) -> None:
    failed = glistream(*command, "--bootstrap-servers", "127.0.0.1:1")
    assert failed.returncode == 3
    assert "no broker answers at 127.0.0.1:1" in failed.stderr


def test_doctor_finds_all_in_order_and_names_a_missing_topic(make_stream: MakeStream) -> None:
    stream = make_stream(3)
    well = glistream("doctor", stream=stream)
    assert well.returncode == 0, well.stdout
    assert f"ok     input: {stream.texts}, 3 partitions, messages up to 1048588 bytes" in well.stdout
    assert "ok     properties: taken by consumer and producer, delivery exactly_once" in well.stdout
    refused = glistream("doctor", "--consumer-properties", "fetch.min.bytes=-5", stream=stream)
    assert "wrong  properties: Kafka client properties:" in refused.stdout
    stream.entities = "nowhere"
    ill = glistream("doctor", stream=stream)
    assert ill.returncode == 1
    assert "wrong  topics: topic nowhere not there" in ill.stdout


@pytest.mark.parametrize("real", [False, True])
def test_the_demo_gives_every_text_one_event_and_says_so(
    real: bool, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLISTREAM_INPUT_FORMAT", "text")  # what is in the environment of whoever runs it is no matter
    arguments = ["demo", "--corpus", "/nonexistent"]
    if real:
        kafka: Kafka = request.getfixturevalue("kafka")
        arguments += ["--kafka", kafka.bootstrap]
    shown = glistream(*arguments)
    assert shown.returncode == 0, shown.stdout[-2000:] + shown.stderr
    assert "the samples alone are streamed" in shown.stdout
    assert "texts got exactly one event" in shown.stdout
    assert "|person]" in shown.stdout
    if real:
        left = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=10).topics
        assert not [name for name in left if name.startswith("glistream-demo")]

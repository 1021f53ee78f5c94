"""What a worker tells whoever operates it: readiness, metrics, the circuit breaker, and an end where it hangs."""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from tests.end_to_end.conftest import Stream
from tests.end_to_end.workers import wait_until
from tests.kafka_server.server import free_port

MakeStream = Callable[..., Stream]
HANGING_WORKER = (sys.executable, "-m", "tests.end_to_end.hanging_worker", "run")


def ready(port: int) -> dict[str, Any]:
    return dict(json.loads(get(port, "ready")))


def get(port: int, page: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=5) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return str(error.read().decode())
    except OSError:
        return "{}"


def metric(port: int, sample: str) -> float | None:
    lines = [line.rpartition(" ") for line in get(port, "metrics").splitlines()]
    return next((float(value) for name, _, value in lines if name == sample), None)


def test_a_worker_is_ready_once_it_has_joined_and_its_metrics_say_what_it_did(make_stream: MakeStream) -> None:
    port = free_port()
    stream = make_stream(2)
    stream.produce([{"text": "Ann"}, {"text": "Bob"}, b"not json", None], partitions=2)
    worker = stream.start({"status_port": port})
    stream.wait_until_done()
    wait_until(lambda: ready(port).get("ready") is True, 30, lambda: get(port, "ready"))
    wait_until(
        lambda: metric(port, f'glistream_partition_lag{{partition="1",topic="{stream.texts}"}}') == 0,
        30,
        lambda: get(port, "metrics"),
    )
    assert metric(port, 'glistream_answers_total{kind="events"}') == 2
    assert metric(port, 'glistream_answers_total{kind="tombstones"}') == 1
    assert metric(port, 'glistream_dead_letters_total{stage="decode"}') == 1
    assert metric(port, f'glistream_partition_stalled_seconds{{partition="0",topic="{stream.texts}"}}') == 0
    assert json.loads(get(port, "health"))["alive"] is True
    assert worker.stop() == 0, worker.tail()


def test_a_partition_without_progress_makes_the_worker_not_ready(make_stream: MakeStream) -> None:
    port = free_port()
    stream = make_stream(2)
    stream.produce([{"text": "Ann"}], partitions=1)
    stream.start({"status_port": port, "stall_ms": 1500, "FORWARD_SECONDS": 60})
    fault = f"{stream.texts}-0 has made no progress"
    wait_until(
        lambda: any(line.startswith(fault) for line in ready(port).get("faults", [])), 60, lambda: get(port, "ready")
    )
    # The other partition has nothing to read, which is no fault.
    assert len(ready(port)["faults"]) == 1
    stalled = metric(port, f'glistream_partition_stalled_seconds{{partition="0",topic="{stream.texts}"}}')
    assert stalled is not None
    assert stalled > 1


def test_the_breaker_pauses_instead_of_emptying_the_topic_into_the_dead_letters(make_stream: MakeStream) -> None:
    port, count = free_port(), 2_000
    stream = make_stream(1)
    stream.produce([b"not json"] * count, partitions=1)
    worker = stream.start({"status_port": port, "breaker_share": 0.5, "breaker_pause_ms": 600_000, "batch_tokens": 16})
    worker.wait_for("breaker_open")
    wait_until(lambda: "pauses" in str(ready(port).get("faults")), 30, lambda: get(port, "ready"))
    assert 20 <= len(stream.letters()) < count / 4
    assert stream.lag() > count / 2
    assert worker.stop() == 0, worker.tail()


def test_after_its_pause_the_breaker_lets_the_stream_go_on(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    stream.produce([b"not json"] * 40 + [b'{"text":"Ann"}'] * 60, partitions=1)
    worker = stream.start({"breaker_share": 0.5, "breaker_pause_ms": 500, "batch_tokens": 16})
    stream.wait_until_done()
    assert worker.stop() == 0, worker.tail()
    assert len(list(worker.lines("breaker_open"))) >= 1
    assert (len(stream.letters()), len(stream.events())) == (40, 60)


@pytest.mark.parametrize("call", ["commit_transaction", "close"])
def test_a_call_that_never_comes_back_ends_in_an_exit_code(make_stream: MakeStream, call: str) -> None:
    stream = make_stream(1)
    stream.produce([{"text": "Ann"}], partitions=1)
    worker = stream.start(
        {
            "HANG": call,
            "drain_ms": 500,
            "transaction_timeout_ms": 1500,
            "consumer_properties": '{"max.poll.interval.ms": 2000, "session.timeout.ms": 2000}',
        },
        HANGING_WORKER,
    )
    if call == "close":
        stream.wait_until_done()
        assert worker.stop() == 1
    else:
        wait_until(lambda: not worker.running, 60, worker.tail)
        assert worker.returncode == 1
        assert "no sign of life while Publish" in worker.tail()
    assert len(list(worker.lines("worker_hangs"))) == 1

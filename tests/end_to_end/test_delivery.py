import time
from collections import defaultdict
from collections.abc import Callable

import pytest

from tests.end_to_end.conftest import Stream
from tests.end_to_end.workers import wait_until
from worker import checkpoint

MakeStream = Callable[..., Stream]
QUICK_SESSION = '{"session.timeout.ms": 2000, "heartbeat.interval.ms": 500}'


def numbered(count: int) -> list[dict[str, object]]:
    return [{"id": number, "text": f"Ann saw number {number} in Oslo"} for number in range(count)]


def assert_every_text_once_in_order(stream: Stream, count: int) -> None:
    events = stream.events()
    ids = [event.text_id for event in events]
    assert len(ids) == count
    assert sorted(str(text_id) for text_id in ids) == sorted(str(number) for number in range(count))
    offsets = defaultdict(list)
    for event in events:
        offsets[event.source.partition].append(event.source.offset)
    for partition, seen in offsets.items():
        assert seen == sorted(seen), f"partition {partition} is out of order"


def assert_left_in_good_order(stream: Stream) -> None:
    assert stream.lag() == 0
    assert stream.open_transactions() == []
    for point in stream.committed().values():
        written = checkpoint.decode(point.metadata)
        assert written is not None
        assert written.clean


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_late_joiner_and_an_early_leaver_cost_nothing(make_stream: MakeStream, protocol: str) -> None:
    count, partitions = 10_000, 6
    stream = make_stream(partitions)
    stream.produce(numbered(count), partitions=partitions)
    pace: dict[str, object] = {"group_protocol": protocol, "batch_tokens": 128, "FORWARD_SECONDS": 0.02}
    first = stream.start(pace)
    first.wait_for("published", times=20)
    second = stream.start(pace)
    second.wait_for("published", times=20)
    assert first.stop() == 0, first.tail()
    stream.wait_until_done()
    assert second.stop() == 0, second.tail()
    assert_every_text_once_in_order(stream, count)
    assert_left_in_good_order(stream)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_killed_worker_loses_nothing_and_doubles_nothing(make_stream: MakeStream, protocol: str) -> None:
    count, partitions = 3_000, 3
    stream = make_stream(partitions)
    stream.produce(numbered(count), partitions=partitions)
    pace: dict[str, object] = {
        "group_protocol": protocol,
        "batch_tokens": 128,
        "FORWARD_SECONDS": 0.02,
        "transaction_timeout_ms": 5000,
    }
    if protocol == "classic":
        pace |= {"consumer_properties": QUICK_SESSION, "instance_id": "pod-0"}
    for _ in range(3):
        killed = stream.start(pace)
        killed.wait_for("published", times=15)
        killed.kill()
    assert stream.lag() != 0
    last = stream.start(pace)
    stream.wait_until_done()
    assert last.stop() == 0, last.tail()
    assert_every_text_once_in_order(stream, count)
    assert_left_in_good_order(stream)


def test_a_second_worker_of_one_instance_says_so_and_leaves(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    pace: dict[str, object] = {"group_protocol": "consumer", "instance_id": "pod-0"}
    first = stream.start(pace)
    first.wait_for("partitions_assigned")
    second = stream.start(pace)
    wait_until(lambda: not second.running, 30, second.tail)
    assert second.returncode == 1
    assert "a worker of the same instance_id is alive" in second.tail()
    assert first.running


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_forward_longer_than_the_poll_interval_costs_no_membership(make_stream: MakeStream, protocol: str) -> None:
    poll_interval_s = 2.0
    stream = make_stream(2)
    stream.produce(numbered(40), partitions=2)
    properties = '{"max.poll.interval.ms": 2000, "session.timeout.ms": 2000, "heartbeat.interval.ms": 500}'
    if protocol == "consumer":
        properties = '{"max.poll.interval.ms": 2000}'
    worker = stream.start(
        {
            "group_protocol": protocol,
            "FORWARD_SECONDS": 3 * poll_interval_s,
            "batch_tokens": 128,
            "drain_ms": 1000,
            "transaction_timeout_ms": 1500,
            "consumer_properties": properties,
        }
    )
    started = time.monotonic()
    stream.wait_until_done()
    assert time.monotonic() - started > 3 * poll_interval_s
    assert len(list(worker.lines("partitions_assigned"))) == 1
    assert not list(worker.lines("partitions_revoked"))
    assert not list(worker.lines("partitions_lost"))
    assert_every_text_once_in_order(stream, 40)


def test_at_least_once_answers_every_text_and_commits_in_order(make_stream: MakeStream) -> None:
    stream = make_stream(2)
    stream.produce(numbered(500), partitions=2)
    worker = stream.start({"delivery": "at_least_once", "batch_tokens": 128})
    stream.wait_until_done()
    assert worker.stop() == 0, worker.tail()
    assert_every_text_once_in_order(stream, 500)
    assert_left_in_good_order(stream)


def test_a_checkpoint_names_the_run_that_wrote_it(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    stream.produce(numbered(10), partitions=1)
    worker = stream.start({"consumer_properties": QUICK_SESSION})
    stream.wait_until_done()
    during = checkpoint.decode(stream.committed()[0].metadata)
    worker.kill()
    run = next(worker.lines("worker_started"))["run"]
    assert during is not None
    assert (during.run, during.clean) == (run, False)
    again = stream.start({"consumer_properties": QUICK_SESSION})
    again.wait_for("unclean_end_found")

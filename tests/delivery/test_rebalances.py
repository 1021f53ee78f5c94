"""Partitions that come, go, are lost and found again: each text is answered by whoever holds its partition then."""

from __future__ import annotations

import json
import random
import signal
import time
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from tests.delivery.conftest import MakeStream
from tests.delivery.feed import feeding
from tests.delivery.fleet import Fleet
from tests.delivery.pace import RECOVERY_S, pace
from tests.delivery.proxy import Proxy
from tests.delivery.report import FULL, Report, scale
from tests.delivery.streams import side_by_side
from tests.delivery.verifier import verify
from tests.delivery.watcher import watching
from tests.end_to_end.conftest import Stream
from tests.end_to_end.test_delivery import numbered
from tests.end_to_end.workers import WorkerProcess, wait_until
from tests.kafka_server.read_back import partitions_of

PATIENCE_S: Final = 60.0
PARTITIONS: Final = 4
PROTOCOLS: Final = ("classic", "consumer")


def judge(stream: Stream, count: int, report: Report, *faults: str) -> None:
    verdict = verify(stream, range(count))
    report.found(verdict, *faults)
    verdict.assert_sound()


def forwarded(worker: WorkerProcess) -> int:
    """Return how many texts a worker has inferred."""
    return sum(line["records"] for line in worker.lines("forward"))


def times(worker: WorkerProcess, event: str) -> int:
    return sum(1 for _ in worker.lines(event))


def test_joins_and_leaves_under_load(make_stream: MakeStream, report: Report) -> None:
    join, leave = "a worker joins", "a worker leaves (SIGTERM)"

    def job(stream: Stream, protocol: str) -> None:
        chance = random.Random(protocol)
        with (
            watching(stream) as watcher,
            feeding(stream, watcher, partitions=PARTITIONS, per_second=100) as feed,
        ):
            fleet = Fleet(stream, 1, pace(protocol))
            watcher.wait_for(1, PATIENCE_S)
            for turn in range(scale(quick=4, full=20)):
                since, lagging = time.monotonic(), watcher.lagging(feed.produced)
                if turn % 2 == 0:
                    fleet.join()
                else:
                    assert fleet.leave(chance.randrange(len(fleet.workers))) == 0
                # Every third change comes while the one before is not settled yet.
                if turn % 3 != 1:
                    recovery_s = watcher.recovery_s(since, lagging, PATIENCE_S)
                    assert recovery_s <= RECOVERY_S
                    report.tried(leave if turn % 2 else join, 0, recovery_s=recovery_s)
                report.tried(leave if turn % 2 else join)
            count = feed.stop()
            watcher.wait_for(count, PATIENCE_S)
            stream.wait_until_done()
        assert set(fleet.stop()) == {0}
        assert fleet.deaths == []
        judge(stream, count, report, join, leave)

    side_by_side(make_stream, PARTITIONS, PROTOCOLS, job)


def test_a_revocation_waits_for_the_forward_that_runs_or_drops_it(make_stream: MakeStream, report: Report) -> None:
    fault, count, forward_s = "partitions revoked during a forward", 80, 2.0

    def job(stream: Stream, kind: tuple[str, int]) -> None:
        protocol, drain_ms = kind
        stream.produce(numbered(count), partitions=PARTITIONS)
        settings = pace(protocol, FORWARD_SECONDS=forward_s, batch_tokens=128, drain_ms=drain_ms)
        first = stream.start(settings)
        first.wait_for("partitions_assigned")
        second = stream.start(settings)
        first.wait_for("partitions_revoked")
        assert forwarded(first) < count, "the first had answered all before the second came"
        stream.wait_until_done()
        assert [first.stop(), second.stop()] == [0, 0]
        inferred = forwarded(first) + forwarded(second)
        if drain_ms > forward_s * 1000:
            assert inferred == count, "a text whose forward was waited for was inferred again"
        report.tried(fault)
        judge(stream, count, report, fault)

    kinds = [("classic", 10_000), ("consumer", 10_000), ("classic", 100), ("consumer", 100)]
    side_by_side(make_stream, PARTITIONS, kinds, job)


@pytest.mark.parametrize("protocol", PROTOCOLS if FULL else PROTOCOLS[:1])
def test_answers_of_a_partition_that_was_lost_and_found_again_are_void(
    make_stream: MakeStream, proxy: Proxy, report: Report, protocol: str
) -> None:
    fault, count = "partition lost and regained while its answers wait", 40
    stream = make_stream(PARTITIONS)
    away = json.dumps({"reconnect.backoff.max.ms": 200})
    slow = stream.start(
        pace(
            protocol,
            bootstrap_servers=proxy.bootstrap,
            kafka_properties=away,
            FORWARD_SECONDS=scale(quick=8, full=12),
            batch_tokens=1024,
        )
    )
    slow.wait_for("partitions_assigned")
    stream.produce(numbered(count), partitions=PARTITIONS)
    # Read by the first of two alone, and in its hands when the line is cut.
    began = time.monotonic()
    wait_until(lambda: time.monotonic() > began + 1, PATIENCE_S, lambda: "the forward to begin")
    with watching(stream) as watcher:
        proxy.cut()
        quick = stream.start(pace(protocol))
        watcher.wait_for(count, PATIENCE_S)
        quick.wait_for("published")
        proxy.mend()
        slow.wait_for("partitions_lost")
        assert quick.stop() == 0, quick.tail()
        slow.wait_for("partitions_assigned", times=2)
        assert forwarded(slow) == 0, "the forward was over before its partitions were there again"
        slow.wait_for("forward", timeout_s=PATIENCE_S)
        stream.produce(numbered(count + PARTITIONS)[count:], partitions=PARTITIONS)
        watcher.wait_for(count + PARTITIONS, PATIENCE_S)
        stream.wait_until_done()
    assert slow.stop() == 0, slow.tail()
    assert sum(line["records"] for line in slow.lines("published")) == PARTITIONS
    report.tried(fault)
    judge(stream, count + PARTITIONS, report, fault)


def test_of_two_workers_of_one_instance_one_leaves_and_says_why(make_stream: MakeStream, report: Report) -> None:
    fault = "two workers of one instance_id"

    def job(stream: Stream, protocol: str) -> None:
        with (
            watching(stream) as watcher,
            feeding(stream, watcher, partitions=PARTITIONS, per_second=50) as feed,
        ):
            first = stream.start(pace(protocol, instance_id="pod"))
            watcher.wait_for(1, PATIENCE_S)
            second = stream.start(pace(protocol, instance_id="pod"))
            # Under `classic` it is the newer that the group keeps, under `consumer` the older.
            leaver, stayer = (first, second) if protocol == "classic" else (second, first)
            wait_until(lambda: not leaver.running, PATIENCE_S, leaver.tail)
            report.tried(fault, recovery_s=watcher.recovery_s(time.monotonic(), range(PARTITIONS), PATIENCE_S))
            count = feed.stop()
            watcher.wait_for(count, PATIENCE_S)
        assert leaver.returncode == 1
        assert "a worker of the same instance_id is alive" in leaver.tail(), leaver.tail()
        assert stayer.stop() == 0, stayer.tail()
        judge(stream, count, report, fault)

    side_by_side(make_stream, PARTITIONS, PROTOCOLS, job)


def test_static_members_that_are_restarted_at_once_again_and_again(make_stream: MakeStream, report: Report) -> None:
    fault = "quick restarts of static members"

    def job(stream: Stream, protocol: str) -> None:
        with (
            watching(stream) as watcher,
            feeding(stream, watcher, partitions=PARTITIONS, per_second=50) as feed,
        ):
            fleet = Fleet(stream, 2, pace(protocol, instance_id="pod"))
            watcher.wait_for(1, PATIENCE_S)
            since = time.monotonic()
            for turn in range(scale(quick=4, full=20)):
                place = turn % 2
                # Once it has its partitions, or in the middle of joining.
                event = "partitions_assigned" if turn % 3 else "worker_started"
                come_to(fleet, place, event)
                restarted = fleet.workers[place]
                if turn % 4 == 3:
                    restarted.kill()
                else:
                    restarted.send(signal.SIGTERM)
                    wait_until(lambda gone=restarted: not gone.running, PATIENCE_S, restarted.tail)  # type: ignore[misc]
                since = time.monotonic()
                fleet.tend()
                report.tried(fault)
            lagging = watcher.lagging(feed.produced)
            report.tried(fault, 0, recovery_s=watcher.recovery_s(since, lagging, PATIENCE_S, fleet.tend))
            count = feed.stop()
            watcher.wait_for(count, PATIENCE_S, fleet.tend)
            stream.wait_until_done()
            for place in (0, 1):
                come_to(fleet, place, "partitions_assigned")
        assert fleet.stop() == [0, 0]
        # Under `consumer` the group refuses the successor of a killed member until that one's session is over.
        assert set(fleet.deaths) <= {0, -signal.SIGKILL, *([1] if protocol == "consumer" else [])}
        judge(stream, count, report, fault)

    side_by_side(make_stream, PARTITIONS, PROTOCOLS, job)


def come_to(fleet: Fleet, place: int, event: str) -> None:
    """Return once the worker at a place has logged an event; whoever leaves before is started again."""

    def reached() -> bool:
        fleet.tend()
        return times(fleet.workers[place], event) > 0

    wait_until(reached, PATIENCE_S, lambda: fleet.workers[place].tail())


def test_partitions_added_while_running_are_answered_from_their_first_record(
    make_stream: MakeStream, report: Report
) -> None:
    fault, before, after = "partitions added to the input", 20, 80

    def job(stream: Stream, kind: tuple[str, str]) -> None:
        protocol, start = kind
        refresh = json.loads(str(pace(protocol).get("consumer_properties", "{}")))
        properties = json.dumps(refresh | {"topic.metadata.refresh.interval.ms": 300})
        fleet = Fleet(stream, 1, pace(protocol, start=start, consumer_properties=properties))
        come_to(fleet, 0, "partitions_assigned")
        with watching(stream) as watcher:
            texts = numbered(before + after)
            stream.produce(texts[:before], partitions=2)
            watcher.wait_for(before, PATIENCE_S, fleet.tend)
            admin = AdminClient({"bootstrap.servers": stream.bootstrap})
            for made in admin.create_partitions([NewPartitions(stream.texts, 4)]).values():
                made.result(PATIENCE_S)
            wait_until(
                lambda: len(partitions_of(stream.bootstrap, stream.texts)) == 4, PATIENCE_S, lambda: "partitions"
            )
            since = time.monotonic()
            stream.produce(texts[before:], partitions=4)
            watcher.wait_for(len(texts), PATIENCE_S, fleet.tend)
            report.tried(fault, recovery_s=time.monotonic() - since)
            stream.wait_until_done()
        assert fleet.stop() == [0]
        # Seen once under `consumer`: the Python client aborts the process (`CallState_get: Assertion cs != NULL`).
        assert set(fleet.deaths) <= ({-signal.SIGABRT} if protocol == "consumer" else set())
        judge(stream, len(texts), report, fault)

    kinds = [(protocol, start) for protocol in PROTOCOLS for start in ("earliest", "latest")]
    side_by_side(make_stream, 2, kinds, job)

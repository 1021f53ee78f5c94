"""A broker that is killed, restarted, away, slow, or not there yet: every worker waits and goes on by itself."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from tests.delivery.conftest import MakeStream
from tests.delivery.feed import Feed, feeding
from tests.delivery.pace import TRANSACTION_S, pace
from tests.delivery.proxy import Api, Proxy, Rule
from tests.delivery.report import FULL, Report, scale
from tests.delivery.streams import apart
from tests.delivery.verifier import Verdict, verify
from tests.delivery.watcher import Watcher, watching
from tests.end_to_end.conftest import Stream
from tests.end_to_end.workers import WorkerProcess, wait_until
from tests.kafka_server.server import KafkaServer

PATIENCE_S: Final = 90.0
PARTITIONS: Final = 2
CLIENT: Final[dict[str, object]] = {"reconnect.backoff.max.ms": 500}
"""Or some of the time until a worker goes on would be its pause between two tries to connect, up to 10 s."""


class Kind(NamedTuple):
    """What tells one worker of these tests from another."""

    protocol: str
    delivery: str


KINDS: Final = (
    Kind("classic", "exactly_once"),
    Kind("consumer", "exactly_once"),
    Kind("classic", "at_least_once"),
)


class Run(NamedTuple):
    """A stream at work."""

    kind: Kind
    stream: Stream
    worker: WorkerProcess
    watcher: Watcher
    feed: Feed


@contextmanager
def at_work(make_stream: MakeStream, **settings: object) -> Iterator[list[Run]]:
    """Yield a stream for each kind of worker, all of them flowing; judge them at the end of the block."""
    runs = []
    with ExitStack() as stack:
        for kind in KINDS:
            stream = apart(make_stream(PARTITIONS), "-".join(kind))
            worker = stream.start(
                pace(kind.protocol, delivery=kind.delivery, kafka_properties=json.dumps(CLIENT), **settings)
            )
            watcher = stack.enter_context(watching(stream, repeats_allowed=kind.delivery == "at_least_once"))
            feed = stack.enter_context(feeding(stream, watcher, partitions=PARTITIONS, per_second=30))
            runs.append(Run(kind, stream, worker, watcher, feed))
        for run in runs:
            run.watcher.wait_for(10, PATIENCE_S)
        yield runs
        for run in runs:
            run.watcher.wait_for(run.feed.stop(), PATIENCE_S)
            run.stream.wait_until_done()


def judge(runs: list[Run], report: Report, *faults: str) -> None:
    """Check that every worker is the one that was started, that it leaves in order, and what it left behind."""

    def one(run: Run) -> Verdict:
        assert len(run.stream.workers) == 1
        assert run.worker.stop() == 0, f"{run.kind}\n{run.worker.tail()}"
        return verify(run.stream, range(run.feed.total), repeats_allowed=run.kind.delivery == "at_least_once")

    with ThreadPoolExecutor(len(runs)) as pool:
        verdicts = list(pool.map(one, runs))
    for verdict in verdicts:
        report.found(verdict, *faults)
        verdict.assert_sound()


def stay_away(broker: KafkaServer) -> None:
    """Be away for longer than a message, a transaction and a session last."""
    broker.kill()
    gone = time.monotonic()
    wait_until(lambda: time.monotonic() > gone + 3 * TRANSACTION_S, PATIENCE_S, lambda: "time to pass")


def test_a_broker_that_goes_and_comes_back_costs_no_worker_and_no_text(
    make_stream: MakeStream, broker: KafkaServer, report: Report
) -> None:
    faults: dict[str, Callable[[KafkaServer], None]] = {
        "broker restarted in order": KafkaServer.stop,
        "broker SIGKILLed and away for long": stay_away,
    }
    if FULL:
        faults["broker SIGKILLed and back at once"] = KafkaServer.kill
    with at_work(make_stream) as runs:
        for _ in range(scale(quick=1, full=4)):
            for name, strike in faults.items():
                try:
                    strike(broker)
                finally:
                    broker.start()
                back = time.monotonic()
                recovery_s = max(run.watcher.recovery_s(back, range(PARTITIONS), PATIENCE_S) for run in runs)
                report.tried(name, recovery_s=recovery_s)
    judge(runs, report, *faults)


def test_a_slow_broker_slows_and_nothing_else(make_stream: MakeStream, proxy: Proxy, report: Report) -> None:
    fault = "broker slow"
    with at_work(make_stream, bootstrap_servers=proxy.bootstrap, transaction_timeout_ms=10_000) as runs:
        for delay_s in (0.02, 0.1, 0.2) if FULL else (0.1,):
            since = time.monotonic()
            proxy.slow(delay_s=delay_s, bytes_per_s=50_000)
            recovery_s = max(run.watcher.recovery_s(since, range(PARTITIONS), PATIENCE_S) for run in runs)
            report.tried(fault, recovery_s=recovery_s)
        proxy.mend()
    judge(runs, report, fault)


def test_a_worker_that_starts_before_its_coordinator_is_there_waits(
    make_stream: MakeStream, proxy: Proxy, report: Report
) -> None:
    fault = "coordinator not there at the start"
    proxy.cut()
    stream = make_stream(PARTITIONS)
    stream.produce([{"text": "Ann", "id": number} for number in range(20)], partitions=PARTITIONS)
    worker = stream.start(
        pace(
            bootstrap_servers=proxy.bootstrap,
            kafka_properties=json.dumps(CLIENT | {"client.id": "early", "socket.timeout.ms": 1000}),
        )
    )
    worker.wait_for("broker_unreachable")
    with watching(stream) as watcher:
        proxy.mend()
        rule = proxy.add(Rule(Api.FIND_COORDINATOR, "lose response", times=4, client="early"))
        wait_until(lambda: rule.struck == rule.times, PATIENCE_S, worker.tail)
        assert watcher.answered == 0
        report.tried(fault, recovery_s=watcher.recovery_s(rule.struck_at, range(PARTITIONS), PATIENCE_S))
        watcher.wait_for(20, PATIENCE_S)
        stream.wait_until_done()
    assert worker.stop() == 0, worker.tail()
    verdict = verify(stream, range(20))
    report.found(verdict, fault)
    verdict.assert_sound()

"""A worker that is frozen (SIGSTOP) until the group and the broker have given it up, and then goes on, does no harm."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.delivery.conftest import MakeStream
from tests.delivery.feed import feeding
from tests.delivery.fleet import Fleet
from tests.delivery.pace import RECOVERY_S, SCAN_S, TRANSACTION_S, pace
from tests.delivery.report import FULL, Report
from tests.delivery.stepped import Stepped
from tests.delivery.verifier import verify
from tests.delivery.watcher import watching
from tests.end_to_end.workers import WorkerProcess, wait_until

PARTITIONS = 4
PER_SECOND = 100
PATIENCE_S = 60.0
STEPS = ("after_send_offsets", "mid_forward", "between_produces", "after_begin", "before_commit")
IN_TRANSACTION = frozenset(STEPS) - {"mid_forward"}


def frozen(worker: WorkerProcess) -> bool:
    """Return whether a worker is stopped; it stays so until it gets SIGCONT."""
    found = os.waitid(os.P_PID, worker.pid, os.WSTOPPED | os.WNOWAIT | os.WNOHANG)
    return found is not None and found.si_status == signal.SIGSTOP


def events(worker: WorkerProcess, *names: str) -> int:
    return sum(1 for name in names for _ in worker.lines(name))


def test_a_worker_frozen_past_its_time_does_no_harm_and_goes_on(make_stream: MakeStream, report: Report) -> None:
    fault = "SIGSTOP past session and transaction, then SIGCONT"
    stream = make_stream(PARTITIONS)
    with (
        watching(stream) as watcher,
        feeding(stream, watcher, partitions=PARTITIONS, per_second=PER_SECOND) as feed,
    ):
        sleeper, other = Stepped(stream, pace()), Stepped(stream, pace())
        sleeper.process.wait_for("published")
        other.process.wait_for("published")
        for step in STEPS * 2 if FULL else STEPS[:1]:
            sleeper.order("SIGSTOP", step)
            wait_until(lambda: frozen(sleeper.process), PATIENCE_S, sleeper.process.tail)
            since, lagging = time.monotonic(), watcher.lagging(feed.produced)
            recovery_s = watcher.recovery_s(since, lagging, PATIENCE_S)
            assert recovery_s <= RECOVERY_S, f"{step}: {recovery_s:.1f} s until every partition went on"
            report.tried(fault, recovery_s=recovery_s)
            # The other one may have gone on before the broker has ended what the sleeper left open.
            over = since + TRANSACTION_S + 2 * SCAN_S
            wait_until(lambda over=over: time.monotonic() > over, PATIENCE_S, lambda: "the clock")  # type: ignore[misc]
            refused = events(sleeper.process, "transaction_failed")
            assigned = events(sleeper.process, "partitions_assigned")
            published = events(sleeper.process, "published")
            sleeper.process.send(signal.SIGCONT)
            sleeper.process.wait_for("partitions_assigned", times=assigned + 1)
            sleeper.process.wait_for("published", times=published + 3)
            if step in IN_TRANSACTION:
                assert events(sleeper.process, "transaction_failed") > refused, sleeper.process.tail()
        count = feed.stop()
        watcher.wait_for(count, 2 * PATIENCE_S)
        stream.wait_until_done()
    assert [worker.process.stop() for worker in (sleeper, other)] == [0, 0]
    verdict = verify(stream, range(count))
    report.found(verdict, fault)
    verdict.assert_sound()


@pytest.mark.parametrize("protocol", ["classic", "consumer"] if FULL else ["classic"])
def test_a_frozen_worker_whose_instance_was_replaced_leaves(
    make_stream: MakeStream, report: Report, protocol: str
) -> None:
    fault = "SIGSTOP, its instance replaced, then SIGCONT"
    stream = make_stream(PARTITIONS)
    with (
        watching(stream) as watcher,
        feeding(stream, watcher, partitions=PARTITIONS, per_second=PER_SECOND) as feed,
    ):
        sleeper = Stepped(stream, pace(protocol, instance_id="pod-0"))
        sleeper.process.wait_for("published", times=3)
        sleeper.order("SIGSTOP", "after_send_offsets")
        wait_until(lambda: frozen(sleeper.process), PATIENCE_S, sleeper.process.tail)
        since, lagging = time.monotonic(), watcher.lagging(feed.produced)
        # Under `consumer` the group refuses it until the sleeper's session is over: then it is started again.
        successor = Fleet(stream, 1, pace(protocol, instance_id="pod"))
        recovery_s = watcher.recovery_s(since, lagging, PATIENCE_S, successor.tend)
        assert recovery_s <= RECOVERY_S
        report.tried(fault, recovery_s=recovery_s)
        sleeper.process.send(signal.SIGCONT)
        wait_until(lambda: not sleeper.process.running, PATIENCE_S, sleeper.process.tail)
        count = feed.stop()
        watcher.wait_for(count, 2 * PATIENCE_S)
        stream.wait_until_done()
    assert sleeper.process.returncode == 1, sleeper.process.tail()
    assert "a worker of the same instance_id is alive" in sleeper.process.tail()
    assert successor.stop() == [0]
    assert set(successor.deaths) <= {1}
    verdict = verify(stream, range(count))
    report.found(verdict, fault)
    verdict.assert_sound()

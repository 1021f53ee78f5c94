"""SIGKILL at every step of a micro-batch and at any moment: nothing is lost, doubled or inverted."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

import pytest

from tests.delivery.conftest import MakeStream
from tests.delivery.feed import BURST_S, Feed, feeding
from tests.delivery.fleet import Fleet
from tests.delivery.pace import RECOVERY_S, pace
from tests.delivery.report import FULL, KILL, Report, scale
from tests.delivery.stepped import Stepped
from tests.delivery.steps import STEPS
from tests.delivery.streams import side_by_side
from tests.delivery.verifier import verify
from tests.delivery.watcher import Watcher, watching
from tests.end_to_end.conftest import Stream
from tests.end_to_end.workers import REAL_WORKER, WorkerProcess, wait_until

PARTITIONS = 6
PER_SECOND = 100
PATIENCE_S = 60.0
"""How long anything may take that is not asked to be quick; recoveries are, and are measured."""


def rounds(steps: Sequence[str] = STEPS) -> Iterator[tuple[int, str]]:
    """Yield every step as often as is asked for, with the number of the round."""
    for number in range(scale(quick=1, full=3)):
        for step in steps:
            yield number, step


def fed(stream: Stream, watcher: Watcher, partitions: int = PARTITIONS) -> AbstractContextManager[Feed]:
    """Feed a stream for as long as a block runs."""
    return feeding(stream, watcher, partitions=partitions, per_second=PER_SECOND)


def catch_up(stream: Stream, feed: Feed, watcher: Watcher) -> int:
    """End the feed, return once every text is answered and committed; returns how many there are."""
    count = feed.stop()
    watcher.wait_for(count, 2 * PATIENCE_S)
    stream.wait_until_done()
    return count


def recover(watcher: Watcher, feed: Feed, since: float, lagging: set[int], fault: str) -> float:
    """Return the seconds until all that had texts without an answer, then or shortly after, went on; not too many."""
    # At a moment without lag the partitions of the dead show only by the texts that come next.
    wait_until(lambda: time.monotonic() >= since + 2 * BURST_S, PATIENCE_S, lambda: "the clock")
    took = watcher.recovery_s(since, lagging | watcher.lagging(feed.produced), PATIENCE_S)
    assert took <= RECOVERY_S, f"{fault}: {took:.1f} s until every partition went on, {RECOVERY_S} s are allowed"
    return took


def kill_at(victim: Stepped, step: str, times: int) -> None:
    """Have a worker die at a step."""
    victim.order("SIGKILL", step, times)
    wait_until(lambda: not victim.process.running, PATIENCE_S, lambda: f"{step}:\n{victim.process.tail()}")
    assert victim.process.returncode == -signal.SIGKILL, victim.process.tail()


def test_one_worker_killed_at_every_step(make_stream: MakeStream, report: Report) -> None:
    # What a dead worker had in hand is run one by one, of each partition: of one it is soon done.
    partitions, streams = scale(quick=1, full=6), 3

    def kill_and_replace(stream: Stream, place: int) -> None:
        steps = STEPS[place::streams]
        with watching(stream) as watcher, fed(stream, watcher, partitions) as feed:
            victim = Stepped(stream, pace(instance_id="pod"))
            watcher.wait_for(1, PATIENCE_S)
            for number, step in rounds(steps):
                kill_at(victim, step, 1 + number % 3)
                since, lagging = time.monotonic(), watcher.lagging(feed.produced)
                # Every other round its successor is a stranger, and has to wait until the dead one is missed.
                victim = Stepped(stream, pace(instance_id="pod") if number % 2 == 0 else pace())
                report.tried(f"{KILL} {step}", recovery_s=recover(watcher, feed, since, lagging, step))
            count = catch_up(stream, feed, watcher)
        assert victim.process.stop() == 0, victim.process.tail()
        verdict = verify(stream, range(count))
        report.found(verdict, *(f"{KILL} {step}" for step in steps))
        verdict.assert_sound()

    side_by_side(make_stream, partitions, range(streams), kill_and_replace)


def test_one_of_three_workers_killed_at_every_step(make_stream: MakeStream, report: Report) -> None:
    stream = make_stream(PARTITIONS)
    with watching(stream) as watcher, fed(stream, watcher) as feed:
        workers = [Stepped(stream, pace()) for _ in range(3)]
        watcher.wait_for(1, PATIENCE_S)
        for turn, (number, step) in enumerate(rounds(STEPS if FULL else STEPS[::6])):
            kill_at(workers[turn % 3], step, 1 + number % 3)
            since, lagging = time.monotonic(), watcher.lagging(feed.produced)
            workers[turn % 3] = Stepped(stream, pace())
            report.tried(f"{KILL} {step}", recovery_s=recover(watcher, feed, since, lagging, step))
        count = catch_up(stream, feed, watcher)
    assert [worker.process.stop() for worker in workers] == [0, 0, 0]
    verdict = verify(stream, range(count))
    report.found(verdict, *(f"{KILL} {step}" for step in STEPS))
    verdict.assert_sound()


LONG_RUNS = [("classic", 100, 20_000), ("consumer", 50, 5_000)] if FULL else [("consumer", 2, 0)]


@pytest.mark.parametrize(("protocol", "most_kills", "texts"), LONG_RUNS)
def test_kills_joins_and_leaves_at_any_moment(
    make_stream: MakeStream, report: Report, protocol: str, most_kills: int, texts: int
) -> None:
    kill, join, leave = f"{KILL} at any moment", "a worker joins", "a worker leaves (SIGTERM)"
    chance = random.Random(protocol)
    stream = make_stream(PARTITIONS)
    with watching(stream) as watcher, fed(stream, watcher) as feed:
        fleet = Fleet(stream, 3, pace(protocol))
        for worker in fleet.workers:
            worker.wait_for("published")
        kills = 0
        while kills < most_kills:
            watcher.wait_for(watcher.answered + chance.randint(1, PER_SECOND), PATIENCE_S)
            since, lagging = time.monotonic(), watcher.lagging(feed.produced)
            # Now and then several at once: the whole fleet, too.
            for _ in range(chance.choice([1, 1, 1, 2, 3])):
                fleet.kill(chance.randrange(3))
                kills += 1
                report.tried(kill)
            report.tried(kill, 0, recovery_s=recover(watcher, feed, since, lagging, kill))
            if kills % 4 == 0 or not FULL:
                since, lagging = time.monotonic(), watcher.lagging(feed.produced)
                fleet.join()
                report.tried(join, recovery_s=recover(watcher, feed, since, lagging, join))
                since, lagging = time.monotonic(), watcher.lagging(feed.produced)
                assert fleet.leave(chance.randrange(3)) == 0
                report.tried(leave, recovery_s=recover(watcher, feed, since, lagging, leave))
        wait_until(lambda: feed.total >= texts, 10 * PATIENCE_S, lambda: f"{feed.total} texts")
        count = catch_up(stream, feed, watcher)
    assert fleet.stop() == [0, 0, 0]
    assert set(fleet.deaths) == {-signal.SIGKILL}
    verdict = verify(stream, range(count))
    report.found(verdict, kill, join, leave)
    verdict.assert_sound()


def test_at_least_once_loses_nothing_and_repeats_itself_alike(make_stream: MakeStream, report: Report) -> None:
    kill = f"{KILL}, at_least_once"
    stream = make_stream(2)
    with watching(stream, repeats_allowed=True) as watcher, fed(stream, watcher, 2) as feed:
        victim = Stepped(stream, pace(delivery="at_least_once"))
        watcher.wait_for(1, PATIENCE_S)
        for number in range(scale(quick=1, full=10)):
            kill_at(victim, ("between_produces", "mid_forward")[number % 2], 3)
            since, lagging = time.monotonic(), watcher.lagging(feed.produced)
            victim = Stepped(stream, pace(delivery="at_least_once"))
            report.tried(kill, recovery_s=recover(watcher, feed, since, lagging, kill))
        count = catch_up(stream, feed, watcher)
    assert victim.process.stop() == 0, victim.process.tail()
    verdict = verify(stream, range(count), repeats_allowed=True)
    report.found(verdict, kill)
    verdict.assert_sound()


def test_the_bundled_model_killed(make_stream: MakeStream, report: Report) -> None:
    kill = f"{KILL}, bundled model"
    stream = make_stream(PARTITIONS)
    settings = pace(batch_tokens=128, threads=1)

    def at_work(workers: Sequence[WorkerProcess]) -> list[WorkerProcess]:
        return [worker for worker in workers if sum(1 for _ in worker.lines("published")) > 2]

    with watching(stream) as watcher, feeding(stream, watcher, partitions=PARTITIONS, per_second=30) as feed:
        # Another one loads its model meanwhile.
        workers = [stream.start(settings, REAL_WORKER) for _ in range(2)]
        kills = scale(quick=1, full=3)
        for number in range(kills):
            wait_until(lambda: bool(at_work(workers)), 2 * PATIENCE_S, workers[0].tail)
            victim = at_work(workers)[0]
            victim.kill()
            report.tried(kill)
            workers.remove(victim)
            if number + 1 < kills:
                workers.append(stream.start(settings, REAL_WORKER))
        wait_until(lambda: bool(at_work(workers)), 2 * PATIENCE_S, workers[0].tail)
        count = catch_up(stream, feed, watcher)
    assert [worker.stop() for worker in workers] == [0]
    verdict = verify(stream, range(count))
    report.found(verdict, kill)
    verdict.assert_sound()

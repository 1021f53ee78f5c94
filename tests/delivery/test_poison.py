"""Texts that break the engine, up to the death of its process: just these are set aside; and no other, whoever dies."""

from __future__ import annotations

import signal
from collections.abc import Mapping

import pytest

from tests.delivery.answers import Source
from tests.delivery.conftest import MakeStream
from tests.delivery.fleet import Fleet
from tests.delivery.pace import pace
from tests.delivery.report import FULL, KILL, Report, scale
from tests.delivery.stepped import Stepped
from tests.delivery.steps import MID_TRIAL, Order
from tests.delivery.verifier import verify
from tests.delivery.watcher import watching
from tests.end_to_end.conftest import Stream
from tests.end_to_end.workers import wait_until

PARTITIONS = 6
LENGTH = 40
"""Texts in each partition: more than a worker has in hand of one."""
PATIENCE_S = 240.0
DEATH_S = 30.0
TRIALS = 3
"""The worker's own default."""
CRASHES = ("ABORT", "ABORT_PREPARE")

PLACES = (
    Source(0, 0),
    Source(1, LENGTH // 2),
    Source(2, LENGTH - 1),
    Source(3, 10),
    Source(3, 11),
    Source(3, 12),
)
"""First, in the middle, last, and three next to each other."""


def produce(stream: Stream, poison: Mapping[Source, str], partitions: int = PARTITIONS) -> None:
    """Produce `LENGTH` texts to each partition; those at the places given hold a word that breaks something."""
    places = [Source(number % partitions, number // partitions) for number in range(partitions * LENGTH)]
    stream.produce(
        (
            {"id": number, "text": f"Ann saw number {number} in Oslo {poison.get(place, '')}"}
            for number, place in enumerate(places)
        ),
        partitions=partitions,
    )


def cases() -> list[tuple[str, ...]]:
    """Return the words to try, each on streams of its own; in a quick run some share one."""
    return [("POISON",), ("NAN",), ("ABORT",), ("ABORT_PREPARE",)] if FULL else [("POISON", "NAN"), CRASHES]


@pytest.mark.parametrize("words", cases(), ids="+".join)
def test_just_the_texts_that_break_the_engine_are_set_aside(
    make_stream: MakeStream, report: Report, words: tuple[str, ...]
) -> None:
    poison = {place: words[index % len(words)] for index, place in enumerate(PLACES)}
    faults = {word: f"poison: {word}" for word in words}
    for word in poison.values():
        report.tried(faults[word])
    stream = make_stream(PARTITIONS)
    produce(stream, poison)
    with watching(stream) as watcher:
        fleet = Fleet(stream, 2, pace(instance_id="pod"))
        watcher.wait_for(PARTITIONS * LENGTH, PATIENCE_S, fleet.tend)
        stream.wait_until_done()
    assert fleet.stop() == [0, 0]
    verdict = verify(stream, range(PARTITIONS * LENGTH))
    report.found(verdict, *faults.values())
    verdict.assert_sound(dead_letters=PLACES)
    stages = {place: "crash" if word in CRASHES else "infer" for place, word in poison.items()}
    assert verdict.dead_letters == stages
    assert all(verdict.attempts[place] == (TRIALS if word in CRASHES else 1) for place, word in poison.items())
    if set(words) <= set(CRASHES):
        assert set(fleet.deaths) == {-signal.SIGABRT}
    else:
        assert fleet.deaths == []


def test_deaths_that_no_text_is_to_blame_for_set_nothing_aside(make_stream: MakeStream, report: Report) -> None:
    fault = f"{KILL} of the same innocent texts, again and again"
    # One partition, so that it is the same texts every time.
    stream = make_stream(1)
    produce(stream, {}, partitions=1)
    settings = pace(instance_id="pod", FORWARD_SECONDS=0.1)
    # While they run together; while one runs alone, after a harmless text; from then on while one runs alone in a
    # child process, whose parent is killed.
    deaths = [Order("SIGKILL", "mid_forward"), Order("SIGKILL", "mid_forward", 2), Order("SIGKILL", MID_TRIAL)]
    with watching(stream) as watcher:
        for number in range(scale(quick=5, full=10)):
            victim = Stepped(stream, settings, deaths[min(number, 2)]).process
            wait_until(lambda victim=victim: not victim.running, DEATH_S, victim.tail)  # type: ignore[misc]
            assert victim.returncode == -signal.SIGKILL, victim.tail()
            report.tried(fault)
        assert watcher.answered == 0, "they were not the same texts each time"
        last = Stepped(stream, pace(instance_id="pod")).process
        watcher.wait_for(LENGTH, PATIENCE_S)
        stream.wait_until_done()
    assert last.stop() == 0, last.tail()
    verdict = verify(stream, range(LENGTH))
    report.found(verdict, fault)
    verdict.assert_sound()

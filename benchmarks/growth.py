"""More texts and more labels: never slower than the library, and as many texts a second."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from benchmarks import library, subject
from benchmarks.library import Question
from benchmarks.report import Metric
from benchmarks.rounds import interleave
from benchmarks.subject import Subject
from benchmarks.texts import MORE_LABELS, choose
from packing import Engine

SIZES: Final = (8, 64, 512, 4096)
LABEL_COUNTS: Final = (1, 5, 25, 100)
_LEAST: Final = 1024  # texts read at a size, by asking for the same again, so that each takes some time
_MOST_FOR_LIBRARY: Final = 512
_LABELLED_TEXTS: Final = 24
_RIVALS: Final = ("sequential", "sorted 8")
"""The library's ways that are its best ones on a CPU."""


def measure(
    measured: Subject, engine: Engine, pool: Sequence[str], say: Callable[[str], None]
) -> tuple[list[Metric], dict[str, Any]]:
    """Compare with the library in float32, and measure throughput of an engine, the faster one.

    Returns:
        The metrics, and the figures behind them.
    """
    texts = subject.readable(measured.engine, pool)
    compared = [*by_texts(measured, texts, say), *by_labels(measured, texts, say)]
    speeds = throughput(measured, engine, texts)
    say(
        ", ".join(f"{size:,} texts: {speed:.1f} texts/s" for size, speed in speeds.items()) + f" in {engine.info.dtype}"
    )
    details = {"compared": compared, "texts_per_second": speeds, "dtype": engine.info.dtype}
    return metrics(compared, speeds), details


def by_texts(measured: Subject, pool: Sequence[str], say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Compare with the library's best in float32 for each size that it can be waited for."""
    entries: list[dict[str, Any]] = []
    for size in (size for size in SIZES if size <= _MOST_FOR_LIBRARY):
        asked = _ask(measured, pool, size, measured.asked.labels)
        # of the largest a round takes a minute, so only what was best before is tried
        rivals = [entries[-1]["best"]] if size == _MOST_FOR_LIBRARY else list(_RIVALS)
        rounds = 1 if size == _MOST_FOR_LIBRARY else 3
        entries.append({"texts": size} | _against_library(measured, asked, rivals, rounds))
        say(f"{size} texts: {entries[-1]['times_as_fast']:.2f} times as fast as the library")
    return entries


def by_labels(measured: Subject, pool: Sequence[str], say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Compare with the library's best in float32 for more and more labels."""
    entries = []
    for count in LABEL_COUNTS:
        asked = _ask(measured, pool, _LABELLED_TEXTS, MORE_LABELS[:count])
        entries.append({"labels": count} | _against_library(measured, asked, list(_RIVALS), rounds=2))
        say(f"{count} labels: {entries[-1]['times_as_fast']:.2f} times as fast as the library")
    return entries


def throughput(measured: Subject, engine: Engine, pool: Sequence[str]) -> dict[int, float]:
    """Return an engine's texts a second for sizes from 64 on."""
    sizes = [size for size in SIZES if size >= 64]
    asked = {size: _ask(measured, pool, size, measured.asked.labels) for size in sizes}
    repeats = {size: max(1, _LEAST // size) for size in sizes}

    def run(size: int) -> None:
        for _ in range(repeats[size]):
            subject.extract(engine, asked[size])

    timed = interleave({str(size): partial(run, size) for size in sizes}, 1, warm=False)
    return {size: repeats[size] * size / timed.median(str(size)) for size in sizes}


def metrics(compared: Sequence[dict[str, Any]], texts_per_second: dict[int, float]) -> list[Metric]:
    """Sum up: the least advantage, and how flat throughput is."""
    least = min(compared, key=lambda entry: float(entry["times_as_fast"]))
    where = f"{least['texts']} texts" if "texts" in least else f"{least['labels']} labels"
    speeds = list(texts_per_second.values())
    return [
        Metric(
            "growth_least_speedup", least["times_as_fast"], "times as fast", 1.0, note=f"as {least['best']}, at {where}"
        ),
        Metric(
            "growth_flatness",
            min(speeds) / max(speeds),
            "least by most texts/s",
            0.9,
            note=f"from 64 to {max(texts_per_second):,} texts",
        ),
    ]


def _ask(measured: Subject, pool: Sequence[str], size: int, labels: Sequence[str]) -> Question:
    texts = subject.whole(measured.engine, measured.gliner, choose(pool, size), labels)
    return Question(texts, list(labels), measured.asked.threshold)


def _against_library(measured: Subject, asked: Question, rivals: list[str], rounds: int) -> dict[str, Any]:
    ways = {name: partial(library.WAYS[name], measured.gliner, asked) for name in rivals}
    timed = interleave({**ways, "ours": partial(subject.extract, measured.engine, asked)}, rounds, warm=False)
    best = timed.fastest(rivals)
    return {
        "best": best,
        "times_as_fast": timed.ratio(best, "ours").median,
        "texts_per_second": len(asked.texts) / statistics.median(timed.seconds["ours"]),
    }

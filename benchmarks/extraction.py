"""Whole answers, from texts to entities: ours against the library's ways."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from benchmarks import library, sameness, subject
from benchmarks.library import Answer
from benchmarks.report import Metric
from benchmarks.rounds import Timed, interleave
from benchmarks.session import Half
from benchmarks.subject import Subject

Way = Callable[[], list[Answer]]

OURS: Final = "Glistream"
PADDED: Final = "padded 8"
_HOPELESS: Final = 1.4
"""A way that takes this many times as long as the fastest of its dtype isn't the best one: one round shows it."""

_MARGIN: Final = 0.1
"""In half precision entities may differ within so many standard deviations of the logits of a threshold or rival."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was measured.

    Attributes:
        metrics: Ratios and shares of equal answers.
        texts_per_second: By way and dtype, as `sequential, float32`.
        failed: Ways of the library that raise for this model, with the reason.
        timed: All rounds.
    """

    metrics: list[Metric]
    texts_per_second: dict[str, float]
    failed: dict[str, str]
    timed: Timed[list[Answer]]


def measure(
    measured: Subject,
    half: Half | None,
    rounds: int,
    goals: Mapping[str, float],
    *,
    padded: bool,
    prefix: str = "",
    deviation: float | None = None,
    without: Collection[str] = (),
) -> Extraction:
    """Time ours and the library's ways, in float32 and, where there is a `half`, in bfloat16.

    Args:
        measured: Model and texts.
        half: The same in bfloat16.
        rounds: How often each way is timed.
        goals: Least ratios by metric, without the prefix.
        padded: Whether batches of texts as they come are timed too, in float32; they are never the best way.
        prefix: Of the metrics' names.
        deviation: The logits' standard deviation; given, bfloat16's entities are compared too.
        without: Ways of the library that aren't tried.
    """
    asked = measured.asked
    ways: dict[str, Way] = {_name(OURS, "float32"): partial(subject.extract, measured.engine, asked)}
    once: dict[str, float] = {}
    failed: dict[str, str] = {}
    models = {"float32": measured.gliner} | ({"bfloat16": half.gliner} if half else {})
    if half:
        ways[_name(OURS, "bfloat16")] = partial(subject.extract, half.engine, asked)
    for dtype, gliner in models.items():
        library.sequential(gliner, asked._replace(texts=asked.texts[:4]))  # the first calls are slow
        always = PADDED if padded and dtype == "float32" else ""
        tried = {
            name: partial(way, gliner, asked)
            for name, way in library.WAYS.items()
            if name in (always, *library.BETTER) and name not in without
        }
        seconds, raised = _once(tried)
        failed |= {_name(name, dtype): reason for name, reason in raised.items()}
        once |= {_name(name, dtype): value for name, value in seconds.items()}
        fastest = min(seconds.values())
        ways |= {
            _name(name, dtype): tried[name]
            for name, value in seconds.items()
            if value <= _HOPELESS * fastest or name == always
        }
    timed = interleave(ways, rounds, warm=False)
    count = len(asked.texts)
    speeds = {name: count / value for name, value in once.items()} | {name: count / timed.median(name) for name in ways}
    metrics = _ratios(timed, goals, prefix) + _agreements(measured, timed, prefix, deviation)
    return Extraction(metrics, speeds, failed, timed)


def best(timed: Timed[Any], dtype: str) -> str:
    """Return the library's fastest way in a dtype."""
    return timed.fastest([name for name in timed.seconds if name.endswith(dtype) and not name.startswith(OURS)])


def _name(way: str, dtype: str) -> str:
    return f"{way}, {dtype}"


def _once(ways: Mapping[str, Way]) -> tuple[dict[str, float], dict[str, str]]:
    """Time each way once; return also why some can't."""
    seconds: dict[str, float] = {}
    failed: dict[str, str] = {}
    for name, run in ways.items():
        start = time.perf_counter()
        try:
            run()
        except Exception as error:  # the library's packing fails for all encoders but DeBERTa
            failed[name] = f"{type(error).__name__}: {error}"
        else:
            seconds[name] = time.perf_counter() - start
    return seconds, failed


def _ratios(timed: Timed[Any], goals: Mapping[str, float], prefix: str) -> list[Metric]:
    ours = {dtype: _name(OURS, dtype) for dtype in ("float32", "bfloat16")}
    best_fp32 = best(timed, "float32")
    pairs = [
        ("extract_fp32_vs_padded8", _name(PADDED, "float32"), ours["float32"]),
        ("extract_fp32_vs_best", best_fp32, ours["float32"]),
    ]
    if ours["bfloat16"] in timed.seconds:
        pairs += [
            ("extract_bf16_vs_best_fp32", best_fp32, ours["bfloat16"]),
            ("extract_bf16_vs_best_bf16", best(timed, "bfloat16"), ours["bfloat16"]),
        ]
    metrics = []
    for name, slow, fast in pairs:
        if slow in timed.seconds:
            ratio = timed.ratio(slow, fast)
            metrics.append(
                Metric(
                    prefix + name, ratio.median, "times as fast", goals.get(name), spread=ratio[1:], note=f"as {slow}"
                )
            )
    return metrics


def _agreements(measured: Subject, timed: Timed[list[Answer]], prefix: str, deviation: float | None) -> list[Metric]:
    threshold = measured.asked.threshold
    theirs = timed.given.get(_name("sequential", "float32")) or library.sequential(measured.gliner, measured.asked)
    exact = sameness.agree(
        timed.given[_name(OURS, "float32")], theirs, lambda a, b: abs(a - b) <= sameness.TIE, threshold
    )
    share = "share of the texts"
    metrics = [
        Metric(f"{prefix}entities_fp32", exact.same + exact.tied, share, 1.0, note="the library's alone, but for ties"),
        Metric(f"{prefix}entities_tied_fp32", exact.tied, share),
    ]
    if deviation is not None and _name(OURS, "bfloat16") in timed.given:
        margin = _MARGIN * deviation
        rough = sameness.agree(
            timed.given[_name(OURS, "bfloat16")], theirs, lambda a, b: abs(_logit(a) - _logit(b)) <= margin, threshold
        )
        metrics.append(
            Metric(
                f"{prefix}entities_bf16",
                rough.same + rough.tied,
                share,
                1.0,
                note=f"but for logits within {_MARGIN} standard deviations of each other; {rough.same:.3f} without",
            )
        )
    return metrics


def _logit(probability: float) -> float:
    clipped = min(max(probability, 1e-7), 1 - 1e-7)
    return math.log(clipped / (1 - clipped))

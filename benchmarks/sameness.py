"""How far answers are from the model library's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

from benchmarks import library
from benchmarks.library import Answer
from benchmarks.report import Metric
from benchmarks.subject import Subject, possible, rows
from packing import Engine

TIE: Final = 1e-5
"""The library's own scores differ by this much between a text alone and in a batch: entities so close to the
threshold or to a competing one may differ."""

LOGITS: Final = 1e-4
PROBABILITY: Final = 5e-6


class Differences(NamedTuple):
    """The largest differences of float32 logits, in standard deviations of the library's.

    Attributes:
        ours: From the library's for the text alone.
        noise: The library's own, between batches of 8 and alone.
        deviation: The logits' standard deviation.
    """

    ours: float
    noise: float
    deviation: float


class Agreement(NamedTuple):
    """Shares of the texts.

    Attributes:
        same: With the same entities.
        tied: With others, each of which lies near the threshold or a competing one.
    """

    same: float
    tied: float


def measure(measured: Subject, half: Engine | None, prefix: str) -> tuple[list[Metric], Differences]:
    """Return how far logits are from the library's, of ours in float32 and of `half`, and the float32 differences."""
    texts, labels = measured.asked.texts, measured.asked.labels
    reference = flat(measured.reference)
    ours = _logits(measured.engine, measured)
    batches = [
        one
        for at in range(0, len(texts), library.BATCH)
        for one in library.logits(measured.gliner, texts[at : at + library.BATCH], labels)
    ]
    deviation = float(reference.std())
    exact = Differences(
        ours=most(ours, reference) / deviation,
        noise=most(flat(batches), reference) / deviation,
        deviation=deviation,
    )
    name, unit = f"{prefix}max_logit_difference", "standard deviations"
    note = f"the library between batches of 8 and alone: {exact.noise:.1e}"
    metrics = [Metric(f"{name}_fp32", exact.ours, unit, most=max(LOGITS, 10 * exact.noise), note=note)]
    if prefix == "demo_":
        probability = most(ours.sigmoid(), reference.sigmoid())
        metrics.append(Metric("demo_max_probability_difference_fp32", probability, "probability", most=PROBABILITY))
    if half is not None:
        metrics.append(Metric(f"{name}_bf16", most(_logits(half, measured), reference) / deviation, unit))
    return metrics, exact


def _logits(engine: Engine, measured: Subject) -> Tensor:
    forward: Any = engine._forward
    return flat(forward.logits(rows(engine, measured.asked.texts, measured.asked.labels)))


def agree(
    ours: Sequence[Answer], theirs: Sequence[Answer], near: Callable[[float, float], bool], threshold: float
) -> Agreement:
    """Compare entities, text by text.

    Args:
        ours: By text.
        theirs: By text.
        near: Whether two scores are too close for their order to count.
        threshold: Which all scores exceed.
    """
    same = [one.keys() == other.keys() for one, other in zip(ours, theirs, strict=True)]
    tied = [
        not equal and all(_tied(entity, one, other, near, threshold) for entity in one.keys() ^ other.keys())
        for equal, one, other in zip(same, ours, theirs, strict=True)
    ]
    return Agreement(sum(same) / len(same), sum(tied) / len(tied))


def _tied(
    entity: tuple[int, int, str], one: Answer, other: Answer, near: Callable[[float, float], bool], threshold: float
) -> bool:
    """Whether an entity that one answer has alone is as good as one that it shares words with in the other."""
    score = one[entity] if entity in one else other[entity]
    rivals = other if entity in one else one
    start, end, _ = entity
    return near(score, threshold) or any(
        near(score, rival) for (at, to, _), rival in rivals.items() if at < end and start < to
    )


def flat(logits: Sequence[Tensor]) -> Tensor:
    """Return the logits of all spans there are, `[N]`, of texts' `[W, K, C]`."""
    return torch.cat([possible(one) for one in logits])


def most(one: Tensor, other: Tensor) -> float:
    """Return the largest difference."""
    return float((one - other).abs().max())

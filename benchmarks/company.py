"""How far a text's answer depends on who shares its packs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from benchmarks import subject
from benchmarks.report import Metric
from benchmarks.sameness import Differences, flat, most
from benchmarks.subject import Subject
from packing import Engine

HALF: Final = 0.1
_PROBES: Final = 8


def measure(
    measured: Subject, half: Engine | None, pool: Sequence[str], count: int, exact: Differences, prefix: str
) -> list[Metric]:
    """Compare texts alone with the same first, last, and among many others.

    Args:
        measured: Model and texts.
        half: The model in half precision.
        pool: What the others are chosen from.
        count: How many others.
        exact: What the library's own differences are.
        prefix: Of the metrics' names.
    """
    asked = measured.asked
    others = subject.whole(measured.engine, measured.gliner, subject.chosen(measured.engine, pool, count), asked.labels)
    engines = [("", measured.engine, 10 * exact.noise)]
    if half is not None:
        engines.append(("_bf16", half, HALF))
    return [
        Metric(
            f"{prefix}max_company_difference{suffix}",
            difference(engine, asked.texts, others, asked.labels) / exact.deviation,
            "standard deviations",
            most=goal,
            note=f"alone, first, last, among {count:,}",
        )
        for suffix, engine, goal in engines
    ]


def difference(engine: Engine, texts: Sequence[str], others: Sequence[str], labels: Sequence[str]) -> float:
    """Return the largest difference of a text's logits between alone and in company.

    A few texts of all lengths are probed, in one call with the others: before them, in their midst, after them.

    Args:
        engine: Whose.
        texts: What to probe some of.
        others: The company.
        labels: Asked of all.
    """
    rows = sorted(subject.rows(engine, texts, labels), key=lambda row: len(row.ids))
    probes = [rows[int((i + 0.5) * len(rows) / _PROBES)] for i in range(_PROBES)]
    company = subject.rows(engine, others, labels)
    middle = len(company) // 2
    forward: Any = engine._forward
    alone = flat([logits for probe in probes for logits in forward.logits([probe])])
    together = forward.logits([*probes, *company[:middle], *probes, *company[middle:], *probes])
    places = (0, _PROBES + middle, _PROBES + len(company) + _PROBES)
    return max(most(flat(together[at : at + _PROBES]), alone) for at in places)

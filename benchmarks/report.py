"""What was measured, as a table and as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from packing.precision import bfloat16_instructions

_PACKAGES: Final = ("glistream", "gliner", "transformers", "tokenizers", "torch", "numpy")


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure and what is asked of it.

    Attributes:
        name: By which it is found in the file.
        value: The median where there are rounds.
        unit: What it counts.
        least: The goal, where the value shall be at least that.
        most: The goal, where it shall be at most that.
        spread: The least and the greatest of the rounds.
        note: What else one must know to read it.
    """

    name: str
    value: float
    unit: str
    least: float | None = None
    most: float | None = None
    spread: tuple[float, float] | None = None
    note: str = ""

    @property
    def goal(self) -> float | None:
        """The bound, either way; None where there is no goal."""
        return self.most if self.least is None else self.least

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None where there is none. NaN meets nothing."""
        if self.least is not None:
            return self.value >= self.least
        return None if self.most is None else self.value <= self.most


def as_json(metrics: Iterable[Metric], threads: int, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a results file: the metrics by name, the machine, the versions, and the details."""
    listed = {}
    for metric in metrics:
        entry: dict[str, Any] = {
            "value": metric.value,
            "unit": metric.unit,
            "goal": metric.goal,
            "met": metric.met,
        }
        if metric.spread is not None:
            entry["spread"] = list(metric.spread)
        if metric.note:
            entry["note"] = metric.note
        assert metric.name not in listed, f"two metrics {metric.name}"
        listed[metric.name] = entry
    return {"metrics": listed, "machine": machine(threads), "versions": versions(), **details}


def read(path: Path) -> dict[str, Any]:
    """Read a results file; one that isn't there is empty."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def merged(present: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file's content with a later run's put into it, by metric and by model."""
    return {
        key: {**present.get(key, {}), **value} if isinstance(value, dict) else value
        for key, value in {**present, **fresh}.items()
    }


def machine(threads: int) -> dict[str, Any]:
    """Describe where this runs."""
    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": threads,
        "bfloat16": bfloat16_instructions(),
        "vector_instructions": torch.backends.cpu.get_cpu_capability(),
    }


def versions() -> dict[str, str]:
    """Return the versions of what was measured."""
    return {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES}


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Write a results file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def show(metrics: Iterable[Metric], console: Console) -> None:
    """Print the table."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("metric", "value", "rounds", "goal", "met", "unit"):
        table.add_column(heading, justify="right" if heading in ("value", "rounds", "goal") else "left")
    for metric in metrics:
        sign = "" if metric.goal is None else ("≥ " if metric.least is not None else "≤ ")
        table.add_row(
            metric.name,
            figure(metric.value),
            "" if metric.spread is None else f"{figure(metric.spread[0])}-{figure(metric.spread[1])}",
            "" if metric.goal is None else sign + figure(metric.goal),
            {True: "yes", False: "NO", None: ""}[metric.met],
            metric.unit + (f"; {metric.note}" if metric.note else ""),
        )
    console.print(table)


def verdict(metrics: Iterable[Metric]) -> str:
    """Return one line that says which goals were met."""
    with_goal = [metric for metric in metrics if metric.goal is not None]
    missed = [f"{m.name} {figure(m.value)} for {figure(m.goal or 0)}" for m in with_goal if not m.met]
    met = f"{len(with_goal) - len(missed)} of {len(with_goal)} goals met"
    return f"{met}." if not missed else f"{met}; not met: {', '.join(missed)}."


def figure(value: float) -> str:
    """Return a number with three figures, and more before the point where there are."""
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    if value and abs(value) < 0.001:
        return f"{value:.1e}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = (line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line)
        return next(names, platform.processor())
    return platform.processor()

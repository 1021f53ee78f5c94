"""What every kind of fault cost: collected over a run, shown as a table, kept as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Final

import confluent_kafka

from tests.delivery.verifier import Verdict
from tests.kafka_server.jars import version as kafka_version

RESULTS: Final = Path(__file__).parents[2] / "benchmarks" / "results" / "delivery.json"
FULL: Final = os.environ.get("GLISTREAM_TEST_DELIVERY", "") == "full"
"""`GLISTREAM_DELIVERY` is a setting of the worker's."""
KILL: Final = "SIGKILL"
"""With this begin the names of faults that are kills."""


def scale(*, quick: int, full: int) -> int:
    """Return how often to do something: `full` in a run that is to prove it, `quick` in one that is to notice."""
    return full if FULL else quick


@dataclass
class Row:
    """What one kind of fault cost, over all its repeats.

    Attributes:
        tried: how often the fault was made.
        lost: texts that had no answer in the end.
        doubled: texts that had more than one where one is promised.
        out_of_order: texts answered behind a later one.
        recovery_s: the longest time from a fault until every partition that had work went on; None where it isn't
            a matter of time.
    """

    tried: int = 0
    lost: int = 0
    doubled: int = 0
    out_of_order: int = 0
    recovery_s: float | None = None


@dataclass
class Report:
    """The rows by the name of the fault, and what was measured besides; tests that run side by side may share it."""

    rows: dict[str, Row] = field(default_factory=dict)
    measured: dict[str, float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def tried(self, fault: str, times: int = 1, *, recovery_s: float | None = None) -> None:
        """Enter a fault that was made, with the time until the stream went on."""
        with self._lock:
            row = self.rows.setdefault(fault, Row())
            row.tried += times
            if recovery_s is not None:
                row.recovery_s = round(max(row.recovery_s or 0.0, recovery_s), 2)

    def found(self, verdict: Verdict, *faults: str) -> None:
        """Enter what a stream looked like in the end.

        A stream that saw several kinds of fault counts for each of them: it can't be told which was to blame.
        """
        with self._lock:
            for fault in faults:
                row = self.rows.setdefault(fault, Row())
                row.lost += len(verdict.lost)
                row.doubled += len(verdict.doubled)
                row.out_of_order += len(verdict.out_of_order)

    def joined(self, other: Report) -> Report:
        """Return the rows of both; a fault that both made counts for both."""
        rows = {name: replace(row) for name, row in self.rows.items()}
        for name, row in other.rows.items():
            mine = rows.setdefault(name, Row())
            recoveries = [found for found in (mine.recovery_s, row.recovery_s) if found is not None]
            rows[name] = Row(
                mine.tried + row.tried,
                mine.lost + row.lost,
                mine.doubled + row.doubled,
                mine.out_of_order + row.out_of_order,
                max(recoveries, default=None),
            )
        return Report(rows, self.measured | other.measured)

    def table(self) -> Iterator[str]:
        """Yield the lines of the table."""
        width = max(map(len, self.rows), default=0)
        yield f"{'fault':<{width}}  tried   lost  doubled  out of order  longest recovery"
        for name, row in sorted(self.rows.items()):
            recovery = "" if row.recovery_s is None else f"{row.recovery_s:.1f} s"
            yield (
                f"{name:<{width}}  {row.tried:>5}  {row.lost:>5}  {row.doubled:>7}  {row.out_of_order:>12}"
                f"  {recovery:>16}"
            )
        yield from (f"{what}: {value}" for what, value in self.measured.items())


def write(parts: Mapping[str, Report], seconds: Mapping[str, float], path: Path = RESULTS) -> None:
    """Put what parts of the tests found into the results file; what it has of other parts stays.

    Args:
        parts: the rows of each part, by the name of its file.
        seconds: how long each part took.
        path: the results file.
    """
    kept = json.loads(path.read_text(encoding="utf-8"))["parts"] if path.is_file() else {}
    for name, part in parts.items():
        kept[name] = {
            "seconds": round(seconds[name]),
            "faults": {fault: asdict(row) for fault, row in sorted(part.rows.items())},
            "measured": part.measured,
        }
    whole = Report()
    for part in kept.values():
        whole = whole.joined(Report({name: Row(**row) for name, row in part["faults"].items()}, part["measured"]))
    found = {
        "faults": {name: asdict(row) for name, row in sorted(whole.rows.items())},
        "measured": whole.measured,
        "kills": sum(row.tried for name, row in whole.rows.items() if name.startswith(KILL)),
        "seconds": sum(part["seconds"] for part in kept.values()),
        "machine": {
            "architecture": platform.machine(),
            "system": f"{platform.system()} {platform.release()}",
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        },
        "versions": {
            "python": platform.python_version(),
            "kafka": kafka_version(),
            "confluent-kafka": confluent_kafka.__version__,
            "librdkafka": confluent_kafka.libversion()[0],
        },
        "parts": dict(sorted(kept.items())),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")

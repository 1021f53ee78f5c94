"""Memory that a model takes, measured in a process of its own.

As a command it reads a `Task` as JSON from its input and writes a `Footprint` to its output.
"""

from __future__ import annotations

import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from benchmarks.library import Question
from benchmarks.report import Metric

_BYTES: Final = {"float32": 4, "bfloat16": 2, "float16": 2}
_ROUNDS: Final = 3

RESIDENT: Final = 1.3
START_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class Task:
    """What to load and to ask."""

    who: Literal["ours", "library"]
    folder: str
    dtype: str
    threads: int
    asked: Question


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a process took.

    Attributes:
        texts_per_second: The median of a few rounds.
        start_seconds: From the modules' import to the loaded model.
        peak_bytes: The most that was resident at any time, loading included.
        modules_bytes: Resident before the model was loaded.
        loaded_bytes: Resident after.
        weights_bytes: Of the weights in their dtype.
    """

    texts_per_second: float
    start_seconds: float
    peak_bytes: int
    modules_bytes: int
    loaded_bytes: int
    weights_bytes: int


def measure(task: Task, processes: int = 1) -> list[Footprint]:
    """Run a task in fresh processes, all at the same time."""
    given = json.dumps(asdict(task) | {"asked": task.asked._asdict()})
    with ThreadPoolExecutor(processes) as pool:
        return list(pool.map(_footprint, [given] * processes))


def _footprint(given: str) -> Footprint:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory"],
        input=given,
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the process that measures memory failed:\n{done.stderr[-2000:]}")
    return Footprint(**json.loads(done.stdout.splitlines()[-1]))


def divide(folder: Path, dtype: str, threads: int, asked: Question) -> tuple[list[Metric], dict[str, Any]]:
    """Measure one process with all threads against as many processes of one thread each.

    Returns:
        The metric, and the processes' footprints.
    """
    one = measure(Task("ours", str(folder), dtype, threads, asked))
    many = measure(Task("ours", str(folder), dtype, 1, asked), threads)
    speeds = [sum(found.texts_per_second for found in taken) for taken in (one, many)]
    memory = [sum(found.peak_bytes for found in taken) / 2**30 for taken in (one, many)]
    metric = Metric(
        "processes_vs_threads",
        speeds[1] / speeds[0],
        "times as fast",
        note=f"{threads} processes of 1 thread by 1 of {threads}, {dtype}; {memory[1]:.1f} GiB by {memory[0]:.1f} GiB",
    )
    return [metric], {"threads": [asdict(found) for found in one], "processes": [asdict(found) for found in many]}


def compare(
    folder: Path, dtypes: Sequence[str], threads: int, asked: Question, prefix: str, *, goals: bool
) -> tuple[list[Metric], dict[str, Any]]:
    """Measure ours and the library's sequential way in each dtype, the last of which is the fastest for ours.

    Returns:
        The metrics, and each process's footprint.
    """
    taken = {
        (who, dtype): measure(Task(who, str(folder), dtype, threads, asked))[0]
        for who in ("ours", "library")
        for dtype in dtypes
    }
    per_gib = {key: found.texts_per_second / (found.peak_bytes / 2**30) for key, found in taken.items()}
    theirs = max(value for (who, _), value in per_gib.items() if who == "library")
    held = [(f.loaded_bytes - f.modules_bytes) / f.weights_bytes for (who, _), f in taken.items() if who == "ours"]
    metrics = [
        Metric(
            f"{prefix}texts_per_second_per_gib",
            per_gib["ours", dtypes[-1]],
            "texts/s/GiB",
            note=f"{dtypes[-1]}, of the peak, loading included; the library's best {theirs:.2f}",
        ),
        Metric(
            f"{prefix}resident_over_weights",
            max(held),
            "times the weights",
            most=RESIDENT if goals else None,
            note="after loading, without the modules; the worst dtype",
        ),
        Metric(f"{prefix}start_seconds", taken["ours", dtypes[-1]].start_seconds, "s", most=START_S if goals else None),
    ]
    return metrics, {f"{who}, {dtype}": asdict(found) for (who, dtype), found in taken.items()}


def _run(task: Task) -> Footprint:
    import torch

    from benchmarks import library, subject
    from packing import loading, packed_forward  # noqa: F401, their own size isn't the model's
    from packing.engine import Engine

    torch.set_num_threads(task.threads)
    modules, start = _resident(), time.perf_counter()
    model: Any
    answer: Any
    if task.who == "ours":
        model = Engine.load(task.folder, device="cpu", dtype=task.dtype)
        answer = subject.extract
    else:
        model = library.load(Path(task.folder), getattr(torch, task.dtype))
        answer = library.sequential
    started, loaded = time.perf_counter() - start, _resident()
    answer(model, task.asked)
    seconds = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        answer(model, task.asked)
        seconds.append(time.perf_counter() - start)
    return Footprint(
        texts_per_second=len(task.asked.texts) / statistics.median(seconds),
        start_seconds=started,
        peak_bytes=_peak(),
        modules_bytes=modules,
        loaded_bytes=loaded,
        weights_bytes=_numbers(Path(task.folder)) * _BYTES[task.dtype],
    )


def _resident() -> int:
    """Return the bytes resident now; where only the peak is known, that."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * resource.getpagesize() if statm.exists() else _peak()


def _peak() -> int:
    """Return the most bytes that were resident."""
    status = Path("/proc/self/status")
    if status.exists():  # what `getrusage` says on Linux is the parent's where that had more when it started this
        return 1024 * next(int(line.split()[1]) for line in status.read_text().splitlines() if "VmHWM" in line)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _numbers(folder: Path) -> int:
    """Return how many numbers a model's weights are, each stored tensor once."""
    with (folder / "model.safetensors").open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")


def _main() -> None:
    given = json.loads(sys.stdin.read())
    asked = Question(**given.pop("asked"))
    sys.stdout.write(json.dumps(asdict(_run(Task(**given, asked=asked)))) + "\n")


if __name__ == "__main__":
    _main()

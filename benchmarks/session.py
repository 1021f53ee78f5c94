"""One run: what is asked of it, what it loaded and what it found."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, Final

import torch
from rich.console import Console

from benchmarks import library, models, subject
from benchmarks.report import Metric
from benchmarks.subject import Subject
from benchmarks.texts import read_pool
from packing import DEMO_MODEL, Engine
from packing.forward import Row
from packing.precision import bfloat16_instructions


@dataclass(frozen=True, slots=True)
class Half:
    """A subject's model once more, in bfloat16."""

    engine: Engine
    gliner: Any


class Session:
    """What is measured so far, and how much is asked of it.

    Attributes:
        quick: Whether there is but a minute.
        threads: The model's.
        rounds: How often ways are timed.
        texts: How many texts.
        source: Where they are from.
        pool: All that they are chosen from.
        metrics: Found so far.
        details: What else goes into the results file.
    """

    def __init__(self, quick: bool, threads: int, texts: int) -> None:
        self.quick = quick
        self.threads = threads
        self.rounds: Final = 2 if quick else 5
        self.texts = texts
        self.source, self.pool = read_pool()
        self.metrics: list[Metric] = []
        self.details: dict[str, Any] = {}
        self.console = Console(width=None if Console().is_terminal else 160)
        self._start = time.perf_counter()
        self._opened: dict[str, tuple[Subject, Half | None]] = {}

    def say(self, line: str) -> None:
        """Print what is going on, with the seconds since the start."""
        self.console.print(f"[dim]{time.perf_counter() - self._start:6.0f} s[/]  {line}", highlight=False)

    def keep(self, name: str, model: str, found: Any) -> None:
        """Put something about a model into the results file."""
        self.details.setdefault(name, {})[model] = found

    def open(self, name: str) -> tuple[Subject, Half | None]:
        """Load `small`, `base` or the `demo` model once, also in bfloat16 where processor and self-test allow it."""
        if name not in self._opened:
            self._opened[name] = self._load(name)
        return self._opened[name]

    def _load(self, name: str) -> tuple[Subject, Half | None]:
        self.say(f"{name}: loading")
        folder = DEMO_MODEL if name == "demo" else models.random_model(name, self.pool, models.cache_folder())
        opened = subject.open_subject(name, folder, self.pool, self.texts)
        half = None
        if bfloat16_instructions():
            engine = Engine.load(folder, device="cpu", dtype="bfloat16")
            if engine.info.dtype == "bfloat16":
                half = Half(engine, library.load(folder, torch.bfloat16))
            else:
                self.say(f"{name}: {'; '.join(engine.info.steps)}")
        about = asdict(_facts(opened, subject.rows(opened.engine, opened.asked.texts, opened.asked.labels)))
        about |= {"source": self.source, "half": _way(half.engine) if half else "no bfloat16"}
        self.keep("subjects", name, about)
        self.say(f"{name}: {', '.join(f'{key} {value}' for key, value in about.items())}")
        return opened, half


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a reader of the figures must know of the texts and the engine."""

    texts: int
    words: int
    tokens: int
    longest: int
    labels: int
    threshold: float
    engine: str


def _facts(opened: Subject, rows: list[Row]) -> _Facts:
    lengths = [len(row.prompt.ids) + len(row.ids) + len(opened.engine._tokenizer.suffix) for row in rows]
    return _Facts(
        texts=len(rows),
        words=sum(len(row.counts) for row in rows),
        tokens=sum(lengths),
        longest=max(lengths),
        labels=len(opened.asked.labels),
        threshold=opened.asked.threshold,
        engine=_way(opened.engine),
    )


def _way(engine: Engine) -> str:
    return f"{engine.info.backend} {engine.info.dtype}"

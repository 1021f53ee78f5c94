"""The steps in the life of a micro-batch at which a worker can be told to die or to freeze.

They are put around the worker's parts from outside; nothing in the worker knows of them. What to do is read from the
file that `STEP_ORDER` names, at every step: so a worker can be told long after it has started.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self

import confluent_kafka

import worker.batcher
import worker.consumer
import worker.publisher
import worker.sandbox

STEPS: Final = (
    "after_poll",
    "tokenised",
    "batch_closed",
    "mid_forward",
    "before_begin",
    "after_begin",
    "between_produces",
    "before_send_offsets",
    "after_send_offsets",
    "before_commit",
    "after_commit",
)
MID_TRIAL: Final = "mid_trial"
"""A step apart: while a suspect record runs alone in a child process."""
ORDER_FILE: Final = "STEP_ORDER"

How = Literal["SIGKILL", "SIGSTOP"]


@dataclass(frozen=True, slots=True)
class Order:
    """What to do at a step, when it is reached for the `times`-th time after the order was given."""

    how: How
    step: str
    times: int = 1

    def give(self, file: Path) -> None:
        """Write it, in one go."""
        draft = file.with_suffix(".draft")
        draft.write_text(f"{self.how} {self.step} {self.times}")
        draft.replace(file)

    @classmethod
    def read(cls, file: Path) -> Self | None:
        """Return what is written; None where there is nothing."""
        try:
            how, step, times = file.read_text().split()
        except FileNotFoundError:
            return None
        assert how in ("SIGKILL", "SIGSTOP")
        return cls(how, step, int(times))  # type: ignore[arg-type]


class Steps:
    """Counts the steps of this process and does what is ordered at one of them, once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._order: Order | None = None
        self._reached: Counter[str] = Counter()

    def reached(self, step: str) -> None:
        """Do what is ordered at this step, if its time has come."""
        with self._lock:
            order = Order.read(self._file)
            if order != self._order:
                self._order = order
                self._reached.clear()
            if order is None or step != order.step:
                return
            self._reached[step] += 1
            due = self._reached[step] == order.times
        if due:
            # To this thread: sent to the process, it could go on here while another thread takes the signal.
            signal.pthread_kill(threading.get_ident(), signal.Signals[order.how])

    def within(self, engine: Any) -> Any:
        """Return the engine, its forwards and its tokenising steps of this process."""
        return _SteppedEngine(engine, self)


def install() -> Steps | None:
    """Put the steps around the worker's parts; None in a child process, which isn't the one to die."""
    # Known before the main module is imported again, unlike its parent.
    if multiprocessing.current_process().name != "MainProcess":
        return None
    steps = Steps(Path(os.environ[ORDER_FILE]))

    class SteppedProducer(confluent_kafka.Producer):
        """Takes a step before and after each call of a transaction."""

        produced = 0

        def begin_transaction(self, *args: Any) -> None:
            steps.reached("before_begin")
            super().begin_transaction(*args)
            self.produced = 0
            steps.reached("after_begin")

        def produce(self, *args: Any, **message: Any) -> None:
            if self.produced:
                steps.reached("between_produces")
            super().produce(*args, **message)
            self.produced += 1

        def send_offsets_to_transaction(self, *args: Any) -> None:
            steps.reached("before_send_offsets")
            super().send_offsets_to_transaction(*args)
            steps.reached("after_send_offsets")

        def commit_transaction(self, *args: Any) -> None:
            steps.reached("before_commit")
            super().commit_transaction(*args)
            steps.reached("after_commit")

    worker.publisher.Producer = SteppedProducer  # type: ignore[attr-defined]
    _after(worker.batcher.MicroBatcher, "close", steps, "batch_closed")
    _after(worker.consumer.TextConsumer, "take", steps, "after_poll")
    _during(worker.sandbox.Sandbox, "run", steps, MID_TRIAL)
    return steps


class _SteppedEngine:
    def __init__(self, engine: Any, steps: Steps) -> None:
        self._engine = engine
        self._steps = steps

    def caches(self) -> Any:
        return self._engine.caches()

    def prepare(self, documents: Sequence[Any]) -> Any:
        prepared = self._engine.prepare(documents)
        self._steps.reached("tokenised")
        return prepared

    def infer(self, prepared: Sequence[Any]) -> Any:
        self._steps.reached("mid_forward")
        return self._engine.infer(prepared)


def _after(owner: type, name: str, steps: Steps, step: str) -> None:
    """Take a step after each call of a method that returned something."""
    method: Callable[..., Any] = getattr(owner, name)

    def stepped(self: Any, *args: Any, **named: Any) -> Any:
        if found := method(self, *args, **named):
            steps.reached(step)
        return found

    setattr(owner, name, stepped)


def _during(owner: type, name: str, steps: Steps, step: str) -> None:
    """Take a step half a forward after each call of a method began, while it runs."""
    method: Callable[..., Any] = getattr(owner, name)

    def stepped(self: Any, *args: Any) -> Any:
        timer = threading.Timer(float(os.environ.get("FORWARD_SECONDS", "0")) / 2, steps.reached, [step])
        timer.start()
        try:
            return method(self, *args)
        finally:
            timer.cancel()

    setattr(owner, name, stepped)

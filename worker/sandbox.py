"""The sandbox: a child process with a model of its own, in which a suspect record runs; its death costs no session."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import structlog

from worker import logging
from worker.config import Settings
from worker.forward import Answer, EngineError, answer_alone, check_engine
from worker.records import Record
from worker.tasks import Extractor

log = structlog.get_logger()

Load = Callable[[Settings], tuple[Extractor, Any]]

START_S = 600.0
"""How long the child may take to load its model."""
END_S = 5.0
TRIES = 3
"""Deaths of the child before it has run anything, after which it isn't tried again."""


class SandboxError(Exception):
    """No child process can be had; the message says why."""


@dataclass(frozen=True, slots=True)
class _Child:
    process: BaseProcess
    pipe: Connection


class Sandbox:
    """A child process, started when it is needed and again after its death.

    Args:
        settings: as this process got them.
        load: loads the engine, in the child; a function that can be imported.
    """

    def __init__(self, settings: Settings, load: Load) -> None:
        self._settings = settings
        self._load = load
        self._child: _Child | None = None

    def canary(self) -> None:
        """Make sure that a child runs in which a harmless text gets its answer.

        Raises:
            SandboxError: it can't be had.
        """
        for _ in range(TRIES):
            if self._child is None:
                self._child = self._start()
            said = self._ask(None, START_S)
            if said is not None:
                if isinstance(said, str):
                    self.close()
                    raise SandboxError(said)
                return
        raise SandboxError(f"it died {TRIES} times before it had run any record")

    def run(self, record: Record) -> Answer | None:
        """Return a record's answer; None where the child died or did not answer in time.

        Raises:
            EngineError: the model fails on a harmless text too.
        """
        assert self._child is not None
        said = self._ask(record, self._settings.trial_timeout_ms / 1000)
        if isinstance(said, str):
            self.close()
            raise EngineError(said)
        return said if isinstance(said, Answer) else None

    def close(self) -> None:
        """End the child, if there is one."""
        if self._child is None:
            return
        child, self._child = self._child, None
        child.process.kill()
        child.process.join(END_S)
        child.pipe.close()

    def _start(self) -> _Child:
        here, there = multiprocessing.Pipe()
        # Spawned, not forked: a fork would inherit the Kafka clients' locks without their threads.
        context = multiprocessing.get_context("spawn")
        values = self._settings.model_dump()
        process = context.Process(target=_serve, args=(there, values, self._load), daemon=True)
        process.start()
        there.close()
        log.info("sandbox_started", pid=process.pid)
        return _Child(process, here)

    def _ask(self, record: Record | None, timeout_s: float) -> Any:
        """Return what the child says; None, and no child any more, where it died or said nothing in time."""
        assert self._child is not None
        child = self._child
        try:
            child.pipe.send(record)
            if wait([child.pipe, child.process.sentinel], timeout_s) and child.pipe.poll():
                return child.pipe.recv()
        except (EOFError, OSError):
            pass
        self.close()
        log.warning("sandbox_died", pid=child.process.pid, exit_code=child.process.exitcode)
        return None


def _serve(pipe: Connection, values: dict[str, Any], load: Load) -> None:
    """Answer records until the pipe ends. A string is why nothing can be answered; True, that a canary lives."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    settings = Settings(**values)
    logging.configure(settings.log_format, settings.log_level)
    try:
        engine, _ = load(settings)
    except Exception as error:
        engine = None
        failure = f"the model can't be loaded a second time: {type(error).__name__}: {error}"
    while True:
        try:
            record = pipe.recv()
        except EOFError:
            return
        if engine is None:
            pipe.send(failure)
            continue
        try:
            if record is None:
                check_engine(engine)
                pipe.send(True)
            else:
                pipe.send(answer_alone(engine, record, settings))
        except EngineError as error:
            pipe.send(str(error))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)

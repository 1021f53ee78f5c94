"""Worker processes: started, watched through their log, stopped, killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

FAST_WORKER = (sys.executable, "-m", "tests.end_to_end.fast_worker", "run")
REAL_WORKER = (sys.executable, "-m", "worker", "run")
ROOT = Path(__file__).parents[2]


class WorkerProcess:
    """A worker in a process of its own; what it logs is JSON lines in a file."""

    def __init__(self, log: Path, environment: dict[str, str], command: Sequence[str] = FAST_WORKER) -> None:
        self.log = log
        with log.open("wb") as stream:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=os.environ | {"GLISTREAM_LOG_FORMAT": "json", "GLISTREAM_LOG_LEVEL": "debug"} | environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
            )

    def lines(self, event: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield what was logged so far, of one event or all."""
        for line in self.log.read_text().splitlines():
            try:
                said = json.loads(line)
            except ValueError:
                continue
            if event is None or said.get("event") == event:
                yield said

    def wait_for(self, event: str, *, times: int = 1, timeout_s: float = 60) -> None:
        """Return once the event was logged so often."""
        wait_until(
            lambda: sum(1 for _ in self.lines(event)) >= times or self._process.poll() is not None,
            timeout_s,
            lambda: f"{event} x {times}; the log ends with:\n{self.tail()}",
        )
        assert sum(1 for _ in self.lines(event)) >= times, f"ended without {event}:\n{self.tail()}"

    def stop(self, timeout_s: float = 60) -> int:
        """Send SIGTERM; returns the exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout_s)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()
        self._process.wait()

    def send(self, number: signal.Signals) -> None:
        """Send any signal."""
        self._process.send_signal(number)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    def tail(self, lines: int = 20) -> str:
        return "\n".join(self.log.read_text().splitlines()[-lines:])


def wait_until(reached: Callable[[], bool], timeout_s: float, what: Callable[[], str]) -> None:
    """Return once `reached`, looking again and again.

    Raises:
        TimeoutError: it was not, in time; `what` says what was waited for.
    """
    deadline = time.monotonic() + timeout_s
    while not reached():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {timeout_s} s still waiting for {what()}")
        time.sleep(0.05)

"""Workers that are kept alive: whoever dies is replaced, and it is known what everyone died of."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence

from tests.end_to_end.conftest import Stream
from tests.end_to_end.workers import FAST_WORKER, WorkerProcess, wait_until


class Fleet:
    """So many workers of a stream, all alike but for their names.

    Args:
        stream: what they work on.
        size: how many.
        settings: theirs; an `instance_id` gets the number of the worker's place at its end.
        command: the workers'.
    """

    def __init__(
        self, stream: Stream, size: int, settings: Mapping[str, object], command: Sequence[str] = FAST_WORKER
    ) -> None:
        self._stream = stream
        self._settings = settings
        self._command = command
        self.deaths: list[int] = []
        self.workers = [self._start(place) for place in range(size)]

    def tend(self) -> None:
        """Replace whoever has died."""
        for place, worker in enumerate(self.workers):
            if (code := worker.returncode) is not None:
                self.deaths.append(code)
                self.workers[place] = self._start(place)

    def kill(self, place: int) -> None:
        """Send SIGKILL to the worker at a place, and replace it."""
        self.workers[place].kill()
        self.tend()

    def join(self) -> None:
        """Have one more."""
        self.workers.append(self._start(len(self.workers)))

    def leave(self, place: int) -> int:
        """Have one less, by SIGTERM; returns its exit code."""
        worker = self.workers.pop(place)
        worker.wait_for("worker_started")  # before, the signal would end the interpreter that starts
        return worker.stop()

    def stop(self) -> list[int]:
        """Send SIGTERM to all; returns their exit codes."""
        for worker in self.workers:
            worker.wait_for("worker_started")
            worker.send(signal.SIGTERM)
        wait_until(lambda: not any(worker.running for worker in self.workers), 60, self._logs)
        return [worker.returncode or 0 for worker in self.workers]

    def _start(self, place: int) -> WorkerProcess:
        settings = dict(self._settings)
        if name := settings.get("instance_id"):
            settings["instance_id"] = f"{name}-{place}"
        return self._stream.start(settings, self._command)

    def _logs(self) -> str:
        return "\n".join(worker.tail() for worker in self.workers)

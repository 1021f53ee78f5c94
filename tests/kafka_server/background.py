"""Keep one broker running behind the terminal: what `make kafka` starts and `make kafka-stop` ends."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from tests.kafka_server.jars import HOME, KafkaUnavailableError
from tests.kafka_server.server import STOP_S, KafkaServer


@dataclass(frozen=True)
class Running:
    """A broker that runs in the background."""

    pid: int
    bootstrap: str


def status(home: Path = HOME) -> Running | None:
    """Return the broker that runs, if one does."""
    with _open_lock(home) as lock:
        return None if _take(lock) else _read(lock)


def start(port: int, home: Path = HOME) -> Running:
    """Start the broker on its kept data, or return the one that runs already.

    Raises:
        KafkaUnavailableError: it can't start, or it runs already on another port.
    """
    with _open_lock(home) as lock:
        if not _take(lock):
            running = _read(lock)
            if not running.bootstrap.endswith(f":{port}"):
                raise KafkaUnavailableError(
                    f"Kafka runs already on {running.bootstrap}; `make kafka-stop` ends it first."
                )
            return running
        lock.truncate(0)  # what it says of an earlier broker is over
        server = KafkaServer(home / "broker", port=port, outlives_starter=True)
        server.start(holding=lock)
        assert server.pid is not None
        running = Running(server.pid, server.bootstrap)
        lock.write(json.dumps(asdict(running)))
        lock.flush()
        return running


def stop(home: Path = HOME) -> Running | None:
    """End the broker, orderly if it manages to; return what ran, or None."""
    with _open_lock(home) as lock:
        if _take(lock):
            return None
        running = _read(lock)
        for how in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(running.pid, how)
            except ProcessLookupError:
                break
            if _wait_for(lock, STOP_S):
                break
        return running


# The broker inherits the locked file, so the lock says exactly whether it lives: a process id in a file could be
# an old one, or another process's by now. It is read only while the lock is held.


def _open_lock(home: Path) -> IO[str]:
    home.mkdir(parents=True, exist_ok=True)
    return (home / "broker.json").open("a+")


def _take(lock: IO[str]) -> bool:
    """Try to lock the file; False while a broker, or a start of one, holds it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait_for(lock: IO[str], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not (taken := _take(lock)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return taken


def _read(lock: IO[str]) -> Running:
    lock.seek(0)
    try:
        return Running(**json.loads(lock.read()))
    except ValueError:
        raise KafkaUnavailableError("another process is starting Kafka at this moment; try again.") from None

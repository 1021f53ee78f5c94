"""Several workers on one machine: a parent that starts them, passes on what it is told, and ends with them.

Parent and child share a pipe, the child's standard input. A byte in it is a signal that the parent was sent; its end
is the parent's, however that came about. Unlike a signal it neither gets lost while a child still starts nor comes
twice where a terminal or a service manager signals the children too.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType

import structlog

from worker.config import Settings
from worker.cores import threads_each

log = structlog.get_logger()

NUMBER = "_GLISTREAM_PROCESS"
"""Environment variable that tells a child that it is one, and which."""

LOOK_S = 0.1


def run_processes(settings: Settings, command: Sequence[str] = ()) -> int:
    """Run `processes` workers of one group until SIGTERM or SIGINT; a second one makes them leave at once.

    If one ends by itself in a failure the others are told to stop. Each child is this very command with flags added.

    Args:
        settings: as this process got them.
        command: what to run instead of this process's own command.

    Returns:
        the exit code: that of the first child that failed, 128 and the signal's number if one was killed, else 0.
    """
    signals: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        signals.append(number)

    signal.signal(signal.SIGTERM, note)
    signal.signal(signal.SIGINT, note)
    whole = list(command) or [sys.executable, *sys.orig_argv[1:]]
    children: list[_Child] = []
    try:
        children.extend(_Child(number, [*whole, *_flags(settings, number)]) for number in _numbers(settings))
        log.info("processes_started", processes=settings.processes, pids=[child.process.pid for child in children])
        return _follow(children, signals, patience_s=2 * (settings.drain_ms + settings.transaction_timeout_ms) / 1000)
    finally:
        for child in children:
            child.end()


def child_number() -> int | None:
    """Return this process's number if it is a child of `run_processes`, else None."""
    number = os.environ.get(NUMBER, "")
    return int(number) if number.isdigit() else None


def stop_with_parent() -> threading.Event:
    """Return an event that is set when this child is to stop; being told again by the parent ends it on the spot.

    It is to stop when the parent says so or has gone, or on a SIGTERM or SIGINT of its own.
    """
    stop = threading.Event()

    def on_signal(_: int, __: FrameType | None) -> None:
        stop.set()

    def listen() -> None:
        told = False
        while heard := os.read(sys.stdin.fileno(), 1):
            if told:
                os._exit(128 + heard[0])
            told = True
            stop.set()
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    threading.Thread(target=listen, name="parent", daemon=True).start()
    return stop


class _Child:
    def __init__(self, number: int, command: Sequence[str]) -> None:
        self.number = number
        self._told = 0
        # A group of its own: what a terminal sends comes through the parent alone.
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, bufsize=0, env=os.environ | {NUMBER: str(number)}, process_group=0
        )

    def tell(self, signals: Sequence[int]) -> None:
        """Pass on the signals that it has not heard of."""
        for heard in signals[self._told :]:
            self._told += 1
            try:
                assert self.process.stdin is not None
                self.process.stdin.write(bytes((heard,)))
            except BrokenPipeError:
                return  # it has ended

    def end(self) -> None:
        """End it on the spot if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()


def _follow(children: Sequence[_Child], signals: list[int], *, patience_s: float) -> int:
    """Wait for all children to end, telling them what there is to tell; returns the exit code."""
    code = 0
    running = list(children)
    give_up = float("inf")
    while running:
        time.sleep(LOOK_S)
        for child in [child for child in running if child.process.poll() is not None]:
            running.remove(child)
            ended = child.process.returncode
            ended = 128 - ended if ended < 0 else ended
            code = code or ended
            if not signals:
                say = log.error if ended else log.warning
                others = f"; the other {len(running)} are told to stop" if ended else "; the others go on"
                reason = f"process {child.number} ended by itself with exit code {ended}{others}"
                say("process_ended", process=child.number, pid=child.process.pid, exit_code=ended, reason=reason)
        if code and not signals:
            signals.append(signal.SIGTERM)
        for child in running:
            child.tell(signals)
        if signals:
            give_up = min(give_up, time.monotonic() + patience_s)
        if time.monotonic() >= give_up:
            log.error("processes_hang", after_s=patience_s, processes=[child.number for child in running])
            return code or 1
    return code


def _numbers(settings: Settings) -> range:
    return range(1, settings.processes + 1)


def _flags(settings: Settings, number: int) -> list[str]:
    """Return the flags that make the command a child's; the last of a flag's values counts."""
    flags = ["--processes", "1", "--threads", str(threads_each(settings.threads, settings.processes))]
    return [*flags, "--instance-id", f"{settings.instance_id}-{number}"] if settings.instance_id else flags

"""Workers as child processes, each a small program that stands for one."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.workers import wait_until
from worker import cores
from worker.config import Settings, load

PROGRAM = """
import os, sys, time
from pathlib import Path
from worker import cli, logging, processes, run

def work(settings):
    folder = Path(os.environ["NOTES"])
    number = processes.child_number()
    note = folder / f"{number}.started"
    stop = processes.stop_with_parent()
    note.write_text(f"{os.getpid()} {settings.processes} {settings.threads} {settings.instance_id}")
    fails = os.environ.get("FAILS", "")
    if fails == str(number):
        time.sleep(0.5)
        raise SystemExit(5)
    stop.wait()
    (folder / f"{number}.stopping").touch()
    time.sleep(float(os.environ.get("DRAIN_S", "0")))
    (folder / f"{number}.done").touch()

run.run_worker = work
sys.argv[0] = "glistream"
cli.main()
"""


class Parent:
    def __init__(self, folder: Path, *flags: str, count: int = 2, **environment: str) -> None:
        self.folder = folder
        self.count = count
        self.log = folder / "log"
        with self.log.open("wb") as log:
            command = (sys.executable, "-c", PROGRAM, "run", "--log-format", "json", "--processes", str(count), *flags)
            self.process = subprocess.Popen(command, env=os.environ | {"NOTES": str(folder)} | environment, stderr=log)
        self.wait_for("started")

    def wait_for(self, what: str) -> None:
        wait_until(lambda: len(self.notes(what)) == self.count, 60, lambda: f"{what}:\n{self.log.read_text()}")

    def notes(self, what: str) -> list[Path]:
        return [path for path in self.folder.glob(f"*.{what}") if path.read_text() or what != "started"]

    def started(self, number: int) -> list[str]:
        return (self.folder / f"{number}.started").read_text().split()

    def pid(self, number: int) -> int:
        return int(self.started(number)[0])

    def lines(self, event: str) -> list[dict[str, object]]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in lines if line["event"] == event]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_every_process_in_order(tmp_path: Path, number: signal.Signals) -> None:
    parent = Parent(tmp_path, DRAIN_S="0.3")
    parent.process.send_signal(number)
    assert parent.process.wait(30) == 0
    assert len(parent.notes("done")) == 2
    assert parent.lines("process_ended") == []


def test_a_second_signal_leaves_at_once(tmp_path: Path) -> None:
    parent = Parent(tmp_path, DRAIN_S="600")
    parent.process.terminate()
    parent.wait_for("stopping")
    parent.process.terminate()
    assert parent.process.wait(30) == 128 + 15
    assert not any(alive(parent.pid(number)) for number in (1, 2))


def test_what_a_service_manager_sends_to_parent_and_children_alike_counts_once(tmp_path: Path) -> None:
    parent = Parent(tmp_path, DRAIN_S="0.5")
    for number in (1, 2):
        os.kill(parent.pid(number), signal.SIGTERM)
    parent.process.terminate()
    assert parent.process.wait(30) == 0
    assert len(parent.notes("done")) == 2


def test_a_process_that_fails_ends_the_others_and_gives_its_exit_code(tmp_path: Path) -> None:
    parent = Parent(tmp_path, count=3, FAILS="2")
    assert parent.process.wait(30) == 5
    assert sorted(path.name for path in parent.notes("done")) == ["1.done", "3.done"]
    (line,) = parent.lines("process_ended")
    assert (line["process"], line["exit_code"], line["level"]) == (2, 5, "error")


def test_a_process_that_is_killed_ends_the_others(tmp_path: Path) -> None:
    parent = Parent(tmp_path)
    os.kill(parent.pid(1), signal.SIGKILL)
    assert parent.process.wait(30) == 128 + 9
    assert [path.name for path in parent.notes("done")] == ["2.done"]


def test_children_stop_in_order_when_their_parent_is_killed(tmp_path: Path) -> None:
    parent = Parent(tmp_path)
    parent.process.kill()
    parent.process.wait()
    parent.wait_for("done")
    wait_until(lambda: not any(alive(parent.pid(number)) for number in (1, 2)), 10, lambda: "their end")


def test_each_process_has_its_share_of_the_cores_and_an_instance_id_of_its_own(tmp_path: Path) -> None:
    parent = Parent(tmp_path, "--instance-id", "pod-0")
    share = str(max(1, cores.usable_cores() // 2))
    assert [parent.started(number)[1:] for number in (1, 2)] == [["1", share, "pod-0-1"], ["1", share, "pod-0-2"]]
    parent.process.terminate()
    assert parent.process.wait(30) == 0


def test_threads_that_are_set_are_each_processes(tmp_path: Path) -> None:
    parent = Parent(tmp_path, GLISTREAM_THREADS="3")
    assert [parent.started(number)[2:] for number in (1, 2)] == [["3", "None"], ["3", "None"]]
    parent.process.kill()


def test_the_settings_stand_for_one_process_with_every_core() -> None:
    settings: Settings = load()
    assert (settings.processes, settings.threads) == (1, 0)
    assert cores.threads_each(settings.threads, settings.processes) == cores.usable_cores()

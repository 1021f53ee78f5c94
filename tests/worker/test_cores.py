import os
import subprocess
import sys
from pathlib import Path

import pytest

from worker import cores


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that stands for the system's control groups; this process may run on eight cores."""
    monkeypatch.setattr(cores, "CGROUPS", tmp_path / "groups")
    monkeypatch.setattr(cores, "OWN_CGROUPS", tmp_path / "own")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    (tmp_path / "groups").mkdir()
    return tmp_path


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text + "\n")


def test_without_a_quota_it_is_the_cores_that_may_be_used(groups: Path) -> None:
    assert cores.usable_cores() == 8
    (groups / "own").write_text("0::/\n")
    write(groups / "groups", cpu__max="max 100000")
    assert cores.usable_cores() == 8


@pytest.mark.parametrize(("quota", "expected"), [("300000", 3), ("250000", 2), ("50000", 1), ("1600000", 8)])
def test_a_containers_quota_counts_in_whole_cores(groups: Path, quota: str, expected: int) -> None:
    (groups / "own").write_text("0::/a/b\n")
    write(groups / "groups" / "a", cpu__max=f"{quota} 100000")
    write(groups / "groups" / "a" / "b", cpu__max="max 100000")
    assert cores.usable_cores() == expected


def test_a_path_that_is_the_hosts_leaves_the_containers_own_group(groups: Path) -> None:
    (groups / "own").write_text("0::/docker/4711\n")
    write(groups / "groups", cpu__max="200000 100000")
    assert cores.usable_cores() == 2


def test_the_first_version_of_control_groups_counts_too(groups: Path) -> None:
    (groups / "own").write_text("4:cpu,cpuacct:/job\n3:memory:/job\n")
    write(groups / "groups" / "cpu" / "job", cpu__cfs_quota_us="400000", cpu__cfs_period_us="100000")
    assert cores.usable_cores() == 4
    write(groups / "groups" / "cpu" / "job", cpu__cfs_quota_us="-1")
    assert cores.usable_cores() == 8


def test_cores_are_shared_out_among_processes_and_each_has_one(groups: Path) -> None:
    assert [cores.threads_each(0, processes) for processes in (1, 2, 3, 20)] == [8, 4, 2, 1]
    assert cores.threads_each(5, 4) == 5


def test_the_forwards_own_thread_takes_as_many_threads_as_are_set() -> None:
    code = """
import threading
from worker.cores import use_threads
use_threads(3)
import torch
threading.Thread(target=lambda: print(torch.get_num_threads())).start()
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "3\n"

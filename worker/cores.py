"""How many cores this process may use, and the threads of the forward on them."""

import os
from collections.abc import Callable
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")


def usable_cores() -> int:
    """Return how many cores this process may keep busy: those it may run on, or fewer by its container's quota."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux has it
        allowed = os.cpu_count() or 1
    return max(1, min([allowed, *(int(quota) for quota in _quotas())]))


def threads_each(threads: int, processes: int) -> int:
    """Return the threads of each process, where `threads` 0 shares out the cores."""
    return threads or max(1, usable_cores() // processes)


def use_threads(threads: int) -> None:
    """Let the forward and the tokenizer take so many threads. To be called before a model is loaded."""
    import torch  # here, for it takes seconds to import

    os.environ["RAYON_NUM_THREADS"] = str(threads)  # the tokenizer's, read when it first needs one
    torch.set_num_threads(threads)


def _quotas() -> list[float]:
    """Return the cores that each control group around this process allows; Linux only."""
    try:
        lines = OWN_CGROUPS.read_text().splitlines()
    except OSError:
        return []
    quotas = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            quotas += _up_from(CGROUPS, path, _quota_of_version_2)
        elif "cpu" in controllers.split(","):
            quotas += _up_from(CGROUPS / "cpu", path, _quota_of_version_1)
    return quotas


def _up_from(root: Path, path: str, quota: Callable[[Path], float | None]) -> list[float]:
    # In a container the path may be the host's, which isn't there: then the root is the container's own group.
    folder = root / path.strip("/")
    folders = [folder, *(parent for parent in folder.parents if parent.is_relative_to(root))]
    return [found for one in folders if (found := quota(one)) is not None]


def _quota_of_version_2(folder: Path) -> float | None:
    try:
        quota, period = (folder / "cpu.max").read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else int(quota) / int(period)


def _quota_of_version_1(folder: Path) -> float | None:
    try:
        quota, period = (int((folder / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
    except (OSError, ValueError):
        return None
    return None if quota < 0 else quota / period

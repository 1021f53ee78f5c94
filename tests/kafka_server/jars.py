"""Fetch Apache Kafka's own jars through Maven, once."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

HOME: Final = Path(__file__).resolve().parents[2] / ".kafka"
"""Everything that is fetched or written here; git ignores it."""

POM: Final = Path(__file__).with_name("pom.xml")
FILES_A_LINE: Final = 25  # how often a fetch that no terminal watches says how far it is


class KafkaUnavailableError(RuntimeError):
    """Say why there is no Kafka to run and what to do about it."""


def version() -> str:
    """Return the one version of Apache Kafka that is fetched, as the pom has it."""
    found = ElementTree.parse(POM).getroot().findtext("{*}properties/{*}kafka.version")
    assert found is not None, f"{POM} has no kafka.version"
    return found


def require(tool: str, package: str) -> str:
    """Return the path of a command.

    Raises:
        KafkaUnavailableError: it isn't installed; names the package that has it.
    """
    path = shutil.which(tool)
    if path is None:
        raise KafkaUnavailableError(
            f"Apache Kafka needs `{tool}`, which isn't installed. Install {package}"
            " (Debian and Ubuntu: apt-get install openjdk-17-jre-headless maven)."
        )
    return path


def to_stderr(line: str) -> None:
    """Write one line where progress is shown."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def fetch(say: Callable[[str], None] = to_stderr) -> Path:
    """Return the folder of the jars, after fetching them where this pom's are not there yet.

    Safe to call from several processes at once: one fetches, the others wait for it.

    Raises:
        KafkaUnavailableError: Java or Maven is missing, or Maven failed; the message holds its errors.
    """
    require("java", "a Java runtime, version 17 or later")
    libs, stamp = HOME / "libs", HOME / "libs" / POM.name
    with _alone():
        if stamp.is_file() and stamp.read_bytes() == POM.read_bytes():
            return libs
        maven = require("mvn", "Maven, 3.8 or later")
        fresh = HOME / "libs.part"
        shutil.rmtree(fresh, ignore_errors=True)
        say(f"fetching Apache Kafka {version()} with Maven (about 45 MB, once) ...")
        files = _copy_dependencies(maven, fresh, say)
        shutil.rmtree(libs, ignore_errors=True)
        shutil.copy(POM, fresh)  # the stamp: a changed pom fetches again
        fresh.rename(libs)
        say(f"fetched Apache Kafka {version()}: {files} files downloaded, the rest came from Maven's cache")
    return libs


def _copy_dependencies(maven: str, into: Path, say: Callable[[str], None]) -> int:
    """Run Maven and return how many files it downloaded; a line now and then tells how far it is."""
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={into}"]
    command = [maven, "--batch-mode", "--file", str(POM), *goal]
    errors: list[str] = []
    files = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if line.startswith("[ERROR]"):
                errors.append(line.removeprefix("[ERROR]").strip())
            elif "Downloaded from" in line:
                files += 1
                if files % FILES_A_LINE == 0:
                    say(f"  {files} files ...")
    if run.returncode != 0:
        detail = "\n  ".join(line for line in errors[:6] if line) or "it printed no error"
        raise KafkaUnavailableError(
            f"Maven could not fetch Apache Kafka {version()} (exit {run.returncode}):\n  {detail}\n"
            "Check that Maven reaches its repository, then run `make kafka` again."
        )
    return files


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the fetch to one process at a time."""
    HOME.mkdir(exist_ok=True)
    with (HOME / "fetch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

"""What tests need that not every machine has: in CI it must be there; elsewhere they are skipped, and that is said."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NoReturn

import pytest


@dataclass(frozen=True)
class Need:
    """Something that some tests need.

    Attributes:
        name: What it is.
        advice: How to come by it, for the last lines of a run.
    """

    name: str
    advice: tuple[str, ...]

    def missing(self, why: str) -> NoReturn:
        """Skip the test, in CI fail it."""
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail(f"needs {self.name}, and CI must have it: {why}", pytrace=False)
        pytest.skip(f"needs {self.name}: {why}")


ELSEWHERE = "GLISTREAM_TEST_KAFKA"

KAFKA = Need(
    "Apache Kafka",
    (
        "To run them install a Java runtime (17 or later) and Maven, and run the tests again;",
        f"or name a broker that runs already: {ELSEWHERE}=host:port make test",
    ),
)
ATHERIS = Need("atheris", ("It is a fuzzer, which has wheels for Linux on x86-64 with Python 3.11 to 3.13 alone.",))


def tell(reporter: pytest.TerminalReporter) -> None:
    """Print how many tests were skipped for each need."""
    for need in (KAFKA, ATHERIS):
        skipped = [one for one in reporter.stats.get("skipped", []) if f"needs {need.name}" in str(one.longrepr)]
        if skipped:
            reporter.section("LEFT OUT", sep="!", red=True, bold=True)
            reporter.line(f"{len(skipped)} tests were left out: they need {need.name}.")
            for line in need.advice:
                reporter.line(line)

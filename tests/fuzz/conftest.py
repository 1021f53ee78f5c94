"""Give tests the fuzzer's engine, and say at the end what was left out without it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Generator

import pytest

LEFT_OUT = "needs atheris"


@pytest.fixture(scope="session")
def atheris() -> None:
    """Make sure that atheris is there; where it can't be had the test is skipped, in CI it fails."""
    if importlib.util.find_spec("atheris"):
        return
    missing = f"{LEFT_OUT}, which has wheels for Linux on x86-64 with Python 3.11 to 3.13"
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        pytest.fail(f"{missing}, and CI must have it", pytrace=False)
    pytest.skip(missing)


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
    yield
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if LEFT_OUT in str(report.longrepr)]
    if skipped:
        terminalreporter.section("LEFT OUT", sep="!", red=True, bold=True)
        terminalreporter.line(f"{len(skipped)} tests were left out: they need atheris, a fuzzer, which has wheels for")
        terminalreporter.line("Linux on x86-64 with Python 3.11 to 3.13 alone.")

"""Give tests the fuzzer's engine."""

from __future__ import annotations

import importlib.util

import pytest

from tests.left_out import ATHERIS


@pytest.fixture(scope="session")
def atheris() -> None:
    """Make sure that atheris is there; where it can't be had the test is skipped, in CI it fails."""
    if not importlib.util.find_spec("atheris"):
        ATHERIS.missing("no such module")

"""Where the corpora are, for tests that read them: other people's texts, which are no part of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

_DATA = Path(__file__).parents[2] / "shared" / "data"


def corpora() -> Path:
    """Return their folder, or skip the test."""
    if not _DATA.is_dir():
        pytest.skip("the corpora aren't here: they belong into ../shared/data beside the repository")
    return _DATA

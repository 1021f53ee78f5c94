"""The command `glistream` with a fast engine that imports no torch: `python -m tests.end_to_end.fast_worker run`.

`FORWARD_SECONDS` is how long each forward takes.
"""

import os
import sys
from typing import Any

import worker.run
from schemas.events import ModelInfo
from tests.worker.fake_engine import FakeEngine
from worker.cli import main
from worker.config import Settings


def load_fake_engine(_: Settings) -> tuple[Any, ModelInfo]:
    return FakeEngine(float(os.environ.get("FORWARD_SECONDS", "0"))), ModelInfo(name="fake", revision=None)


# Not under the guard below: the worker's own child process imports this module under another name.
worker.run.load_engine = load_fake_engine  # type: ignore[assignment]

if __name__ == "__main__":
    try:
        main()
    finally:
        assert "torch" not in sys.modules

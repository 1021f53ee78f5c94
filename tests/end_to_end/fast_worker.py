"""The real worker with a fast engine that imports no torch: `python -m tests.end_to_end.fast_worker`.

Settings come from `GLISTREAM_*`; `FORWARD_SECONDS` is how long each forward takes.
"""

import os
import sys

from schemas.events import ModelInfo
from tests.worker.fake_engine import FakeEngine
from worker import logging, topics
from worker.config import load
from worker.run import stop_on_signals, work


def main() -> None:
    stop = stop_on_signals()
    settings = load()
    logging.configure(settings.log_format, settings.log_level)
    found = topics.inspect(topics.reach(settings, stop), settings)
    engine = FakeEngine(float(os.environ.get("FORWARD_SECONDS", "0")))
    work(settings, engine, ModelInfo(name="fake", revision=None), found, stop)
    if "torch" in sys.modules:
        raise SystemExit("the fast worker imported torch")


if __name__ == "__main__":
    main()

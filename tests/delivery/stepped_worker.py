"""The fast worker, with steps at which it dies or freezes: `python -m tests.delivery.stepped_worker run`."""

from typing import Any

import worker.run
from schemas.events import ModelInfo
from tests.delivery.steps import install
from tests.end_to_end.fast_worker import load_fake_engine
from worker.cli import main
from worker.config import Settings

STEPS = install()


def load_stepped_engine(settings: Settings) -> tuple[Any, ModelInfo]:
    engine, model = load_fake_engine(settings)
    return engine if STEPS is None else STEPS.within(engine), model


worker.run.load_engine = load_stepped_engine

if __name__ == "__main__":
    main()

"""A worker that can be told to die or to freeze at a step."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping
from typing import Final

from tests.delivery.steps import ORDER_FILE, How, Order
from tests.end_to_end.conftest import Stream

STEPPED_WORKER: Final = (sys.executable, "-m", "tests.delivery.stepped_worker", "run")


class Stepped:
    """A worker that can be told to die or to freeze at a step."""

    def __init__(self, stream: Stream, settings: Mapping[str, object], order: Order | None = None) -> None:
        self._file = stream.folder / f"order-{uuid.uuid4().hex[:8]}"
        if order:
            order.give(self._file)
        self.process = stream.start({**settings, ORDER_FILE: self._file}, STEPPED_WORKER)

    def order(self, how: How, step: str, times: int = 1) -> None:
        """Tell it what to do at a step."""
        Order(how, step, times).give(self._file)

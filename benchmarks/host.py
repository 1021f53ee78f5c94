"""The work around the model: tokenise, plan, gather, decode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from torch import Tensor

from benchmarks.library import Answer, Question
from benchmarks.report import Metric
from benchmarks.rounds import Timed, interleave
from benchmarks.subject import extract
from packing import Engine

MS: Final = 0.4
SHARE: Final = 0.1


class _Recorded:
    """A forward's encoder and head that first note what the head gives, and then give it without computing it."""

    def __init__(self, forward: Any) -> None:
        self._forward, self._encoder, self._head = forward, forward.encoder, forward.head
        self._seen: list[tuple[Tensor, Any]] = []  # hidden states and the head's answer, by pack
        self._next = 0
        self.layout = forward.head.layout
        self.replaying = False
        forward.encoder, forward.head = self.encode, self

    def encode(self, *given: Any) -> Tensor:
        if self.replaying:
            return self._seen[self._next][0]
        states: Tensor = self._encoder(*given)
        return states

    def __call__(self, states: Tensor, *given: Any) -> Any:
        if not self.replaying:
            self._seen.append((states, self._head(states, *given)))
            return self._seen[-1][1]
        self._next = (self._next + 1) % len(self._seen)
        return self._seen[self._next - 1][1]

    def end(self) -> None:
        self._forward.encoder, self._forward.head = self._encoder, self._head


@contextmanager
def without_model(engine: Engine, asked: Question) -> Iterator[Callable[[], list[Answer]]]:
    """Give what answers as ours do, with the model's part replaced by what it gave in a run before.

    What is left is the host's: words and sub-tokens, prompts and windows, the plan and the packs, the positions that
    the head reads, decoding and the choice among overlapping entities.

    Args:
        engine: A packed one.
        asked: What it answers.
    """
    recorded = _Recorded(engine._forward)
    try:
        extract(engine, asked)
        recorded.replaying = True
        yield lambda: extract(engine, asked)
    finally:
        recorded.end()


def measure(engine: Engine, asked: Question, rounds: int) -> list[Metric]:
    """Return the host's time for a document, and its share of the whole.

    Args:
        engine: A packed one.
        asked: What it answers.
        rounds: How often; the whole is timed in blocks, before and after the host's part.
    """

    def whole() -> Timed[list[Answer]]:
        return interleave({"all": lambda: extract(engine, asked)}, rounds)

    before = whole()
    with without_model(engine, asked) as alone:
        host = interleave({"host": alone}, 4 * rounds)
    after = whole()
    assert host.given["host"] == after.given["all"], "the replayed answers are others"
    seconds = host.median("host")
    return [
        Metric("host_ms_per_document", 1000 * seconds / len(asked.texts), "ms", most=MS),
        Metric(
            "host_share",
            2 * seconds / (before.median("all") + after.median("all")),
            f"of extract() in {engine.info.dtype}",
            most=SHARE,
        ),
    ]

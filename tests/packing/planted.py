"""A forward whose answer is known: it finds one phrase."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from packing import Engine
from packing.forward import Row
from packing.overlap import Candidate


class Planted:
    """A forward that finds one phrase, wherever the model's sequence holds it, and nothing else."""

    def __init__(self, engine: Engine, phrase: str) -> None:
        self._words = [engine._tokenizer.encode([word])[0].tolist() for word in phrase.split()]

    def candidates(self, rows: Sequence[Row]) -> list[list[Candidate]]:
        return [list(self._find(row)) for row in rows]

    def label_counts(self) -> None:
        return None

    def _find(self, row: Row) -> list[Candidate]:
        words = [ids.tolist() for ids in np.split(row.ids, row.counts.cumsum()[:-1])]
        n = len(self._words)
        return [Candidate(i, i + n, 0, 0.9) for i in range(len(words) - n + 1) if words[i : i + n] == self._words]


def planted(engine: Engine, phrase: str) -> Engine:
    """Return an engine with the same model's tokenizer, labels, limits and windows, but a planted forward."""
    return engine.with_parts(forward=Planted(engine, phrase))

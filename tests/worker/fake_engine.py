"""An engine that needs no model: fast, deterministic, and broken on request."""

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from packing import BadScores, Document, Entity, Result

CAPITALISED = re.compile(r"[A-Z]\w*")
WINDOW = 4
"""Words."""


@dataclass(frozen=True, slots=True)
class FakePrepared:
    document: Document
    tokens: int
    windows: int


class FakeEngine:
    """Finds every capitalised word, as the first label asked, unless a text holds a word that breaks something.

    "UNPREPARED" makes `prepare` fail, "POISON" the forward; "NAN" makes scores that aren't numbers; "ABORT_PREPARE" and
    "ABORT" end the process, as a fault in native code would, in `prepare` and in the forward.

    Args:
        seconds: how long each forward takes.
        broken: every forward fails.
    """

    def __init__(self, seconds: float = 0.0, *, broken: bool = False) -> None:
        self.seconds = seconds
        self.broken = broken
        self.forwards: list[int] = []

    def caches(self) -> dict[str, tuple[int, int]]:
        return {"label_sets": (3, 1)}

    def prepare(self, documents: Sequence[Document]) -> list[FakePrepared]:
        if any("ABORT_PREPARE" in document.text for document in documents):
            os.abort()
        if any("UNPREPARED" in document.text for document in documents):
            raise ValueError("a label that the model can't read")
        words = [len(document.text.split()) for document in documents]
        return [FakePrepared(document, n, -(-n // WINDOW)) for document, n in zip(documents, words, strict=True)]

    def infer(self, prepared: Sequence[FakePrepared]) -> list[Result]:
        self.forwards.append(len(prepared))
        time.sleep(self.seconds)
        if self.broken or any("POISON" in one.document.text for one in prepared):
            raise RuntimeError("the forward failed")
        if any("ABORT" in one.document.text for one in prepared):
            os.abort()
        if bad := tuple(index for index, one in enumerate(prepared) if "NAN" in one.document.text):
            raise BadScores("the model gave scores that are NaN or infinite", bad)
        return [_result(one.document) for one in prepared]


def _result(document: Document) -> Result:
    labels = list(document.labels)
    if not labels:
        return Result((), 0, 0)
    found = CAPITALISED.finditer(document.text)
    entities = (Entity(match.start(), match.end(), match.group(), labels[0], 0.75) for match in found)
    return Result(tuple(entities), 1, 1)

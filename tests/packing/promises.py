"""What every answer keeps, whatever the text and the labels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from packing import Document, Overlap, Result


def assert_promises(document: Document, result: Result) -> None:
    """Hold an answer against its request: offsets, labels, thresholds, order and overlap."""
    asked = [label for label, _ in document.prompts()]
    for entity in result.entities:
        assert document.text[entity.start : entity.end] == entity.text
        assert entity.text.strip()
        assert entity.label in asked
        # scores are compared in single precision, as the library does
        assert np.float32(document.threshold_of(entity.label)) < np.float32(entity.score) <= 1
    keys = [(entity.start, -entity.end, entity.label) for entity in result.entities]
    assert keys == sorted(set(keys))
    assert not clash([(entity.start, entity.end) for entity in result.entities], document.overlap)
    assert (result.windows == 0) == (result.label_chunks == 0)
    assert result.windows or not result.entities


def clash(spans: Sequence[tuple[int, int]], overlap: Overlap) -> bool:
    """Tell whether spans, by start and then the longer first, share text in a way that is not allowed."""
    if overlap == "flat":
        return any(end > start for (_, end), (start, _) in pairwise(spans))
    if overlap == "nested" and len(set(spans)) < len(spans):
        return True
    around: list[int] = []
    for start, end in spans:
        while around and around[-1] <= start:
            around.pop()
        if around and around[-1] < end:
            return True
        around.append(end)
    return False

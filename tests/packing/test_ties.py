"""What counts as a tie, and what does not."""

from __future__ import annotations

import pytest

from packing import Document
from tests.packing.ties import Spans, differences

DOCUMENT = Document("Angela Merkel met Tim Cook", ["a", "b"], {"a": 0.5, "b": 0.2})


@pytest.mark.parametrize(
    ("ours", "theirs", "different"),
    [
        ({(0, 6, "a"): 0.9}, {(0, 6, "a"): 0.9}, []),
        ({(0, 6, "a"): 0.9}, {(0, 6, "a"): 0.8}, [(0, 6, "a")]),
        ({(0, 6, "a"): 0.9}, {}, [(0, 6, "a")]),
        ({(0, 6, "a"): 0.500001}, {}, []),
        ({(0, 6, "b"): 0.500001}, {}, [(0, 6, "b")]),
        ({(0, 6, "a"): 0.9}, {(0, 6, "b"): 0.9}, []),
        ({(0, 6, "a"): 0.9}, {(0, 6, "b"): 0.8}, [(0, 6, "a"), (0, 6, "b")]),
        ({(0, 6, "a"): 0.9}, {(7, 13, "b"): 0.9}, [(0, 6, "a"), (7, 13, "b")]),
        ({(0, 6, "a"): 0.9, (5, 9, "b"): 0.9}, {}, [(0, 6, "a"), (5, 9, "b")]),
        # which of two equals was taken decides on what shares text with only one of them
        ({(0, 6, "a"): 0.9, (8, 13, "a"): 0.7}, {(5, 9, "b"): 0.9}, []),
    ],
)
def test_only_a_rival_or_a_threshold_of_the_same_score_excuses(
    ours: Spans, theirs: Spans, different: list[tuple[int, int, str]]
) -> None:
    assert differences(DOCUMENT, ours, theirs) == different
    assert differences(DOCUMENT, theirs, ours) == different

from __future__ import annotations

import time

from gliner.decoding.decoder import Span, SpanDecoder
from hypothesis import given
from hypothesis import strategies as st

from packing import Overlap
from packing.overlap import Candidate, select
from tests.packing.texts import OVERLAPS


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    spans = draw(
        st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(0, 2)), unique=True, max_size=30)
    )
    # few distinct scores, so that ties are common
    scores = [draw(st.sampled_from([0.1, 0.5, 0.9])) for _ in spans]
    return [Candidate(s, s + w, c, score) for (s, w, c), score in zip(spans, scores, strict=True)]


@given(candidates(), st.sampled_from(list(OVERLAPS)))
def test_the_choice_is_the_librarys_greedy_search(found: list[Candidate], overlap: Overlap) -> None:
    spans = [Span(start=c.start, end=c.end - 1, entity_type=str(c.label), score=c.score) for c in found]
    expected = SpanDecoder(None).greedy_search(spans, **OVERLAPS[overlap])
    assert {(c.start, c.end - 1, str(c.label)) for c in select(found, overlap)} == {
        (s.start, s.end, s.entity_type) for s in expected
    }


def test_flat_takes_the_better_of_two_that_touch_the_same_word() -> None:
    worse, better = Candidate(0, 3, 0, 0.8), Candidate(2, 4, 1, 0.9)
    assert select([worse, better], "flat") == [better]
    assert select([worse, better], "nested") == [better]


def test_adjacent_spans_stand_side_by_side() -> None:
    both = [Candidate(0, 2, 0, 0.9), Candidate(2, 3, 0, 0.8)]
    assert select(both, "flat") == both


def test_nested_keeps_a_span_inside_another_but_one_label_each() -> None:
    outer, inner, again = Candidate(0, 4, 0, 0.9), Candidate(1, 2, 0, 0.8), Candidate(1, 2, 1, 0.7)
    assert select([outer, inner, again], "nested") == [outer, inner]
    assert select([outer, inner, again], "multi") == [outer, inner, again]
    assert select([outer, inner, again], "flat") == [outer]


def test_many_candidates_take_no_quadratic_time() -> None:
    spans = [(start, width, label) for start in range(5000) for width in (1, 5, 12) for label in (0, 1)]
    found = [Candidate(s, s + w, c, (s * 7 + w * 3 + c) % 101 / 101) for s, w, c in spans]
    before = time.process_time()
    taken = select(found, "flat")
    assert time.process_time() - before < 5
    assert len({w for c in taken for w in range(c.start, c.end)}) == sum(c.end - c.start for c in taken)

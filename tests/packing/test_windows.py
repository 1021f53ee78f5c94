from __future__ import annotations

import time
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packing.overlap import Candidate
from packing.windows import CONTEXT_WORDS, Window, merge, sentence_ends, split
from packing.words import Words


def bounds(counts: list[int]) -> list[int]:
    return [0, *accumulate(counts)]


@given(
    counts=st.lists(st.integers(1, 20), min_size=1, max_size=200),
    cuts=st.sets(st.integers(1, 200)),
    max_words=st.integers(4, 50),
    max_tokens=st.integers(40, 200),
)
def test_every_word_is_read_and_no_window_exceeds_the_model(
    counts: list[int], cuts: set[int], max_words: int, max_tokens: int
) -> None:
    totals = bounds(counts)
    windows = split(
        totals,
        sorted(cut for cut in cuts if cut <= len(counts)),
        max_words=max_words,
        max_tokens=max_tokens,
        overlap=max_words // 2,
    )
    assert windows[0].start == 0
    assert windows[-1].end == len(counts)
    for window in windows:
        assert 0 < window.end - window.start <= max_words
        assert totals[window.end] - totals[window.start] <= max_tokens
    for one, following in pairwise(windows):
        assert one.start < following.start <= one.end < following.end
        assert totals[one.end] - totals[following.start] <= max_tokens // 2


def test_a_text_that_fits_is_one_window() -> None:
    assert split(bounds([1] * 10), [5], max_words=10, max_tokens=10, overlap=3) == [Window(0, 10)]


def test_windows_share_the_overlap() -> None:
    assert split(bounds([1] * 25), range(1, 25), max_words=10, max_tokens=99, overlap=4) == [
        Window(0, 10),
        Window(6, 16),
        Window(12, 22),
        Window(18, 25),
    ]


def test_a_window_rather_ends_with_a_sentence_near_its_end() -> None:
    windows = split(bounds([1] * 30), [9, 15], max_words=16, max_tokens=99, overlap=4)
    assert windows == [Window(0, 15), Window(11, 27), Window(19, 30)]


def test_a_sentence_end_too_far_back_is_not_worth_the_words() -> None:
    assert split(bounds([1] * 20), [9], max_words=16, max_tokens=99, overlap=4)[0] == Window(0, 16)


def test_sub_tokens_limit_a_window_too() -> None:
    windows = split(bounds([10] * 6), [], max_words=100, max_tokens=40, overlap=10)
    assert windows == [Window(0, 4), Window(2, 6)]


def test_a_word_longer_than_the_window_is_a_window_of_its_own() -> None:
    assert split(bounds([1, 50, 1]), [], max_words=9, max_tokens=10, overlap=2) == [
        Window(0, 1),
        Window(1, 2),
        Window(2, 3),
    ]


def test_windows_share_more_where_the_cut_is_inside_a_sentence() -> None:
    windows = split(bounds([1] * 150), [55], max_words=60, max_tokens=99, overlap=5)
    assert windows == [Window(0, 55), Window(50, 110), Window(110 - 5 - CONTEXT_WORDS, 150)]


def test_windows_share_at_most_half_of_one() -> None:
    assert split(bounds([1] * 25), [], max_words=10, max_tokens=99, overlap=1000)[1] == Window(5, 15)


def test_sentences_end_at_punctuation_before_a_blank() -> None:
    text = 'A b. C d! "E f?" G h 3.5 i… J\n\nk 。l'
    starts = [i for i, c in enumerate(text) if c.isalnum()]
    empty = np.empty(0, np.int32)
    words = Words(np.array(starts, np.int32), np.array(starts, np.int32) + 1, empty, empty)
    assert [text[starts[i]] for i in sentence_ends(text, words)] == ["C", "E", "G", "J", "k", "l"]


@pytest.mark.parametrize(
    "part",
    [".", '.")', "\n ", "\n", "\n x", '."' + ")" * 50],
    ids=["dots", "quotes", "blank lines", "lines", "x", "brackets"],
)
def test_a_million_marks_take_linear_time(part: str) -> None:
    empty = np.empty(0, np.int32)
    before = time.process_time()
    sentence_ends(part * (1_000_000 // max(len(part) // 3, 1)) + "x", Words(empty, empty, empty, empty))
    assert time.process_time() - before < 4


LEFT, RIGHT = Window(0, 10), Window(6, 16)


def test_an_entity_in_the_overlap_is_found_once_with_its_higher_score() -> None:
    found = merge([LEFT, RIGHT], [(LEFT, [Candidate(7, 9, 0, 0.6)]), (RIGHT, [Candidate(1, 3, 0, 0.7)])])
    assert found == [Candidate(7, 9, 0, 0.7)]


def test_a_part_at_the_edge_loses_to_the_window_that_reads_on() -> None:
    part, whole = Candidate(8, 10, 0, 0.99), Candidate(2, 5, 0, 0.6)
    assert merge([LEFT, RIGHT], [(LEFT, [part]), (RIGHT, [whole])]) == [Candidate(8, 11, 0, 0.6)]
    assert merge([LEFT, RIGHT], [(LEFT, []), (RIGHT, [Candidate(0, 2, 0, 0.9)])]) == []


def test_the_documents_own_edges_cut_nothing() -> None:
    first, last = Candidate(0, 2, 0, 0.9), Candidate(8, 10, 0, 0.9)
    assert merge([LEFT, RIGHT], [(LEFT, [first]), (RIGHT, [last])]) == [first, Candidate(14, 16, 0, 0.9)]


def test_an_entity_that_no_window_reads_whole_is_kept_as_it_was_seen() -> None:
    long_one = Candidate(2, 10, 0, 0.9)
    assert merge([LEFT, RIGHT], [(LEFT, [long_one])]) == [long_one]


@pytest.mark.parametrize("start", range(60))
def test_every_span_lies_inside_some_window(start: int) -> None:
    width = 6
    windows = split(bounds([1] * 66), [], max_words=20, max_tokens=99, overlap=width)
    assert any(
        (w.start < start or start == 0) and (start + width < w.end or start + width == 66)
        for w in windows
        if w.start <= start and start + width <= w.end
    )

"""The arithmetic that the figures go through, on cases worked by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import report, sameness, texts
from benchmarks.padding import of_library, of_packs
from benchmarks.report import Metric
from benchmarks.rounds import interleave, ratio
from benchmarks.subject import possible, threshold
from packing.pack import pack


@pytest.mark.parametrize(
    ("value", "goal", "met"),
    [
        (2.3, {"least": 2.3}, True),
        (2.29, {"least": 2.3}, False),
        (0.03, {"most": 0.03}, True),
        (0.031, {"most": 0.03}, False),
        (math.nan, {"least": 0.0}, False),
        (math.nan, {"most": 1.0}, False),
        (5.0, {}, None),
    ],
)
def test_a_goal_is_met_or_not(value: float, goal: dict[str, Any], met: bool | None) -> None:
    assert Metric("some", value, "s", **goal).met is met


def test_a_results_file_holds_each_metric_with_its_goal(tmp_path: Path) -> None:
    metrics = [Metric("fast", 3.0, "times as fast", 2.0, spread=(2.5, 3.5)), Metric("size", 7.0, "GiB")]
    path = tmp_path / "results" / "some.json"
    report.write(path, report.as_json(metrics, 2, {"more": 1}))
    found = json.loads(path.read_text())
    assert found["metrics"] == {
        "fast": {"value": 3.0, "unit": "times as fast", "goal": 2.0, "met": True, "spread": [2.5, 3.5]},
        "size": {"value": 7.0, "unit": "GiB", "goal": None, "met": None},
    }
    assert found["machine"]["threads"] == 2
    assert "torch" in found["versions"]
    assert found["more"] == 1
    assert report.verdict([*metrics, Metric("slow", 1.0, "s", 4.0)]) == "1 of 2 goals met; not met: slow 1 for 4."


def test_a_part_measured_again_goes_among_the_others() -> None:
    present = {"metrics": {"a": 1, "b": 2}, "memory": {"small": 3}, "division": {"x": 4}}
    fresh = {"metrics": {"b": 5}, "memory": {"base": 6}, "versions": {"torch": "7"}}
    assert report.merged(present, fresh) == {
        "metrics": {"a": 1, "b": 5},
        "memory": {"small": 3, "base": 6},
        "division": {"x": 4},
        "versions": {"torch": "7"},
    }
    assert report.merged({}, fresh) == fresh


def test_a_ratio_is_the_median_of_the_rounds() -> None:
    assert ratio([4, 9, 5], [2, 3, 5]) == (2, 1, 3)


def test_ways_take_turns() -> None:
    order: list[str] = []
    timed = interleave({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 2, warm=False)
    assert order == ["a", "b", "b", "a"]
    assert [len(seconds) for seconds in timed.seconds.values()] == [2, 2]


def test_chosen_texts_have_the_pools_mix_of_lengths() -> None:
    pool = ["x" * n for n in range(1, 101)]
    assert sorted(map(len, texts.choose(pool, 10))) == [6, 16, 26, 36, 46, 56, 66, 76, 86, 96]
    assert len(texts.choose(pool, 250)) == 250
    assert len(set(texts.MORE_LABELS)) == len(texts.MORE_LABELS) >= 100


@pytest.mark.parametrize("room", range(12))
def test_a_text_is_shortened_to_the_last_word_that_fits(room: int) -> None:
    text, ends = "ab cd e fgh", [2, 5, 7, 11]
    assert texts.shorten(text, ends, lambda t: len(t) <= room) == text[: max([0, *(e for e in ends if e <= room)])]


def test_padding_is_what_belongs_to_no_text() -> None:
    # two streams in batches of two: 4 + 1 of 4 * 2, and 2 + 2 of 2 * 2
    assert of_library("padded 8", [4, 1, 2, 2], [1, 2, 3, 0], batch=2) == (1 - 9 / 12, 1 - 25 / 40)
    assert of_library("sequential", [4, 1, 2, 2], [1, 2, 3, 0]) == (0, 0)
    assert of_library("sorted 8", [4, 1, 2, 2], [1, 2, 3, 0], batch=2) == (1 - 9 / 12, 1 - 25 / 40)
    packed = pack([np.ones(length, np.int32) for length in (20, 5, 5)], range(3))
    assert of_packs([packed]) == (1 - 30 / 32, 0)


def test_spans_past_the_end_do_not_count() -> None:
    logits = torch.arange(2 * 3 * 1, dtype=torch.float32).view(2, 3, 1)
    assert possible(logits).tolist() == [0, 1, 3]


def test_the_threshold_leaves_ten_candidates_a_text() -> None:
    logits = [torch.randn(30, 4, 2, generator=torch.Generator().manual_seed(i)) for i in range(3)]
    limit = threshold(logits)
    assert sum(int((possible(one).sigmoid() > limit).sum()) for one in logits) == 30


def test_entities_differ_only_where_scores_are_as_good_as_equal() -> None:
    def near(a: float, b: float) -> bool:
        return abs(a - b) <= 1e-5

    one, other = {(0, 3, "x"): 0.9, (4, 6, "x"): 0.7}, {(0, 3, "x"): 0.9, (4, 8, "x"): 0.700004}
    assert sameness.agree([one], [one], near, 0.5) == (1, 0)
    assert sameness.agree([one], [other], near, 0.5) == (0, 1)
    assert sameness.agree([one], [{**other, (4, 8, "x"): 0.71}], near, 0.5) == (0, 0)
    assert sameness.agree([one], [{(0, 3, "x"): 0.9}], near, 0.5) == (0, 0)
    assert sameness.agree([{**one, (9, 10, "x"): 0.500001}], [one], near, 0.5) == (0, 1)

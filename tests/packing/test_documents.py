from __future__ import annotations

from typing import Any

import pytest

from packing import Document


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("text", None, "text must be a string, not NoneType"),
        ("text", b"bytes", "text must be a string, not bytes"),
        ("labels", "person", "labels must be a list of strings or a map, not str"),
        ("labels", 3, "labels must be a list"),
        ("labels", ["person", ""], "label 2 is blank"),
        ("labels", [" \t\n"], "label 1 is blank"),
        ("labels", ["person", None], "label 2 must be a string, not NoneType"),
        ("labels", {"person": ""}, "description 1 is blank"),
        ("labels", {"": "a person"}, "label 1 is blank"),
        ("labels", {"a": "same", "b": "same"}, "the same description"),
        ("threshold", 1.1, "threshold must lie in [0, 1], not 1.1"),
        ("threshold", -0.1, "threshold must lie in"),
        ("threshold", float("nan"), "threshold must lie in [0, 1], not nan"),
        ("threshold", True, "threshold must be a number, not bool"),
        ("threshold", "0.5", "threshold must be a number, not str"),
        ("threshold", {"person": 2}, "threshold of label 'person' must lie in"),
        ("default_threshold", float("inf"), "default_threshold must lie in"),
        ("overlap", "none", "overlap must be one of flat, nested, multi, not 'none'"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(field: str, value: Any, said: str) -> None:
    arguments: dict[str, Any] = {"text": "x", "labels": ["person"], field: value}
    with pytest.raises(ValueError) as raised:
        Document(**arguments)
    assert said in str(raised.value)


def test_repeated_labels_count_once_and_keep_their_order() -> None:
    assert Document("x", ["b", "a", "b"]).prompts() == (("b", "b"), ("a", "a"))


def test_a_description_takes_the_place_of_its_label() -> None:
    assert Document("x", {"who": "a person"}).prompts() == (("who", "a person"),)


def test_a_label_missing_from_the_thresholds_takes_the_default() -> None:
    document = Document("x", ["a", "b"], {"a": 0.9}, default_threshold=0.2)
    assert (document.threshold_of("a"), document.threshold_of("b")) == (0.9, 0.2)

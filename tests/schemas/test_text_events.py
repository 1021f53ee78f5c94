"""The input side of the wire, case by case."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import TextEvent, Unreadable, decode_text_event
from schemas.strict_json import depth

SECRET = "Rumpelstiltskin"


def wire(**fields: Any) -> bytes:
    return json.dumps({"text": "a"} | fields).encode()


def fault(value: bytes, **options: Any) -> str:
    with pytest.raises(Unreadable) as caught:
        decode_text_event(value, **options)
    return str(caught.value)


def nested(levels: int) -> bytes:
    """An event of exactly so many levels, the event itself the first; more brackets than levels."""
    inner = levels - 1
    return b'{"text": "[{", "meta": ' + b"[" * inner + b"]" * inner + b"}"


def test_a_full_event_is_read_field_by_field() -> None:
    event = decode_text_event(
        b'{"text": "a b", "id": "x", "labels": ["p", "q"], "threshold": {"p": 0.25}, "overlap": "multi",'
        b' "meta": {"k": [1, 2.5, null, true]}}'
    )

    assert event == TextEvent(
        text="a b",
        id="x",
        labels=["p", "q"],
        threshold={"p": 0.25},
        overlap="multi",
        meta={"k": [1, 2.5, None, True]},
    )


@pytest.mark.parametrize("absent", [{}, dict.fromkeys(["id", "labels", "threshold", "overlap", "meta"])])
def test_left_out_and_null_both_mean_as_configured(absent: dict[str, None]) -> None:
    event = decode_text_event(wire(**absent))

    assert (event.id, event.labels, event.threshold, event.overlap, event.meta) == (None,) * 5


def test_unknown_fields_are_ignored() -> None:
    assert decode_text_event(wire(language="de", lables=3)) == TextEvent(text="a")


@pytest.mark.parametrize("text", ["", " \n\t", "\0", "\u200b", "e\u0301", "\ufffe", "👩‍👩‍👧"])
def test_any_text_is_read_unchanged(text: str) -> None:
    assert decode_text_event(wire(text=text)).text == text


@pytest.mark.parametrize("given_id", ["", "17", 17, 0, -1, 2**64, 10**4299])
def test_an_id_comes_through_with_its_type(given_id: str | int) -> None:
    read = decode_text_event(wire(id=given_id)).id

    assert read == given_id
    assert type(read) is type(given_id)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"text": 3}, "text: expected a string, got a number"),
        ({"text": None}, "text: expected a string, got null"),
        ({"text": [SECRET]}, "text: expected a string, got a list"),
        ({"id": 17.0}, "id: expected a string or an integer, got a floating-point number"),
        ({"id": True}, "id: expected a string or an integer, got a boolean"),
        ({"id": {"a": SECRET}}, "id: expected a string or an integer, got an object"),
        (
            {"labels": SECRET},
            "labels: expected a list of labels or a map of label to description, got a string",
        ),
        ({"labels": ["p", 3]}, "labels: entry 2: expected a label (a string), got a number"),
        ({"labels": ["p", None]}, "labels: entry 2: expected a label (a string), got null"),
        ({"labels": [""]}, "labels: entry 1: expected a label, got a blank string"),
        ({"labels": ["p", " \t\u2003"]}, "labels: entry 2: expected a label, got a blank string"),
        ({"labels": {SECRET: "b", " ": "c"}}, "labels: entry 2: expected a label, got a blank string"),
        ({"labels": {SECRET: None}}, "labels: entry 1: expected a description (a string), got null"),
        ({"labels": {SECRET: " "}}, "labels: entry 1: expected a description, got a blank string"),
        (
            {"labels": {"a": SECRET, "b": "c", "d": SECRET}},
            "labels: entries 1 and 3 have the same description, so they can't be told apart",
        ),
        (
            {"threshold": True},
            "threshold: expected a number from 0 to 1 or a map of label to such a number, got a boolean",
        ),
        (
            {"threshold": "0.5"},
            "threshold: expected a number from 0 to 1 or a map of label to such a number, got a string",
        ),
        (
            {"threshold": 1.01},
            "threshold: expected a number from 0 to 1 or a map of label to such a number, got one outside",
        ),
        (
            {"threshold": 10**400},
            "threshold: expected a number from 0 to 1 or a map of label to such a number, got one outside",
        ),
        (
            {"threshold": {"p": 0.5, SECRET: False}},
            "threshold: entry 2: expected a number from 0 to 1, got a boolean",
        ),
        ({"threshold": {SECRET: -1}}, "threshold: entry 1: expected a number from 0 to 1, got one outside"),
        ({"threshold": {SECRET: None}}, "threshold: entry 1: expected a number from 0 to 1, got null"),
        ({"overlap": SECRET}, "overlap: expected 'flat', 'nested' or 'multi', got another string"),
        ({"overlap": True}, "overlap: expected 'flat', 'nested' or 'multi', got a boolean"),
        (
            {"overlap": "\ud800"},
            "overlap: expected one of its fixed values, got a string with a lone surrogate",
        ),
    ],
)
def test_a_wrong_field_is_named_with_its_reason_and_without_its_content(fields: dict[str, Any], said: str) -> None:
    value = wire(**fields)

    assert fault(value) == said
    assert SECRET not in said


def test_a_missing_text_is_named() -> None:
    with pytest.raises(Unreadable) as caught:
        decode_text_event(b'{"txt": "a"}')

    assert (caught.value.field, caught.value.reason) == ("text", "missing")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"", "value: empty, expected JSON"),
        (b"\xef\xbb\xbf", "value: empty, expected JSON"),
        (b"  ", "value: not JSON: Expecting value: line 1 column 3 (char 2)"),
        (b"not json", "value: not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b'{"text": "a"} {}', "value: not JSON: Extra data: line 1 column 15 (char 14)"),
        (
            b'{"text": "a",}',
            "value: not JSON: Expecting property name enclosed in double quotes: line 1 column 14 (char 13)",
        ),
        (
            b'{"text": "Rumpelstiltskin',
            "value: not JSON: Unterminated string starting at: line 1 column 10 (char 9)",
        ),
        (
            b'{"text": "line\nbreak"}',
            "value: not JSON: Invalid control character at: line 1 column 15 (char 14)",
        ),
        (b'{"text": "\xff"}', "value: not UTF-8: invalid start byte at byte 10"),
        (b'{"text": "\xed\xa0\x80"}', "value: not UTF-8: invalid continuation byte at byte 10"),
        (b'{"text": "\xc3', "value: not UTF-8: unexpected end of data at byte 10"),
        (b"null", "value: expected a JSON object, got null"),
        (b'"Rumpelstiltskin"', "value: expected a JSON object, got a string"),
        (b'[{"text": "a"}]', "value: expected a JSON object, got a list"),
        (b"17", "value: expected a JSON object, got a number"),
        (b'{"text": "a", "meta": NaN}', "value: not JSON: NaN is no JSON number"),
        (b'{"text": "a", "meta": [-Infinity]}', "value: not JSON: -Infinity is no JSON number"),
        (b'{"text": "a", "threshold": NaN}', "value: not JSON: NaN is no JSON number"),
        (b'{"text": "a", "meta": 1e999}', "value: a number is too large for a double"),
        (b'{"text": "a", "ignored": -1e999}', "value: a number is too large for a double"),
    ],
)
def test_what_is_not_json_is_refused_with_the_place_and_without_its_content(value: bytes, said: str) -> None:
    assert fault(value) == said
    assert SECRET not in said


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
def test_no_other_encoding_is_guessed(encoding: str) -> None:
    fault('{"text": "Köln"}'.encode(encoding))


def test_one_byte_order_mark_is_dropped_and_a_second_is_not() -> None:
    assert decode_text_event(b"\xef\xbb\xbf" + wire()) == TextEvent(text="a")
    assert fault(b"\xef\xbb\xbf\xef\xbb\xbf" + wire()).startswith("value: not JSON")
    assert decode_text_event(wire(text="\ufeffa")).text == "\ufeffa"


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (rb"a\ud800b", "a\ud800b"),
        (rb"\udc00", "\udc00"),
        (rb"\ude00\ud83d", "\ude00\ud83d"),
        (rb"\ud83d\ude00", "😀"),
        (rb"\ud83d\ud83d\ude00", "\ud83d😀"),
    ],
)
def test_lone_surrogates_are_kept_and_pairs_joined(escaped: bytes, text: str) -> None:
    value = b'{"text": "%s", "id": "%s", "labels": ["%s"]}' % (escaped, escaped, escaped)

    assert decode_text_event(value) == TextEvent(text=text, id=text, labels=[text])


def test_of_a_repeated_key_the_last_value_wins() -> None:
    event = decode_text_event(b'{"text": 3, "text": "b", "labels": {"p": "x", "q": "y", "p": "z"}}')

    assert event == TextEvent(text="b", labels={"p": "z", "q": "y"})


def test_repeated_labels_count_once_in_the_order_given() -> None:
    assert decode_text_event(wire(labels=["q", "p", "q", "P", "p"])).labels == ["q", "p", "P"]


@pytest.mark.parametrize("labels", [[], {}])
def test_no_labels_at_all_may_be_asked(labels: Any) -> None:
    assert decode_text_event(wire(labels=labels)).labels == labels


@pytest.mark.parametrize("threshold", [0, 1, 0.5, {}, {"p": 0, "unasked": 1.0}])
def test_thresholds_reach_from_0_to_1_inclusive(threshold: Any) -> None:
    assert decode_text_event(wire(threshold=threshold)).threshold == threshold


def test_meta_keeps_every_integer_exact_and_every_type() -> None:
    meta = {"big": 2**63 + 1, "huge": -(10**4299), "float": 0.1, "one": 1.0, "yes": True, "no": None}

    read = decode_text_event(wire(meta=meta)).meta

    assert read == meta
    assert isinstance(read, dict)
    assert {key: type(value) for key, value in read.items()} == {k: type(v) for k, v in meta.items()}


def test_4300_digits_are_read_and_4301_are_not() -> None:
    assert decode_text_event(b'{"text": "a", "meta": -%s}' % (b"9" * 4300)).meta == -int("9" * 4300)
    assert fault(b'{"text": "a", "meta": -%s}' % (b"9" * 4301)) == "value: an integer has more than 4300 digits"


def test_64_levels_are_read_and_65_are_not() -> None:
    assert isinstance(decode_text_event(nested(64)).meta, list)
    assert fault(nested(65)) == "value: nested 65 levels deep, at most 64 are read"


@pytest.mark.parametrize(
    ("value", "levels"),
    [
        (b"[" * 100_000, 100_000),
        (b'{"a":' * 100_000, 100_000),
        (nested(100_000), 100_000),
        (b"[{" + b"[" * 10**6, 10**6 + 2),
    ],
)
def test_no_depth_makes_the_parser_fall(value: bytes, levels: int) -> None:
    assert fault(value) == f"value: nested {levels} levels deep, at most 64 are read"


@given(st.recursive(st.integers(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner)))
def test_the_depth_of_a_value_is_that_of_its_brackets(value: Any) -> None:
    most = open_ = 0
    for character in re.sub(r'"(\\.|[^"\\])*"', "", json.dumps(value)):
        open_ += (character in "[{") - (character in "]}")
        most = max(most, open_)
    assert depth(value) == most


@pytest.mark.parametrize("text", ["[" * 1000, '"[' * 1000, "\\[" * 1000, '\\"[{' * 1000, "[" * 1000 + "\\"])
def test_brackets_inside_strings_are_no_depth(text: str) -> None:
    assert decode_text_event(wire(text=text, meta={text: text})).text == text


def test_many_brackets_side_by_side_are_no_depth() -> None:
    meta: list[Any] = [[], {}] * 1000

    assert decode_text_event(wire(meta=meta)).meta == meta


def test_an_unterminated_string_of_quotes_takes_linear_time() -> None:
    # Quadratic, this would take hours.
    assert "Unterminated string" in fault(b'{"text": "' + b'\\"[' * 1_000_000)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"", ""),
        (b"\xef\xbb\xbf", ""),
        ("\ufeff\ufeffKöln\r\n".encode(), "\ufeffKöln\r\n"),
        (b'{"text": "a"}', '{"text": "a"}'),
        (b"[" * 1000, "[" * 1000),
        (b"a\0b", "a\0b"),
    ],
)
def test_a_plain_text_is_the_whole_value(value: bytes, text: str) -> None:
    assert decode_text_event(value, input_format="text") == TextEvent(text=text)


def test_a_plain_text_must_be_utf8() -> None:
    assert fault(b"K\xf6ln", input_format="text") == "value: not UTF-8: invalid start byte at byte 1"


def outcome(value: bytes) -> TextEvent | Unreadable:
    try:
        return decode_text_event(value)
    except Unreadable as error:
        return error


@given(st.binary() | st.binary().map(lambda noise: b'{"text":"a","meta":' + noise))
def test_any_bytes_are_read_or_refused_and_nothing_else(value: bytes) -> None:
    assert isinstance(outcome(value), TextEvent | Unreadable)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
FIELDS = ["text", "id", "labels", "threshold", "overlap", "meta"]


@given(st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES))
def test_any_object_is_read_or_refused_and_nothing_else(fields: dict[str, Any]) -> None:
    result = outcome(json.dumps(fields).encode())

    assert isinstance(result, TextEvent) or result.field in {*FIELDS, "value"}

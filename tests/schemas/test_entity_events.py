"""The output side of the wire."""

import copy
import json
import pickle
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from schemas import (
    Entity,
    EntityEvent,
    ModelInfo,
    Source,
    Unreadable,
    decode_entity_event,
    decode_text_event,
    encode_entity_event,
    event_id,
)

EVENT = EntityEvent(
    id="texts:3:1042",
    text_id=7,
    source=Source(topic="texts", partition=3, offset=1042, timestamp=1_700_000_000_000),
    entities=[Entity(start=0, end=4, text="Köln", label="location", score=0.5)],
    offset_unit="code_points",
    model=ModelInfo(name="m", revision=None),
    windows=1,
    label_chunks=1,
    meta={"n": 2**70},
)
WRITTEN = (
    '{"schema":1,"id":"texts:3:1042","text_id":7,'
    '"source":{"topic":"texts","partition":3,"offset":1042,"timestamp":1700000000000},'
    '"entities":[{"start":0,"end":4,"text":"Köln","label":"location","score":0.5}],'
    '"offset_unit":"code_points","model":{"name":"m","revision":null},'
    '"windows":1,"label_chunks":1,"meta":{"n":1180591620717411303424}}'
)


def with_text(text: str, meta: JsonValue = None) -> EntityEvent:
    return EVENT.model_copy(
        update={"entities": [Entity(start=0, end=9, text=text, label=text, score=1.0)], "meta": meta}
    )


def test_an_event_is_written_compactly_with_every_field() -> None:
    assert encode_entity_event(EVENT).decode() == WRITTEN
    assert decode_entity_event(WRITTEN.encode()) == EVENT


def test_a_field_without_a_value_is_written_as_null() -> None:
    bare = EVENT.model_copy(update={"text_id": None, "meta": None})

    written = json.loads(encode_entity_event(bare))

    assert written["text_id"] is None
    assert written["meta"] is None


def test_lone_surrogates_are_written_as_escapes_and_all_else_as_utf8() -> None:
    written = encode_entity_event(with_text("é\ud800😀\udfff\u2028"))

    assert '"é\\ud800😀\\udfff\u2028"'.encode() in written
    assert decode_entity_event(written) == with_text("é\ud800😀\udfff\u2028")


def test_an_id_and_meta_come_out_as_they_went_in() -> None:
    given_value = rb'{"text": "", "id": 12345678901234567890, "meta": {"\ud800": [1.0, 1, 1e-7, "\udc00"]}}'
    text = decode_text_event(given_value)

    event = EVENT.model_copy(update={"text_id": text.id, "meta": text.meta})

    assert '"text_id":12345678901234567890' in encode_entity_event(event).decode()
    assert encode_entity_event(event).endswith(rb'"meta":{"\ud800":[1.0,1,1e-07,"\udc00"]}}')


# A high surrogate right before a low one is, in JSON, the one character they encode; no text read from the
# wire holds such a pair.
any_text = st.text(st.characters(codec=None)).filter(lambda text: not re.search("[\ud800-\udbff][\udc00-\udfff]", text))
any_meta: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner) | st.dictionaries(any_text, inner),
    max_leaves=10,
)


@given(any_text, any_meta)
def test_any_event_is_read_back_as_it_was_written(text: str, meta: JsonValue) -> None:
    event = with_text(text, meta)

    written = encode_entity_event(event)

    assert decode_entity_event(written) == event
    assert json.loads(written) == event.model_dump(by_alias=True)


@pytest.mark.parametrize("meta", [float("nan"), [float("inf")], {"a": -float("inf")}])
def test_what_json_cannot_say_is_never_written(meta: JsonValue) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode_entity_event(with_text("a", meta))


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (["schema"], 2, "schema: expected 1, got another number"),
        (["schema"], True, "schema: expected 1, got a boolean"),
        (["schema"], 1.0, "schema: expected 1, got a floating-point number"),
        (["id"], 3, "id: expected a string, got a number"),
        (["text_id"], 1.5, "text_id: expected a string or an integer, got a floating-point number"),
        (["source"], "texts", "source: expected an object, got a string"),
        (["source", "offset"], True, "source.offset: expected an integer, got a boolean"),
        (["source", "partition"], -1, "source.partition: Input should be greater than or equal to 0"),
        (["source", "timestamp"], "0", "source.timestamp: expected an integer, got a string"),
        (["entities"], {}, "entities: expected a list, got an object"),
        (["entities", 0, "score"], "0.5", "entities.0.score: expected a number, got a string"),
        (["entities", 0, "score"], True, "entities.0.score: expected a number, got a boolean"),
        (["entities", 0, "score"], 1.5, "entities.0.score: Input should be less than or equal to 1"),
        (["entities", 0, "end"], 4.0, "entities.0.end: expected an integer, got a floating-point number"),
        (["entities", 0, "start"], 4, "entities.0: expected `end` to be after `start`"),
        (
            ["offset_unit"],
            "chars",
            "offset_unit: expected 'code_points', 'utf16' or 'bytes', got another string",
        ),
        (["model", "revision"], 1, "model.revision: expected a string, got a number"),
        (["windows"], None, "windows: expected an integer, got null"),
    ],
)
def test_a_wrong_field_of_an_entity_event_is_named(place: list[Any], value: object, said: str) -> None:
    written = json.loads(WRITTEN)
    holder = written
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value

    with pytest.raises(Unreadable) as caught:
        decode_entity_event(json.dumps(written).encode())
    assert str(caught.value) == said


def test_a_missing_field_of_an_entity_event_is_named_by_its_path() -> None:
    written = json.loads(WRITTEN)
    del written["source"]["topic"]

    with pytest.raises(Unreadable, match=re.escape("source.topic: missing")):
        decode_entity_event(json.dumps(written).encode())


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        EVENT.windows = 2  # type: ignore[misc]


def test_every_record_has_an_id_of_its_own() -> None:
    assert event_id("texts", 3, 1042) == "texts:3:1042"
    assert event_id("a-1", 2, 3) != event_id("a", 12, 3) != event_id("a", 1, 23)


def test_what_is_wrong_survives_a_process_boundary() -> None:
    error = Unreadable("text", "missing")

    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (twin.field, twin.reason, str(twin)) == ("text", "missing", "text: missing")

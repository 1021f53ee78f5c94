"""The exported documents: in step, valid, and true to the codec."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from schemas import Unreadable, decode_entity_event, decode_text_event, export
from schemas.events import DeadLetter, EntityEvent, TextEvent

SCHEMAS = ["text-event", "entity-event", "dead-letter"]


def document(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(export.text(name))
    return loaded


def resolve(tree: Any, reference: str) -> Any:
    for key in reference.removeprefix("#/").split("/"):
        tree = tree[key]
    return tree


def test_the_committed_files_are_in_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert export.main(["--check"]) == 0, capsys.readouterr().err


def test_a_file_out_of_step_is_named_and_mended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export.main([], folder=tmp_path) == 0
    (tmp_path / "asyncapi.json").write_text("{}", encoding="utf-8")
    (tmp_path / "dead-letter.schema.json").unlink()

    assert export.main(["--check"], folder=tmp_path) == 1
    assert capsys.readouterr().err == (
        "dead-letter.schema.json is out of step with the models: run `python -m schemas.export`\n"
        "asyncapi.json is out of step with the models: run `python -m schemas.export`\n"
    )

    export.main([], folder=tmp_path)
    assert export.main(["--check"], folder=tmp_path) == 0


def test_nothing_else_lies_among_the_generated_files() -> None:
    files = {path.name for path in export.GENERATED.iterdir() if path.suffix == ".json"}

    assert files == {*(f"{name}.schema.json" for name in SCHEMAS), "asyncapi.json"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_valid_and_so_are_its_examples(name: str) -> None:
    schema = document(name)

    Draft202012Validator.check_schema(schema)
    assert schema["examples"]
    for example in schema["examples"]:
        Draft202012Validator(schema).validate(example)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_field_says_what_it_is(name: str) -> None:
    schema = document(name)

    for part in [schema, *schema["$defs"].values()]:
        assert not part or part["title"]
        for field in part.get("properties", {}).values():
            assert field.get("description") or resolve(schema, field["$ref"])["description"]


def test_the_codec_reads_the_examples_to_what_they_say() -> None:
    for example in document("text-event")["examples"]:
        event = decode_text_event(json.dumps(example).encode())
        assert event.model_dump(exclude_unset=True) == example
    for example in document("entity-event")["examples"]:
        entities = decode_entity_event(json.dumps(example).encode()).entities
        text = "Tim Cook met Angela Merkel in Berlin."
        assert [text[entity.start : entity.end] for entity in entities] == [it.text for it in entities]
    for example in document("dead-letter")["examples"]:
        assert DeadLetter.model_validate(example).model_dump() == example


def test_an_entity_event_promises_every_field() -> None:
    schema = document("entity-event")

    assert schema["required"] == list(schema["properties"])
    assert schema["required"] == [field.alias or name for name, field in EntityEvent.model_fields.items()]


@pytest.mark.parametrize(
    ("accepted", "event"),
    [
        (True, {"text": ""}),
        (True, {"text": "a", "unknown": [1]}),
        (True, {"text": "a", "id": None, "labels": None, "threshold": None, "overlap": None, "meta": None}),
        (True, {"text": "a", "id": 17}),
        (True, {"text": "a", "id": "17"}),
        (True, {"text": "a", "labels": []}),
        (True, {"text": "a", "labels": {}}),
        (True, {"text": "a", "labels": ["p", "p"]}),
        (True, {"text": "a", "labels": {"p": "a person"}}),
        (True, {"text": "a", "threshold": 0}),
        (True, {"text": "a", "threshold": 1}),
        (True, {"text": "a", "threshold": {"p": 0.5}}),
        (True, {"text": "a", "overlap": "multi"}),
        (True, {"text": "a", "meta": [{"deep": [2**80]}]}),
        (False, {}),
        (False, []),
        (False, None),
        (False, {"text": None}),
        (False, {"text": 1}),
        (False, {"text": "a", "id": 1.5}),
        (False, {"text": "a", "id": False}),
        (False, {"text": "a", "id": []}),
        (False, {"text": "a", "labels": "p"}),
        (False, {"text": "a", "labels": [1]}),
        (False, {"text": "a", "labels": [" "]}),
        (False, {"text": "a", "labels": ["p", ""]}),
        (False, {"text": "a", "labels": {"": "a person"}}),
        (False, {"text": "a", "labels": {" ": "a person"}}),
        (False, {"text": "a", "labels": {"p": " "}}),
        (False, {"text": "a", "labels": {"p": None}}),
        (False, {"text": "a", "threshold": True}),
        (False, {"text": "a", "threshold": "0.5"}),
        (False, {"text": "a", "threshold": 1.5}),
        (False, {"text": "a", "threshold": -0.1}),
        (False, {"text": "a", "threshold": [0.5]}),
        (False, {"text": "a", "threshold": {"p": True}}),
        (False, {"text": "a", "threshold": {"p": 2}}),
        (False, {"text": "a", "overlap": "none"}),
        (False, {"text": "a", "overlap": 1}),
    ],
)
def test_schema_and_codec_agree_on_what_a_text_event_is(accepted: bool, event: Any) -> None:
    assert Draft202012Validator(document("text-event")).is_valid(event) is accepted
    if accepted:
        assert isinstance(decode_text_event(json.dumps(event).encode()), TextEvent)
    else:
        with pytest.raises(Unreadable):
            decode_text_event(json.dumps(event).encode())


@pytest.mark.parametrize(
    "value",
    [
        b'{"text": "a", "id": 17.0}',
        b'{"text": "a", "labels": {"p": "same", "q": "same"}}',
        b'{"text": "a", "meta": %s%s}' % (b"[" * 64, b"]" * 64),
    ],
)
def test_some_rules_are_beyond_a_json_schema_and_the_codec_keeps_them(value: bytes) -> None:
    assert Draft202012Validator(document("text-event")).is_valid(json.loads(value))
    with pytest.raises(Unreadable):
        decode_text_event(value)

"""The AsyncAPI document: whole, and true to what is written."""

import json
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft7Validator

from schemas import Source, asyncapi
from schemas.codec import dead_letter_headers
from schemas.events import DeadLetter

# Through JSON, as a reader sees it.
DOCUMENT: dict[str, Any] = json.loads(json.dumps(asyncapi.document()))
MESSAGES: dict[str, Any] = DOCUMENT["components"]["messages"]


def subtrees(tree: Any) -> Iterator[Any]:
    yield tree
    children = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    for child in children:
        yield from subtrees(child)


def resolve(reference: str) -> Any:
    tree: Any = DOCUMENT
    for key in reference.removeprefix("#/").split("/"):
        tree = tree[key]
    return tree


def validator(schema: dict[str, Any]) -> Draft7Validator:
    """AsyncAPI reads schemas as draft 7; references point into the whole document."""
    Draft7Validator.check_schema(schema)
    return Draft7Validator({"components": DOCUMENT["components"], "allOf": [schema]})


def test_every_reference_resolves() -> None:
    references = [tree["$ref"] for tree in subtrees(DOCUMENT) if isinstance(tree, dict) and "$ref" in tree]

    assert len(references) > 10
    for reference in references:
        assert reference.startswith("#/")
        assert resolve(reference) is not None


def test_the_topics_carry_the_three_events_and_tombstones() -> None:
    carried = {name: list(channel["messages"]) for name, channel in DOCUMENT["channels"].items()}

    assert carried == {
        "texts": ["text", "plainText", "tombstone"],
        "entities": ["entities", "tombstone"],
        "texts-dlq": ["deadLetter"],
    }
    assert {operation["action"] for operation in DOCUMENT["operations"].values()} == {"receive", "send"}
    assert all(message["bindings"]["kafka"]["key"] for message in MESSAGES.values())


def test_every_example_is_a_valid_payload() -> None:
    examples = [
        (message["payload"], example["payload"])
        for message in MESSAGES.values()
        for example in message.get("examples", [])
    ]

    assert len(examples) >= 4
    for payload, example in examples:
        validator(payload).validate(example)


def test_the_headers_of_a_dead_letter_are_those_that_are_written() -> None:
    schema = MESSAGES["deadLetter"]["headers"]
    for timestamp in (None, 1_700_000_000_000):
        source = Source(topic="texts", partition=3, offset=0, timestamp=timestamp)
        letter = DeadLetter(stage="crash", exception="E", message="", attempts=3, source=source)

        written = {name: (value or b"").decode() for name, value in dead_letter_headers(letter, [])}

        validator(schema).validate(written)
        assert sorted(schema["properties"]) == sorted(schema["required"]) == sorted(written)
        assert not validator(schema).is_valid(written | {"__glistream.errors.offset": "ten"})

"""The AsyncAPI 3.0 document: which topics there are, what they carry, and what the worker does with them."""

from typing import Any

from schemas.codec import DEAD_LETTER_PREFIX
from schemas.events import DeadLetter, EntityEvent, Source, TextEvent
from schemas.json_schemas import Model, components, standalone

_JSON = "application/json"
_KAFKA_BINDING_VERSION = "0.5.0"

# Kafka tells no type of a key: the worker carries it over as the bytes it is.
_KEY = {
    "type": ["string", "null"],
    "description": "Any bytes, or none. Carried over untouched; records of one key keep their order.",
}


def document() -> dict[str, Any]:
    """Build the document, with the topics' default names."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Glistream",
            "version": "1",
            "description": "Reads texts from one Kafka topic, finds the entities in them with a GLiNER "
            "model, and writes one entity event per text to another. One record in, one record out: an "
            "entity event, a dead letter, or for a tombstone a tombstone. Key, event time and headers "
            "carry over.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": _JSON,
        "channels": {
            "texts": _channel("texts", "Texts to find entities in.", ["text", "plainText", "tombstone"]),
            "entities": _channel("entities", "One event per text.", ["entities", "tombstone"]),
            "texts-dlq": _channel("texts-dlq", "Records that could not be answered.", ["deadLetter"]),
        },
        "operations": {
            "readTexts": _operation("receive", "texts", "Read texts."),
            "writeEntities": _operation("send", "entities", "Answer each text with one entity event."),
            "writeDeadLetters": _operation("send", "texts-dlq", "Set aside what can't be answered."),
        },
        "components": {"messages": _messages(), "schemas": components("#/components/schemas/{model}")},
    }


def _channel(topic: str, description: str, messages: list[str]) -> dict[str, Any]:
    return {
        "address": topic,
        "description": description,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
        "bindings": {"kafka": {"topic": topic, "bindingVersion": _KAFKA_BINDING_VERSION}},
    }


def _operation(action: str, channel: str, summary: str) -> dict[str, Any]:
    return {"action": action, "channel": {"$ref": f"#/channels/{channel}"}, "summary": summary}


def _messages() -> dict[str, Any]:
    return {
        "text": _message(
            "A text, as a JSON object.",
            payload={"$ref": "#/components/schemas/TextEvent"},
            payload_examples=_examples(TextEvent),
        ),
        "plainText": _message(
            "A text, as UTF-8 and nothing else, where the worker's input format is `text`.",
            payload={"type": "string"},
            contentType="text/plain; charset=utf-8",
        ),
        "tombstone": _message(
            "A null value. It becomes a tombstone of the same key, so that compaction follows the source.",
            payload={"type": "null"},
        ),
        "entities": _message(
            "The entities of one text.",
            payload={"$ref": "#/components/schemas/EntityEvent"},
            payload_examples=_examples(EntityEvent),
        ),
        "deadLetter": _message(
            "A record's own key, value and headers, untouched, then headers that say why it is here.",
            payload={"description": "The value of the record that failed: any bytes, or null."},
            contentType="application/octet-stream",
            headers=_dead_letter_headers(),
        ),
    }


def _message(
    summary: str, *, payload: dict[str, Any], payload_examples: list[Any] | None = None, **rest: Any
) -> dict[str, Any]:
    message = {"summary": summary, "payload": payload, **rest}
    if payload_examples:
        message["examples"] = [{"payload": payload} for payload in payload_examples]
    message["bindings"] = {"kafka": {"key": _KEY, "bindingVersion": _KAFKA_BINDING_VERSION}}
    return message


def _dead_letter_headers() -> dict[str, Any]:
    """Describe the headers by the fields they carry; all of them are text on the wire."""
    fields = Source.model_fields | DeadLetter.model_fields
    del fields["source"]
    patterns = {name: "^[0-9]+$" for name, field in fields.items() if field.annotation is int} | {
        "timestamp": "^(-?[0-9]+)?$"
    }
    return {
        "type": "object",
        "description": "Of a header that is there twice, from two trips, the last counts. An empty timestamp "
        "stands for none.",
        "properties": {
            DEAD_LETTER_PREFIX + name: {
                "type": "string",
                "description": field.description,
                **({"pattern": patterns[name]} if name in patterns else {}),
            }
            for name, field in fields.items()
        },
        "required": [DEAD_LETTER_PREFIX + name for name in fields],
    }


def _examples(model: Model) -> list[Any]:
    examples: list[Any] = standalone(model)["examples"]
    return examples

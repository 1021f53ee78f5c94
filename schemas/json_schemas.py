"""The models as JSON Schemas: each on its own, or all together as components of a larger document.

An input is described as it is accepted, with what may be left out; an output as it is written, with every
field. What no JSON Schema can say is left to the codec: equal descriptions, 17.0 for 17, the limits on depth
and digits.
"""

from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue, models_json_schema

from schemas.events import DeadLetter, EntityEvent, TextEvent

Model: TypeAlias = type[BaseModel]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_MODES: dict[Model, JsonSchemaMode] = {
    TextEvent: "validation",
    EntityEvent: "serialization",
    DeadLetter: "serialization",
}


class _AsWritten(GenerateJsonSchema):
    """Keeps fields and examples in the order they are written in, which is the order to read them in."""

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        del parent_key
        return value


def standalone(model: Model) -> dict[str, Any]:
    """Describe one of the three models, its parts under `$defs`."""
    schema = model.model_json_schema(mode=_MODES[model], schema_generator=_AsWritten)
    return {"$schema": _DIALECT} | schema


def components(ref_template: str) -> dict[str, Any]:
    """Describe the three models and their parts, by name.

    Args:
        ref_template: where a part will stand, such as `#/components/schemas/{model}`.

    """
    _, schemas = models_json_schema(list(_MODES.items()), ref_template=ref_template, schema_generator=_AsWritten)
    definitions: dict[str, Any] = schemas["$defs"]
    return definitions

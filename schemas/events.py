"""The three things that cross the wire, as frozen models.

Validation is strict: nothing is converted, "0.5" is not a number and `true` is not an integer. Fields that a
model doesn't know are ignored. Strings may hold any code points, lone surrogates among them.
"""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from schemas import field_rules

# What a string that isn't blank matches: for the JSON Schema alone, the rule itself is in field_rules.
_NOT_BLANK = r"\S"

OffsetUnit: TypeAlias = Literal["code_points", "utf16", "bytes"]
Overlap: TypeAlias = Literal["flat", "nested", "multi"]

TextId: TypeAlias = Annotated[str | int, BeforeValidator(field_rules.string_or_integer)]

_Words: TypeAlias = Annotated[str, Field(json_schema_extra={"pattern": _NOT_BLANK})]
_Descriptions: TypeAlias = Annotated[
    dict[str, _Words], Field(json_schema_extra={"propertyNames": {"pattern": _NOT_BLANK}})
]
Labels: TypeAlias = Annotated[list[_Words] | _Descriptions, BeforeValidator(field_rules.labels)]

_Probability: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Threshold: TypeAlias = Annotated[_Probability | dict[str, _Probability], BeforeValidator(field_rules.threshold)]


def event_id(topic: str, partition: int, offset: int) -> str:
    """Name the entity event of one record: `topic:partition:offset`, as in `texts:3:1042`.

    The same record always gives the same id, and no two records share one, since a topic's name can't hold a
    colon: a consumer that has seen an id may drop the event, whatever the delivery mode.
    """
    return f"{topic}:{partition}:{offset}"


class _Wire(BaseModel):
    model_config = ConfigDict(
        strict=True, frozen=True, extra="ignore", json_schema_serialization_defaults_required=True
    )


class TextEvent(_Wire):
    """One text to find entities in, with what is asked of it.

    What is left out or null comes from the worker's configuration.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "Tim Cook met Angela Merkel in Berlin."},
                {
                    "text": "The ferry to Aran leaves Rossaveel at nine.",
                    "id": 1042,
                    "labels": ["place", "time"],
                    "threshold": 0.4,
                    "overlap": "nested",
                    "meta": {"source": "harbour notices"},
                },
                {
                    "text": "Order 7731 arrived at Lidl in Cork without its invoice.",
                    "id": "ticket-88",
                    "labels": {"shop": "a shop or a chain of shops", "town": "a town or city"},
                    "threshold": {"shop": 0.6},
                },
            ]
        }
    )

    text: str = Field(description="The text to read. Empty or blank is allowed, and gives an event without entities.")
    id: TextId | None = Field(
        default=None,
        description="The sender's own name for the text, a string or an integer (17.0 is refused). It comes "
        "back unchanged as `text_id`.",
    )
    labels: Labels | None = Field(
        default=None,
        description="The kinds of entity to look for: a list, or a map of label to description. A "
        "description is shown to the model in its label's place, so no two may be equal. A repeated label of "
        "a list counts once. An empty list or map gives an event without entities.",
    )
    threshold: Threshold | None = Field(
        default=None,
        description="The score that an entity must exceed, from 0 to 1 (with 1 there are none): one number, or a "
        "map of label to number. A label missing from the map takes the configured threshold.",
    )
    overlap: Overlap | None = Field(
        default=None,
        description="Which entities may overlap: none (`flat`), one inside another (`nested`), or also "
        "the same span under several labels (`multi`).",
    )
    meta: JsonValue = Field(
        default=None,
        description="Anything the sender wants back: it comes out unchanged, integers exact.",
    )


class Source(_Wire):
    """The record of the input topic that something was made of."""

    topic: str = Field(description="The topic the text was read from.")
    partition: int = Field(ge=0, description="The partition the text was read from.")
    offset: int = Field(ge=0, description="The text's offset in its partition.")
    timestamp: int | None = Field(
        description="The record's event time in milliseconds since the Unix epoch, or null where it has none."
    )


class Entity(_Wire):
    """One span of the text that is an entity, in the units of the event's `offset_unit`."""

    start: int = Field(ge=0, description="Where the entity starts, counted from 0.")
    end: int = Field(ge=1, description="Where the entity ends, exclusive: always after its start.")
    text: str = Field(description="The entity as it stands in the text.")
    label: str = Field(description="The label it was found under; of a map of descriptions, the key.")
    score: float = Field(ge=0, le=1, description="How sure the model is, from 0 to 1.")

    @model_validator(mode="after")
    def _ends_after_its_start(self) -> Self:
        if self.end <= self.start:
            raise PydanticCustomError("empty_span", "expected `end` to be after `start`")
        return self


class ModelInfo(_Wire):
    """The model that found the entities."""

    name: str = Field(description="The model's name on its hub, or the name of its folder.")
    revision: str | None = Field(description="The model's revision, or null where it is unknown.")


class EntityEvent(_Wire):
    """The entities of one text.

    Every field is always there, null where it has no value.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "schema": 1,
                    "id": "texts:3:1042",
                    "text_id": "news-17",
                    "source": {
                        "topic": "texts",
                        "partition": 3,
                        "offset": 1042,
                        "timestamp": 1796144400000,
                    },
                    "entities": [
                        {"start": 0, "end": 8, "text": "Tim Cook", "label": "person", "score": 0.98},
                        {"start": 13, "end": 26, "text": "Angela Merkel", "label": "person", "score": 0.97},
                        {"start": 30, "end": 36, "text": "Berlin", "label": "location", "score": 0.95},
                    ],
                    "offset_unit": "code_points",
                    "model": {"name": "urchade/gliner_small-v2.1", "revision": None},
                    "windows": 1,
                    "label_chunks": 1,
                    "meta": None,
                }
            ]
        }
    )

    schema_version: Annotated[Literal[1], BeforeValidator(field_rules.one)] = Field(
        default=1, alias="schema", description="The version of this schema."
    )
    id: str = Field(
        description="`topic:partition:offset` of the text's record: the same whenever that record is "
        "answered, so that a repeat can be dropped."
    )
    text_id: TextId | None = Field(
        default=None, description="The `id` that the text came with, unchanged, or null where it had none."
    )
    source: Source = Field(description="The record that held the text.")
    entities: list[Entity] = Field(description="What was found, in the order of the text.")
    offset_unit: OffsetUnit = Field(
        description="What `start` and `end` count: Unicode code points, UTF-16 units (as Java and JavaScript "
        "do) or bytes of UTF-8. A lone surrogate counts 1, 1 and 3. A byte order mark at the start of a "
        "plain-text record is no part of its text."
    )
    model: ModelInfo = Field(description="The model that found the entities.")
    windows: int = Field(
        ge=0,
        description="How many overlapping windows the text was read in; 0 where the model saw none of it.",
    )
    label_chunks: int = Field(
        ge=0, description="How many parts the labels were asked in; 0 where the model saw none of them or no text."
    )
    meta: JsonValue = Field(default=None, description="The `meta` that the text came with, unchanged.")


class DeadLetter(_Wire):
    """Why a record was set aside; on the wire, headers beside its untouched key, value and headers."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "stage": "decode",
                    "exception": "Unreadable",
                    "message": "text: expected a string, got a number",
                    "attempts": 1,
                    "source": {
                        "topic": "texts",
                        "partition": 3,
                        "offset": 1043,
                        "timestamp": 1796144400250,
                    },
                }
            ]
        }
    )

    stage: str = Field(
        description="Where the record failed: `decode`, `too_large`, `crash`, `result_too_large`, "
        "`result_refused` and the like."
    )
    exception: str = Field(description="The name of the exception's class.")
    message: str = Field(description="What was wrong, in words; never the text itself.")
    attempts: int = Field(ge=1, description="How often the record was tried.")
    source: Source = Field(description="The record that failed.")

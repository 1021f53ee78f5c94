"""What crosses the wire: text events in, entity events out, dead letters aside."""

from schemas.codec import (
    dead_letter_headers,
    decode_entity_event,
    decode_text_event,
    encode_entity_event,
    read_dead_letter,
)
from schemas.events import DeadLetter, Entity, EntityEvent, ModelInfo, OffsetUnit, Source, TextEvent, event_id
from schemas.unreadable import Unreadable

__all__ = [
    "DeadLetter",
    "Entity",
    "EntityEvent",
    "ModelInfo",
    "OffsetUnit",
    "Source",
    "TextEvent",
    "Unreadable",
    "dead_letter_headers",
    "decode_entity_event",
    "decode_text_event",
    "encode_entity_event",
    "event_id",
    "read_dead_letter",
]

"""Bytes to models and back, in one place."""

from collections.abc import Iterable
from typing import Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from schemas import strict_json
from schemas.events import DeadLetter, EntityEvent, Source, TextEvent
from schemas.unreadable import Unreadable, first_fault, kind

InputFormat: TypeAlias = Literal["json", "text"]
Header: TypeAlias = tuple[str, bytes | None]

DEAD_LETTER_PREFIX = "__glistream.errors."

_Model = TypeVar("_Model", bound=BaseModel)


def decode_text_event(value: bytes, *, input_format: InputFormat = "json") -> TextEvent:
    """Read the value of an input record.

    With the format `text` the whole value is the text, and all else is left to the configuration.

    Args:
        value: the record's value, which is not null.
        input_format: what the value is: a JSON object, or the text itself in UTF-8.

    Raises:
        Unreadable: the value is not UTF-8, not JSON, or not a text event.
    """
    if input_format == "text":
        return TextEvent(text=strict_json.decode_text(value))
    return _model(TextEvent, strict_json.loads(value))


def encode_entity_event(event: EntityEvent) -> bytes:
    """Write an entity event as compact JSON in UTF-8, every field present.

    Raises:
        ValueError: `meta` holds a NaN or an infinity, which no decoded text event does.
    """
    return strict_json.dumps(event.model_dump(by_alias=True))


def decode_entity_event(value: bytes) -> EntityEvent:
    """Read the value of an output record.

    Raises:
        Unreadable: the value is not UTF-8, not JSON, or not an entity event of this schema version.
    """
    return _model(EntityEvent, strict_json.loads(value))


def dead_letter_headers(letter: DeadLetter, headers_of_the_record: Iterable[Header]) -> list[Header]:
    r"""Append what a dead letter says to the headers of its record.

    The record's own headers come first, untouched, also those of an earlier trip to the dead-letter topic.
    All eight of ours are always written, so that the last of each name belong together: numbers in decimal,
    an absent timestamp as an empty value, text in UTF-8 with lone surrogates as `\udXXX`.
    """
    source = letter.source
    said: dict[str, object] = {
        "topic": source.topic,
        "partition": source.partition,
        "offset": source.offset,
        "timestamp": "" if source.timestamp is None else source.timestamp,
        "stage": letter.stage,
        "exception": letter.exception,
        "message": letter.message,
        "attempts": letter.attempts,
    }
    return [
        *headers_of_the_record,
        *((DEAD_LETTER_PREFIX + name, str(it).encode("utf-8", "backslashreplace")) for name, it in said.items()),
    ]


def read_dead_letter(headers: Iterable[Header]) -> DeadLetter:
    """Read what the headers of a dead letter say of its last trip.

    Raises:
        Unreadable: the record is not a dead letter, or a header is missing or malformed.
    """
    # Of a header written twice the last is kept.
    said = {name: value for name, value in headers if name.startswith(DEAD_LETTER_PREFIX)}
    if not said:
        raise Unreadable("headers", f"not a dead letter: none starts with {DEAD_LETTER_PREFIX}")

    def text(name: str) -> str:
        value = said.get(DEAD_LETTER_PREFIX + name)
        if value is None:
            raise Unreadable(DEAD_LETTER_PREFIX + name, "missing")
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Unreadable(DEAD_LETTER_PREFIX + name, f"not UTF-8: {error.reason}") from None

    def integer(name: str) -> int:
        try:
            return int(text(name))
        except Unreadable:
            raise
        except ValueError:
            raise Unreadable(DEAD_LETTER_PREFIX + name, "expected an integer in decimal") from None

    try:
        return DeadLetter(
            stage=text("stage"),
            exception=text("exception"),
            message=text("message"),
            attempts=integer("attempts"),
            source=Source(
                topic=text("topic"),
                partition=integer("partition"),
                offset=integer("offset"),
                timestamp=integer("timestamp") if text("timestamp") else None,
            ),
        )
    except ValidationError as error:
        raise first_fault(error) from None


def _model(model: type[_Model], value: object) -> _Model:
    if not isinstance(value, dict):
        raise Unreadable("value", f"expected a JSON object, got {kind(value)}")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise first_fault(error) from None

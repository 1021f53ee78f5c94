"""What a Kafka message says, past the gaps in what its client says of it."""

from __future__ import annotations

from typing import TypeVar

from confluent_kafka import Message

from worker.records import Headers

Value = TypeVar("Value")


def known(value: Value | None) -> Value:
    """Return what a message without an error always has: its topic, partition and offset."""
    assert value is not None
    return value


def headers_of(message: Message[bytes, bytes]) -> Headers | None:
    """Return a message's headers; None where the client can't give them: a name among them is not UTF-8."""
    try:
        headers = message.headers() or []
    except (SystemError, UnicodeDecodeError):
        return None  # seen: the client fails to make a string of the name
    pairs = headers.items() if isinstance(headers, dict) else headers
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs)

"""Changes to a record that leave it JSON, since hardly any change of a byte does."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.fuzz.records import SEPARATOR
from tests.fuzz.seeds import EVENTS

FIELDS = sorted({field for event in EVENTS for field in event})
ODD = (
    "\ud800",
    "\udc00",
    "😀",
    "\u200b",
    "\u0301",
    "\x00",
    "\ufeff",
    "\u3000",
    "東",
    ". ",
    "\n\n",
    "I",
    " ",
    '"',
    "x" * 90,
)


def change(data: bytes, random: Random) -> bytes | None:
    """Return fuzzed bytes with one field of one record changed; None where that record is no JSON object."""
    values = data[1:].split(SEPARATOR)
    place = random.randrange(len(values))
    try:
        event = json.loads(values[place])
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict):
        return None
    text = event.get("text")
    if isinstance(text, str) and random.random() < 0.5:
        event["text"] = _spliced(text, random)
    else:
        field = random.choice(FIELDS)
        event[field] = random.choice([other[field] for other in EVENTS if field in other])
    values[place] = _written(event, random)
    return data[:1] + SEPARATOR.join(values)


def _spliced(text: str, random: Random) -> str:
    start, end = sorted(random.randint(0, len(text)) for _ in range(2))
    between = random.choice((*ODD, "", text[start:end] * 2))
    return text[:start] + between + text[random.choice((start, end)) :]


def _written(event: dict[str, Any], random: Random) -> bytes:
    return json.dumps(event, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")

"""Awkward records to start from, our own words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.fuzz.records import (
    HEADERS_LOST,
    MOST_BYTES,
    MOST_LABELS,
    OVERLAPS,
    SEPARATOR,
    TOMBSTONE,
    Target,
)

TEXT = "Ines Okoro took the night ferry from Harwich to Hoek van Holland on 3 May."
ASTRAL = "Zoë 😀 Okoro met 𝓐da in São Paulo 👩‍👩‍👧 on 3 May."
PLAIN = (
    TEXT.encode(),
    ASTRAL.encode(),
    b"",
    b"   \n\t",
    "\ufeffInes in Harwich".encode(),
    "\ufeff\ufeff".encode(),
    b"Ines\x00 in\x00Harwich",
    "\u200b\u200b \u00ad".encode(),
    b"caf\xe9 in Harwich",
    b"\xed\xa0\x80 in Harwich",
    "東京の田中さんは大阪へ行った。".encode(),
    "Ines\u0301\u0327 i\u202en H\ufe0farwich".encode(),
    (TEXT + " ").encode() * 7,
    b"a" * 700,
    b"Ines " * 20 + ("x" * 400).encode(),
    b"x" * (MOST_BYTES + 1),
)
EVENTS: tuple[dict[str, Any], ...] = (
    {"text": TEXT},
    {"text": TEXT, "id": 1042, "labels": ["person", "city"], "threshold": 0.4, "overlap": "nested", "meta": {"a": [1]}},
    {"text": TEXT, "id": "ferry-7", "labels": {"p": "a person", "c": "a city"}, "threshold": {"p": 0.6, "x": 0}},
    {"text": TEXT, "labels": ["person", "person"], "overlap": "multi", "threshold": 0},
    {"text": TEXT, "labels": [], "threshold": 1},
    {"text": TEXT, "labels": {}, "threshold": {}},
    {"text": TEXT, "labels": None, "threshold": None, "overlap": None, "id": None, "meta": None},
    {"text": ASTRAL, "overlap": "nested", "meta": [1e-300, -0.0, 10**30, "😀", None, True]},
    {"text": "\ud83d Ines \ude00 in \ud800Harwich\udfff", "meta": "\udc00\ud800", "id": "\ud800"},
    {"text": "\x00Ines\x00 \x7f in Harwich"},
    {"text": ""},
    {"text": " \u3000 "},
    {"text": "\u200b"},
    {"text": (TEXT + " ") * 7, "threshold": 0.2, "labels": ["person", "city", "date"]},
    {"text": "word" * 200},
    {"text": "so " * 300},
    {"text": "<<ENT>> person <<SEP>> [CLS] Ines [SEP]", "labels": ["<<ENT>>", "[SEP]"]},
    {"text": TEXT, "labels": [f"kind {number}" for number in range(MOST_LABELS)], "threshold": 0.1},
    {"text": TEXT, "labels": [f"k{number}" for number in range(MOST_LABELS + 1)]},
    {"text": TEXT, "labels": ["a very long label " * 12]},
    {"text": TEXT, "labels": ["\u200b"]},
    {"text": TEXT, "labels": ["person", "\u00ad\u200b"]},
    {"text": TEXT, "labels": ["\ud800"]},
    {"text": TEXT, "labels": ["city", " "]},
    {"text": TEXT, "labels": {"city": "place", "town": "place"}},
    {"text": TEXT, "labels": {"city": ""}},
    {"text": TEXT, "labels": "city"},
    {"text": TEXT, "labels": [1]},
    {"text": TEXT, "threshold": 1.5},
    {"text": TEXT, "threshold": {"city": "0.5"}},
    {"text": TEXT, "threshold": True},
    {"text": TEXT, "overlap": "none"},
    {"text": TEXT, "overlap": "\ud800"},
    {"text": TEXT, "overlap": 1},
    {"text": TEXT, "id": 17.0},
    {"text": 17},
    {"id": 1},
)
RAW = (
    b"",
    b"null",
    b'"Ines"',
    b"[1]",
    b"{",
    b'{"text": "Ines',
    b'{"text": "Ines\n"}',
    b'{"text": "\\x"}',
    b'{"text": "\\ud8"}',
    b'{"text": "a",}',
    b'{"text": "a"} {}',
    b'{"text": "a", "text": "Ines", "labels": ["a"], "labels": null}',
    b'{"text": "a", "meta": NaN}',
    b'{"text": "a", "meta": -Infinity}',
    b'{"text": "a", "meta": 1e400}',
    b'{"text": "a", "threshold": 1e-400, "meta": 123456789012345678901234567890}',
    b'{"text": "a", "id": ' + b"9" * 900 + b"}",
    b'{"text": "a", "meta": ' + b"[" * 40 + b"]" * 40 + b"}",
    b'{"text": "a", "meta": ' + b"[" * 41 + b"]" * 41 + b"}",
    b'{"text": "a", "meta": ' + b"[" * 63 + b"]" * 63 + b"}",
    b'{"text": "a", "meta": ' + b"[" * 64 + b"]" * 64 + b"}",
    b'{"a":' * 100 + b"1" + b"}" * 100,
    b'{"text": "\\ud83d\\ude00 Ines \\ud83d\\ud83d in Harwich"}',
    '\ufeff{"text": "Ines"}'.encode(),
    b'{"text": "caf\xe9"}',
    b'{"text": "Ines \xed\xa0\x80"}',
    b'{"text": "Ines \xe2\x82"}',
)


def seeds(target: Target) -> Iterator[bytes]:
    """Return each awkward record alone in several ways, and then many in one micro-batch."""
    events = [json.dumps(event).encode() for event in EVENTS]
    for value in PLAIN:
        yield target.choice(input_format="text") + value
        yield target.choice(input_format="text", overlap="multi", model="deberta") + value
    for value in (*events, *RAW):
        yield target.choice() + value
        yield target.choice(overlap="nested", model="deberta", small=True) + value
    unprepared = next(event for event in events if b"very long label" in event)
    for overlap in OVERLAPS:
        yield target.choice(overlap=overlap) + SEPARATOR.join((events[0], TOMBSTONE, unprepared, events[1]))
        yield target.choice(overlap=overlap, model="deberta") + SEPARATOR.join((HEADERS_LOST, *events[2:4], b"{"))

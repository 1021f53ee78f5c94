"""What a reader finds on the topics of answers, and what must never be found there: a double, an inversion."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import Message

from schemas.codec import decode_entity_event, read_dead_letter
from schemas.events import event_id
from tests.end_to_end.conftest import Stream, headers_of


class Source(NamedTuple):
    """A record of the input topic."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"


class Place(NamedTuple):
    """A partition of a topic of answers."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Answer:
    """An entity event or a dead letter.

    Attributes:
        stage: why it is a dead letter; None for an entity event.
        content: its bytes, to compare repeats by.
    """

    source: Source
    place: Place
    offset: int
    text_id: str | None
    stage: str | None
    attempts: int
    content: bytes


def read_answer(stream: Stream, message: Message) -> Answer:
    """Return what a message of `entities` or `texts-dlq` answers.

    Raises:
        AssertionError: it doesn't answer a record of the stream's input, or is named after another.
        Unreadable: it is no entity event or dead letter at all.
    """
    topic, partition, offset, value = message.topic(), message.partition(), message.offset(), message.value() or b""
    assert topic is not None
    assert partition is not None
    assert offset is not None
    place = Place(topic, partition)
    if topic == stream.dead_letters:
        letter = read_dead_letter(headers_of(message))
        source, text_id, stage, attempts = letter.source, id_of(value), letter.stage, letter.attempts
    else:
        event = decode_entity_event(value)
        source, stage, attempts = event.source, None, 0
        text_id = None if event.text_id is None else str(event.text_id)
        named = event_id(source.topic, source.partition, source.offset)
        assert event.id == named, f"{place}, offset {offset}: the event of {named} is called {event.id}"
    assert source.topic == stream.texts, f"{place}, offset {offset}: answers a record of {source.topic}"
    return Answer(
        Source(source.partition, source.offset),
        place,
        offset,
        text_id,
        stage,
        attempts,
        value if stage is None else b"",
    )


def id_of(value: bytes) -> str | None:
    """Return the `id` of a text event's bytes; None where it has none or can't be read."""
    try:
        found = json.loads(value)
    except ValueError:
        return None
    return str(found["id"]) if isinstance(found, dict) and "id" in found else None


class Ledger:
    """Takes answers in the order in which a reader gets them, and says what is wrong with one.

    An answer is out of order where a later record of its input partition was answered before it in the same
    partition of the same topic. The first answer to a record counts alone: a repeat stands wherever it stands.
    """

    def __init__(self) -> None:
        self.answers: dict[Source, Answer] = {}
        self.times: Counter[Source] = Counter()
        self.doubled: list[str] = []
        self.differing: list[str] = []
        self.out_of_order: list[str] = []
        self._last: dict[tuple[Place, int], int] = {}

    def take(self, answer: Answer) -> None:
        """Enter an answer."""
        self.times[answer.source] += 1
        if first := self.answers.get(answer.source):
            where = f"text {answer.text_id} ({answer.source})"
            self.doubled.append(f"{where}: {first.place} {first.offset} and {answer.place} {answer.offset}")
            if (first.stage, first.content) != (answer.stage, answer.content):
                self.differing.append(f"{where}: {_said(first)}, then {_said(answer)}")
            return
        self.answers[answer.source] = answer
        line = (answer.place, answer.source.partition)
        last = self._last.get(line, -1)
        if answer.source.offset < last:
            where = f"text {answer.text_id} ({answer.source})"
            self.out_of_order.append(f"{where}: in {answer.place} behind {answer.source.partition}:{last}")
        self._last[line] = max(last, answer.source.offset)


def _said(answer: Answer) -> str:
    return f"dead letter ({answer.stage})" if answer.stage else answer.content.decode()

"""The dead-letter topic as it is read: to the end that it had at the start, at read_committed, or one record of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from schemas.unreadable import Unreadable
from worker.clients import new_reader
from worker.config import Settings
from worker.dead_letters import Content, Letter, NoLetter, Place, read_letter
from worker.messages import headers_of, known

POLL_S = 0.2
TIMEOUT_S = 10.0
FETCH_WAIT_MS = 50
SILENCE_S = 30.0
"""How long a broker that owes records may say nothing."""


class Span(NamedTuple):
    """Offsets of a partition, from the first to the one after the last."""

    start: int
    end: int


def new_letter_reader(settings: Settings, *, group: str = "reader") -> Consumer:
    """Make a consumer that is told where a partition ends; it commits nothing by itself.

    Raises:
        ConfigError: librdkafka refuses a property.
    """
    # A request that waits for more at the end of one partition holds up the first one for the next.
    return new_reader(settings, group=group, **{"enable.partition.eof": True, "fetch.wait.max.ms": FETCH_WAIT_MS})


def spans(reader: Consumer, topic: str) -> dict[int, Span]:
    """Return what can be read now of each partition of a topic that is there.

    The end is where the first transaction that is still open begins.

    Raises:
        KafkaException: the broker didn't say.
    """
    found = reader.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
    if found.error:
        raise KafkaException(found.error)
    return {
        number: Span(*reader.get_watermark_offsets(TopicPartition(topic, number), timeout=TIMEOUT_S))
        for number in sorted(found.partitions)
    }


def read_letters(reader: Consumer, topic: str, within: Mapping[int, Span]) -> Iterator[Letter | NoLetter]:
    """Yield the committed records of these spans, one partition after the other.

    Raises:
        KafkaException: the topic can't be read.
    """
    for number, span in within.items():
        if span.start >= span.end:
            continue
        reader.assign([TopicPartition(topic, number, span.start)])
        while (message := _next(reader)) is not None:
            offset = known(message.offset())
            if offset < span.end:
                yield _letter(message)
            if offset + 1 >= span.end:
                break


def letter_at(reader: Consumer, topic: str, place: Place) -> Letter | NoLetter | None:
    """Return the record at a place of the dead-letter topic; None where there is none.

    Raises:
        KafkaException: the topic can't be read.
    """
    message = record_at(reader, topic, place)
    return None if message is None else _letter(message)


def record_at(reader: Consumer, topic: str, place: Place) -> Message[bytes, bytes] | None:
    """Return the committed record at a place of a topic; None where there is none, or no such topic.

    Raises:
        KafkaException: the topic can't be read.
    """
    # The whole list, since asking for a topic by name creates it on a broker that creates topics by itself.
    topics = reader.list_topics(timeout=TIMEOUT_S).topics
    if topic not in topics or place.partition not in topics[topic].partitions:
        return None
    low, high = reader.get_watermark_offsets(TopicPartition(topic, place.partition), timeout=TIMEOUT_S)
    if not low <= place.offset < high:
        return None
    reader.assign([TopicPartition(topic, *place)])
    message = _next(reader)
    return message if message is not None and message.offset() == place.offset else None


def _next(reader: Consumer) -> Message[bytes, bytes] | None:
    """Return the next record of the one partition assigned; None at its end."""
    deadline = time.monotonic() + SILENCE_S
    while time.monotonic() < deadline:
        message = reader.poll(POLL_S)
        if message is None:
            continue
        error = message.error()
        if error is None:
            return message
        if error.code() == KafkaError._PARTITION_EOF:
            return None
        raise KafkaException(error)
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no record came in {SILENCE_S:.0f} s"))


def _letter(message: Message[bytes, bytes]) -> Letter | NoLetter:
    place = Place(known(message.partition()), known(message.offset()))
    headers = headers_of(message)
    content = Content(message.key(), message.value(), headers or ())
    if headers is None:
        return NoLetter(place, content, "headers: a header's name is not UTF-8")
    try:
        return read_letter(place, content)
    except Unreadable as error:
        return NoLetter(place, content, str(error))

"""A topic of entity events on the screen, each text looked up where its event says it stands."""

from __future__ import annotations

import threading
import time

import structlog
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException, Message, TopicPartition
from rich.console import Console
from rich.text import Text

from schemas.codec import decode_entity_event, decode_text_event
from schemas.events import EntityEvent, Source
from schemas.unreadable import Unreadable
from worker.clients import new_reader
from worker.config import Settings
from worker.highlight import highlighted, printable
from worker.topics import require

log = structlog.get_logger()

POLL_S = 0.2
FETCH_TIMEOUT_S = 5.0


def tail_events(
    settings: Settings,
    *,
    from_start: bool,
    until_end: bool,
    max_events: int | None,
    console: Console,
    stop: threading.Event,
) -> int:
    """Print the events of the output topic as they come; returns how many.

    Args:
        settings: of them the broker's address, the topics and the formats.
        from_start: begin with the oldest event, not with the next.
        until_end: stop where the topic ended when the command began.
        max_events: stop after so many.
        console: where to print.
        stop: set it to end.

    Raises:
        BrokerUnreachableError: no broker answers.
        ConfigError: the topic isn't there, or librdkafka refuses a property.
        KafkaException: the topic can't be read.
    """
    require(settings, settings.output_topic)
    reader = new_reader(settings)
    texts = SourceTexts(settings)
    try:
        parts = _parts(reader, settings.output_topic, from_start=from_start)
        ends = {part.partition: reader.get_watermark_offsets(part, timeout=FETCH_TIMEOUT_S) for part in parts}
        left = {number for number, (low, high) in ends.items() if high > low} if until_end else None
        reader.assign(parts)
        shown = 0
        while not stop.is_set() and left != set() and shown != max_events:
            message = reader.poll(POLL_S)
            if left is not None:
                left = {
                    number for number in left if not _at_end(reader, settings.output_topic, number, ends[number][1])
                }
            if message is None:
                continue
            if error := message.error():
                raise KafkaException(error)
            console.print(_shown(message, texts, console.width if console.is_terminal else None))
            shown += 1
        return shown
    finally:
        reader.close()
        texts.close()


class SourceTexts:
    """Texts by their place in the input topic. Looking up one after the other of a partition is one stream."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._consumer = new_reader(settings)
        self._place: tuple[str, int, int] | None = None

    def find(self, source: Source) -> str | None:
        """Return the text of a record; None where it isn't in the topic any more or can't be read."""
        if self._place != (source.topic, source.partition, source.offset):
            self._consumer.assign([TopicPartition(source.topic, source.partition, source.offset)])
        self._place = None
        deadline = time.monotonic() + FETCH_TIMEOUT_S
        while time.monotonic() < deadline:
            message = self._consumer.poll(POLL_S)
            if message is None:
                continue
            if message.error() or message.offset() != source.offset:
                return None
            self._place = (source.topic, source.partition, source.offset + 1)
            try:
                return decode_text_event(message.value() or b"", input_format=self._settings.input_format).text
            except Unreadable:
                return None
        return None

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()


def _parts(reader: Consumer, topic: str, *, from_start: bool) -> list[TopicPartition]:
    found = reader.list_topics(topic, timeout=FETCH_TIMEOUT_S).topics[topic]
    if found.error:
        raise KafkaException(found.error)
    start = OFFSET_BEGINNING if from_start else OFFSET_END
    return [TopicPartition(topic, number, start) for number in found.partitions]


def _at_end(reader: Consumer, topic: str, number: int, end: int) -> bool:
    return reader.position([TopicPartition(topic, number)])[0].offset >= end


def _shown(message: Message[bytes, bytes], texts: SourceTexts, width: int | None) -> Text:
    place = f"{message.topic()}:{message.partition()}:{message.offset()}"
    value = message.value()
    if value is None:
        return Text(f"{place}  (tombstone)", style="dim")
    try:
        event = decode_entity_event(value)
    except Unreadable as error:
        return Text(f"{place}  not an entity event: {error}", style="red")
    text = texts.find(event.source)
    if text is None or event.offset_unit != "code_points":
        return Text(printable(f"{event.id}  {_listed(event)}"))
    head = Text(f"{event.id}  ", style="dim")
    return head.append_text(highlighted(text, event.entities, width=width and max(20, width - len(head))))


def _listed(event: EntityEvent) -> str:
    return ", ".join(f"{entity.text} ({entity.label} {entity.score:.2f})" for entity in event.entities) or "no entities"

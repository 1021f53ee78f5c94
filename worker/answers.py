"""What one answer becomes on the wire: an entity event, a dead letter or a tombstone, and where it goes."""

from dataclasses import dataclass, replace

from packing import Result
from schemas.codec import dead_letter_headers, encode_entity_event
from schemas.events import DeadLetter, Entity, EntityEvent, ModelInfo, Source, event_id
from schemas.offset_units import convert
from worker.config import Settings
from worker.forward import Answer
from worker.records import Headers, OutgoingMessage, Record
from worker.tasks import Failure, Task, failure_of
from worker.topics import Topic, Topics


@dataclass(frozen=True, slots=True)
class Written:
    """An answer, in the form in which it can be published, and its message."""

    answer: Answer
    message: OutgoingMessage


@dataclass(frozen=True, slots=True)
class Writer:
    """Turns answers into messages for the topics at hand.

    Attributes:
        model: the model that found the entities, as every event names it.
    """

    settings: Settings
    topics: Topics
    model: ModelInfo

    def write(self, answer: Answer) -> Written:
        """Return the one message that answers a record; what can't be an event becomes a dead letter."""
        record = answer.task.record
        match answer.outcome:
            case None:
                return Written(answer, self._to(self.topics.output, record))
            case Failure() as failure:
                return Written(answer, self._dead_letter(record, failure, answer.refused))
            case Result() as result:
                try:
                    value = encode_entity_event(entity_event(answer.task, result, self.model, self.settings))
                except ValueError as error:
                    return self.write(replace(answer, outcome=failure_of("encode", error)))
                message = replace(self._to(self.topics.output, record), value=value)
                limit = self.topics.output.max_message_bytes
                if message.size <= limit:
                    return Written(answer, message)
                reason = f"an entity event of {message.size} bytes, more than {message.topic} takes ({limit})"
                return self.write(replace(answer, outcome=Failure("result_too_large", "ResultTooLarge", reason)))

    def _dead_letter(self, record: Record, failure: Failure, refused: int) -> OutgoingMessage:
        topic = self.topics.dead_letters
        letter = DeadLetter(
            stage=failure.stage,
            exception=failure.exception,
            message=failure.message,
            attempts=failure.attempts,
            source=source_of(record),
        )
        # The event time may be what the broker refused; the headers say it in any case.
        timestamp = None if failure.stage == "result_refused" or refused else record.timestamp
        whole = replace(
            self._to(topic, record), value=record.value, headers=_headers(letter, record.headers), timestamp=timestamp
        )
        if whole.size <= topic.max_message_bytes and not refused:
            return whole
        # Too large for its own topic, or refused: where to find the record, and why it failed, is left to say.
        return replace(whole, key=None, value=None, headers=_headers(letter, ()))

    def _to(self, topic: Topic, record: Record) -> OutgoingMessage:
        return OutgoingMessage(
            topic=topic.name,
            partition=place(record, self.topics.input.partitions, topic.partitions),
            timestamp=record.timestamp,
            key=record.key,
            value=None,
            headers=record.headers,
        )


def refuse(answer: Answer, reason: str) -> Answer:
    """Return the next form of an answer that the broker refused: its dead letter, then that without its value."""
    if isinstance(answer.outcome, Failure):
        return replace(answer, refused=answer.refused + 1)
    return replace(answer, outcome=Failure("result_refused", "ResultRefused", reason))


def place(record: Record, sources: int, targets: int) -> int | None:
    """Return the partition that answers a record, None to let its key decide.

    The same number if both topics have as many; else by key, as Java clients do, so that joins hold; and
    without a key by the record's own partition, so that order is kept.
    """
    number = record.partition.number
    if sources == targets and number < targets:
        return number
    return number % targets if record.key is None else None


def entity_event(task: Task, result: Result, model: ModelInfo, settings: Settings) -> EntityEvent:
    """Return the entity event of a text."""
    event, record = task.event, task.record
    if event is None:
        raise ValueError("a record without a text has no entity event")
    edges = [edge for entity in result.entities for edge in (entity.start, entity.end)]
    offsets = iter(convert(event.text, edges, settings.offset_unit))
    return EntityEvent(
        id=event_id(*record.partition, record.offset),
        text_id=event.id,
        source=source_of(record),
        entities=[
            Entity(start=next(offsets), end=next(offsets), text=found.text, label=found.label, score=found.score)
            for found in result.entities
        ],
        offset_unit=settings.offset_unit,
        model=model,
        windows=result.windows,
        label_chunks=result.label_chunks,
        meta=event.meta,
    )


def source_of(record: Record) -> Source:
    """Return where a record stands."""
    return Source(
        topic=record.partition.topic,
        partition=record.partition.number,
        offset=record.offset,
        timestamp=record.timestamp,
    )


def _headers(letter: DeadLetter, headers: Headers) -> Headers:
    return tuple(dead_letter_headers(letter, headers))

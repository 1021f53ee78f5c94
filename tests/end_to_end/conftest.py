"""A stream of its own for each test: topics, a group, workers, and what they left behind."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message, Producer

from schemas.codec import decode_entity_event, read_dead_letter
from schemas.events import DeadLetter, EntityEvent
from tests.conftest import Kafka
from tests.end_to_end.workers import FAST_WORKER, WorkerProcess, wait_until
from tests.kafka_server.read_back import Committed, committed, end_offsets, open_transactions, read_topic
from tests.kafka_server.topics import MakeTopic


@dataclass
class Stream:
    """Three topics and the workers between them."""

    bootstrap: str
    group: str
    texts: str
    entities: str
    dead_letters: str
    folder: Path
    workers: list[WorkerProcess] = field(default_factory=list)

    def produce(self, values: Iterable[dict[str, Any] | bytes | None], *, partitions: int, keyed: bool = True) -> None:
        """Produce values in turn to the partitions, the key being the value's number."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5})
        for number, value in enumerate(values):
            encoded = json.dumps(value).encode() if isinstance(value, dict) else value
            while True:
                try:
                    key = str(number).encode() if keyed else None
                    producer.produce(self.texts, value=encoded, key=key, partition=number % partitions)
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(30) == 0

    def environment(self) -> dict[str, str]:
        """Return the settings that make a command work on this stream, as environment variables."""
        return {
            "GLISTREAM_BOOTSTRAP_SERVERS": self.bootstrap,
            "GLISTREAM_GROUP_ID": self.group,
            "GLISTREAM_INPUT_TOPIC": self.texts,
            "GLISTREAM_OUTPUT_TOPIC": self.entities,
            "GLISTREAM_DEAD_LETTER_TOPIC": self.dead_letters,
        }

    def start(
        self, settings: Mapping[str, object] | None = None, command: Sequence[str] = FAST_WORKER
    ) -> WorkerProcess:
        """Start a worker; settings by their names, in lower case."""
        environment = self.environment() | {
            name if name.isupper() else f"GLISTREAM_{name.upper()}": str(value)
            for name, value in (settings or {}).items()
        }
        worker = WorkerProcess(self.folder / f"worker-{len(self.workers)}.log", environment, command)
        self.workers.append(worker)
        return worker

    def events(self) -> list[EntityEvent]:
        """Return the entity events that are committed, by partition and offset."""
        return [decode_entity_event(message.value() or b"") for message in self.messages()]

    def messages(self, topic: str | None = None) -> list[Message]:
        return read_topic(self.bootstrap, topic or self.entities)

    def letters(self) -> list[tuple[Message, DeadLetter]]:
        """Return the dead letters that are committed, by partition and offset, each with what it says."""
        dead = self.messages(self.dead_letters)
        return [(message, read_dead_letter(headers_of(message))) for message in dead]

    def committed(self) -> dict[int, Committed]:
        return committed(self.bootstrap, self.group, self.texts)

    def lag(self) -> int:
        """Return how many records are not committed yet."""
        try:
            done = self.committed()
        except Exception:
            return -1
        ends = end_offsets(self.bootstrap, self.texts)
        return sum(end.high_watermark - (done[number].offset if number in done else 0) for number, end in ends.items())

    def wait_until_done(self, timeout_s: float = 120) -> None:
        """Return once everything produced is committed."""
        wait_until(
            lambda: self.lag() == 0 or not any(worker.running for worker in self.workers),
            timeout_s,
            lambda: f"{self.lag()} records:\n" + "\n".join(worker.tail() for worker in self.workers),
        )
        assert self.lag() == 0, "\n".join(worker.tail() for worker in self.workers)

    def open_transactions(self) -> list[int]:
        return open_transactions(self.bootstrap, self.entities) + open_transactions(self.bootstrap, self.dead_letters)


def headers_of(message: Message) -> list[tuple[str, bytes | None]]:
    """Return a message's headers, as the client gives them to a reader of bytes."""
    headers = message.headers() or []
    assert isinstance(headers, list)
    return [(name, value if value is None or isinstance(value, bytes) else value.encode()) for name, value in headers]


@pytest.fixture
def make_stream(kafka: Kafka, make_topic: MakeTopic, group_id: str, tmp_path: Path) -> Iterator[Callable[..., Stream]]:
    """Return a function that makes a stream with so many partitions; its workers are killed after the test."""
    made: list[Stream] = []

    def make(partitions: int = 1) -> Stream:
        texts, entities, dead_letters = (make_topic(name, partitions) for name in ("texts", "entities", "texts-dlq"))
        stream = Stream(kafka.bootstrap, group_id, texts, entities, dead_letters, tmp_path)
        made.append(stream)
        return stream

    yield make
    for stream in made:
        for worker in stream.workers:
            worker.kill()

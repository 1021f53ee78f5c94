"""A file of text events to a topic, a line a record."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import BinaryIO

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from rich.console import Console
from rich.progress import Progress

from worker.clients import client_properties, enqueue, new_client
from worker.config import Settings
from worker.topics import require

PLAIN_LINE_EVERY = 10_000


def produce_lines(
    source: BinaryIO, settings: Settings, *, topic: str, key_field: str | None, console: Console
) -> Counter[str]:
    """Produce each line of a file to a topic and wait until the broker has them all.

    Blank lines are passed over. The value is the line as it is: whether it's a text event is the worker's to say.

    Args:
        source: the lines.
        settings: of them the broker's address and the client properties.
        topic: where to.
        key_field: field of the line's JSON object whose value becomes the record's key; none where unset.
        console: for the progress.

    Returns:
        how many lines were `produced`, `failed` and `blank`.

    Raises:
        BrokerUnreachableError: no broker answers.
        ConfigError: the topic isn't there, or librdkafka refuses a property.
    """
    require(settings, topic)
    properties = {"message.timeout.ms": 30_000} | client_properties(settings) | settings.producer_properties
    producer = new_client(Producer, properties | {"enable.idempotence": True, "partitioner": "murmur2_random"})
    counts: Counter[str] = Counter()
    faults: Counter[str] = Counter()

    def reported(error: KafkaError | None, _: Message[bytes, bytes] | None) -> None:
        counts["failed" if error else "produced"] += 1
        if error:
            faults[error.str()] += 1

    with Progress(console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task(f"to {topic}", total=_size(source))
        for number, line in enumerate(source, start=1):
            value = line.removesuffix(b"\n")
            if value.strip():
                try:
                    enqueue(producer, topic=topic, value=value, key=_key(value, key_field), on_delivery=reported)
                except KafkaException as error:
                    reported(error.args[0], None)
                producer.poll(0)
            else:
                counts["blank"] += 1
            progress.advance(bar, len(line))
            if not console.is_terminal and number % PLAIN_LINE_EVERY == 0:
                console.print(f"{number} lines read")
        producer.flush()
    for reason, times in faults.items():
        console.print(f"{times} lines failed: {reason}")
    return counts


def _key(value: bytes, field: str | None) -> bytes | None:
    if field is None:
        return None
    try:
        found = json.loads(value).get(field)
    except (ValueError, AttributeError, RecursionError):
        return None
    return None if found is None else str(found).encode("utf-8", "backslashreplace")


def _size(source: BinaryIO) -> int | None:
    name = getattr(source, "name", None)
    return Path(name).stat().st_size if isinstance(name, str) and Path(name).is_file() else None

"""Inputs that are themselves made of transactions: what was aborted is no text, and offsets have gaps."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

import pytest
from confluent_kafka import Producer

from tests.delivery.conftest import MakeStream
from tests.delivery.pace import pace
from tests.delivery.report import FULL, Report
from tests.delivery.verifier import verify
from tests.end_to_end.conftest import Stream
from tests.end_to_end.workers import wait_until
from tests.kafka_server.read_back import end_offsets
from tests.kafka_server.topics import unique

PARTITIONS: Final = 2


def transaction(producer: Producer, stream: Stream, numbers: Iterable[int], *, commit: bool) -> None:
    producer.begin_transaction()
    for number in numbers:
        value = json.dumps({"id": number, "text": f"Ann saw number {number}"})
        producer.produce(stream.texts, value=value, key=str(number), partition=number % PARTITIONS)
    if commit:
        producer.commit_transaction()
    else:
        producer.flush()
        producer.abort_transaction()


@pytest.mark.parametrize("start", ["before", "after"] if FULL else ["before"])
def test_only_what_was_committed_is_a_text(make_stream: MakeStream, report: Report, start: str) -> None:
    fault = "input written in transactions, some aborted"
    stream = make_stream(PARTITIONS)
    # Before the first text: it waits at an empty topic, and its reach is moved over gaps.
    if start == "before":
        stream.start(pace()).wait_for("partitions_assigned")
    producer = Producer({"bootstrap.servers": stream.bootstrap, "transactional.id": unique("texts")})
    producer.init_transactions()
    aborted = range(1_000_000, 1_000_100)
    for begin in range(0, 100, 10):
        transaction(producer, stream, range(begin, begin + 10), commit=True)
        transaction(producer, stream, aborted, commit=False)
    if start == "after":
        stream.start(pace())
    (worker,) = stream.workers
    wait_until(lambda: len(stream.events()) == 100 or not worker.running, 60, worker.tail)
    # Behind the last text there are aborted ones and markers: the next text is found behind these, too.
    transaction(producer, stream, range(100, 102), commit=True)
    wait_until(lambda: len(stream.events()) == 102 or not worker.running, 60, worker.tail)
    assert worker.stop() == 0, worker.tail()
    verdict = verify(stream, range(102))
    report.tried(fault)
    report.found(verdict, fault)
    verdict.assert_sound()
    # What is left to the group is the marker of the last transaction.
    ends = end_offsets(stream.bootstrap, stream.texts)
    assert {end.high_watermark - stream.committed()[number].offset for number, end in ends.items()} == {1}


def test_a_successor_passes_over_gaps_among_what_is_suspect(make_stream: MakeStream, report: Report) -> None:
    fault = "SIGKILL before a gap in the input"
    stream = make_stream(1)
    producer = Producer({"bootstrap.servers": stream.bootstrap, "transactional.id": unique("texts")})
    producer.init_transactions()
    numbers = [2 * number for number in range(40)]
    transaction(producer, stream, numbers[:20], commit=True)
    transaction(producer, stream, range(1_000_000, 1_000_100, 2), commit=False)
    killed = stream.start(pace(FORWARD_SECONDS=60))
    killed.wait_for("partitions_assigned")
    wait_until(lambda: '"until"' in stream.committed()[0].metadata, 30, killed.tail)
    killed.kill()
    successor = stream.start(pace())
    wait_until(lambda: len(stream.events()) == 20 or not successor.running, 60, successor.tail)
    transaction(producer, stream, numbers[20:], commit=True)
    wait_until(lambda: len(stream.events()) == 40 or not successor.running, 60, successor.tail)
    assert successor.stop() == 0, successor.tail()
    verdict = verify(stream, numbers)
    report.tried(fault)
    report.found(verdict, fault)
    verdict.assert_sound()

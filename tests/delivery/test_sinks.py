"""Topics that refuse, or are gone: the record is set aside, or waits; its neighbours and other partitions go on."""

from __future__ import annotations

import time
from typing import Final

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.delivery.answers import Source
from tests.delivery.conftest import MakeStream
from tests.delivery.pace import pace
from tests.delivery.report import FULL, Report
from tests.delivery.verifier import verify
from tests.end_to_end.conftest import Stream
from tests.end_to_end.test_bad_input import configure
from tests.end_to_end.workers import wait_until
from tests.kafka_server.topics import create_topic, delete_topics

PATIENCE_S: Final = 90.0
COUNT: Final = 60


def numbered(start: int, end: int, **more: object) -> list[dict[str, object] | bytes | None]:
    return [{"id": number, "text": f"Ann saw number {number}", **more} for number in range(start, end)]


def committed(stream: Stream, partition: int) -> int:
    """Return the committed offset; -1 while a transaction may still change it."""
    try:
        return stream.committed()[partition].offset
    except KafkaException:
        return -1


def finish(stream: Stream, report: Report, fault: str, *, dead_letters: tuple[Source, ...] = ()) -> None:
    """Wait until everything is answered, by the one worker that was started, and judge it."""
    stream.wait_until_done()
    (worker,) = stream.workers
    assert worker.stop() == 0, worker.tail()
    verdict = verify(stream, range(COUNT))
    report.tried(fault)
    report.found(verdict, fault)
    verdict.assert_sound(dead_letters=dead_letters)


def test_without_the_dead_letter_topic_one_partition_waits_and_the_other_goes_on(
    make_stream: MakeStream, report: Report
) -> None:
    fault = "dead-letter topic deleted"
    stream = make_stream(2)
    worker = stream.start(pace(max_record_bytes=500))
    worker.wait_for("partitions_assigned")
    delete_topics(stream.bootstrap, [stream.dead_letters])
    values = numbered(0, COUNT)
    values[20] = {"id": 20, "text": "Ann " * 200}
    stream.produce(values, partitions=2)
    worker.wait_for("publishing_in_trouble", timeout_s=PATIENCE_S)
    # The bad record is of partition 0: all of partition 1 is answered while it waits.
    wait_until(lambda: committed(stream, 1) == COUNT // 2, PATIENCE_S, worker.tail)
    assert committed(stream, 0) <= 10
    create_topic(stream.bootstrap, stream.dead_letters, 2)
    back = time.monotonic()
    wait_until(lambda: committed(stream, 0) > 10, PATIENCE_S, worker.tail)
    report.tried(fault, 0, recovery_s=time.monotonic() - back)
    finish(stream, report, fault, dead_letters=(Source(0, 10),))


@pytest.mark.skipif(not FULL, reason="at length only: that a topic is deleted is tried above")
def test_without_the_output_topic_all_waits_until_it_is_back(make_stream: MakeStream, report: Report) -> None:
    fault = "output topic deleted"
    stream = make_stream(2)
    worker = stream.start(pace())
    worker.wait_for("partitions_assigned")
    delete_topics(stream.bootstrap, [stream.entities])
    stream.produce(numbered(0, COUNT), partitions=2)
    worker.wait_for("publishing_in_trouble", timeout_s=PATIENCE_S)
    assert stream.lag() == COUNT
    create_topic(stream.bootstrap, stream.entities, 2)
    finish(stream, report, fault)


def test_an_event_larger_than_its_topic_takes_costs_no_neighbour(make_stream: MakeStream, report: Report) -> None:
    stream = make_stream(1)
    configure(stream, stream.entities, "max.message.bytes", "2000")
    values = numbered(0, COUNT)
    values[30] = {"id": 30, "text": "Ann", "meta": "x" * 3000}
    stream.produce(values, partitions=1)
    stream.start(pace())
    finish(stream, report, "entity event too large", dead_letters=(Source(0, 30),))
    assert [letter.stage for _, letter in stream.letters()] == ["result_too_large"]


def test_a_null_key_on_a_compacted_topic_costs_no_neighbour(make_stream: MakeStream, report: Report) -> None:
    stream = make_stream(1)
    configure(stream, stream.entities, "cleanup.policy", "compact")
    stream.produce(numbered(0, 30), partitions=1)
    stream.produce(numbered(30, 33), partitions=1, keyed=False)
    stream.produce(numbered(33, COUNT), partitions=1)
    stream.start(pace())
    finish(stream, report, "null key on a compacted topic", dead_letters=tuple(Source(0, at) for at in (30, 31, 32)))
    assert {letter.stage for _, letter in stream.letters()} == {"result_refused"}


@pytest.mark.parametrize("policy", ["fail", "earliest", "latest"] if FULL else ["latest"])
def test_offsets_that_expired_are_skipped_only_as_the_settings_say(
    make_stream: MakeStream, report: Report, policy: str
) -> None:
    fault = f"input offsets expired, out_of_range={policy}"
    stream = make_stream(1)
    stream.produce(numbered(0, COUNT), partitions=1)
    killed = stream.start(pace(FORWARD_SECONDS=60))
    killed.wait_for("partitions_assigned")
    killed.kill()
    stream.workers.clear()
    admin = AdminClient({"bootstrap.servers": stream.bootstrap})
    for deleted in admin.delete_records([TopicPartition(stream.texts, 0, 40)]).values():
        deleted.result(30)
    worker = stream.start(pace(out_of_range=policy))
    if policy == "fail":
        wait_until(lambda: not worker.running, PATIENCE_S, worker.tail)
        assert worker.returncode == 1
        assert f"the committed offset 0 is not in the topic any more (40 to {COUNT} are)" in worker.tail()
        assert stream.committed()[0].offset == 0
        report.tried(fault)
        return
    stream.wait_until_done()
    assert worker.stop() == 0, worker.tail()
    resumed = 40 if policy == "earliest" else COUNT
    (skipped,) = worker.lines("offsets_skipped")
    assert (skipped["committed"], skipped["resumed_at"]) == (0, resumed)
    assert [event.text_id for event in stream.events()] == list(range(resumed, COUNT))
    report.tried(fault)

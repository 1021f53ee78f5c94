"""What a worker does before it has read anything: broker, topics, first start, offsets out of range."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.end_to_end.conftest import Stream
from tests.end_to_end.workers import wait_until
from tests.kafka_server.server import KafkaServer, free_port
from tests.kafka_server.topics import create_topic, delete_topics, unique
from worker import checkpoint
from worker.checkpoint import Checkpoint

MakeStream = Callable[..., Stream]
QUICK = {"consumer_properties": '{"session.timeout.ms": 2000, "heartbeat.interval.ms": 500}'}


def test_a_missing_topic_is_named_with_how_to_create_it(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    worker = stream.start({"output_topic": "nowhere"})
    wait_until(lambda: not worker.running, 60, worker.tail)
    assert worker.returncode == 2
    assert "topic nowhere not there" in worker.tail()
    assert "--create-topics" in worker.tail()
    assert stream.lag() <= 0


def test_missing_topics_are_created_on_request(make_stream: MakeStream) -> None:
    stream = make_stream(3)
    stream.entities = unique("made")
    worker = stream.start({"create_topics": "true"})
    stream.produce([{"text": "Ann", "id": 1}], partitions=1)
    try:
        stream.wait_until_done()
        assert worker.stop() == 0, worker.tail()
        assert [event.text_id for event in stream.events()] == [1]
        assert {line["partitions"] for line in worker.lines("topic_created")} == {3}
    finally:
        delete_topics(stream.bootstrap, [stream.entities])


def test_workers_that_start_together_create_the_topics_once(make_stream: MakeStream) -> None:
    stream = make_stream(2)
    stream.entities = unique("made")
    workers = [stream.start({"create_topics": "true"}) for _ in range(3)]
    try:
        for worker in workers:
            worker.wait_for("worker_started")
        assert {worker.stop() for worker in workers} == {0}
    finally:
        delete_topics(stream.bootstrap, [stream.entities])


def test_a_worker_told_to_stop_before_it_found_a_broker_leaves_in_order(tmp_path: Path) -> None:
    stream = Stream(f"127.0.0.1:{free_port()}", "group", "texts", "entities", "texts-dlq", tmp_path)
    worker = stream.start()
    worker.wait_for("broker_unreachable")
    assert worker.stop() == 0


def test_a_worker_waits_for_a_broker_that_is_not_there_yet(kafka_jars: Path, tmp_path: Path) -> None:
    port = free_port()
    stream = Stream(f"127.0.0.1:{port}", "group", "texts", "entities", "texts-dlq", tmp_path)
    worker = stream.start()
    worker.wait_for("broker_unreachable")
    with KafkaServer(tmp_path / "kafka", port=port):
        for topic in (stream.texts, stream.entities, stream.dead_letters):
            create_topic(stream.bootstrap, topic)
        # It may have looked before the topics were there: then it has left, and is started again as in production.
        if not worker.running:
            worker = stream.start()
        stream.produce([{"text": "Ann", "id": 1}], partitions=1)
        wait_until(lambda: stream.lag() == 0 or not worker.running, 60, worker.tail)
        if not worker.running:
            worker = stream.start()
            stream.wait_until_done()
        assert [event.text_id for event in stream.events()] == [1]
        assert worker.stop() == 0, worker.tail()


def test_start_latest_leaves_out_what_was_there_and_is_kept_by_the_next_worker(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    stream.produce([{"text": "Ann", "id": "before"}], partitions=1)
    first = stream.start({"start": "latest", **QUICK})
    first.wait_for("partitions_assigned")
    first.kill()
    stream.produce([{"text": "Bob", "id": "after"}], partitions=1)
    # The first worker read nothing, but where it started is committed.
    second = stream.start({"start": "latest", **QUICK})
    stream.wait_until_done()
    assert second.stop() == 0, second.tail()
    assert [event.text_id for event in stream.events()] == ["after"]


@pytest.mark.parametrize("age_s", [5, 3600])
def test_a_partition_without_a_commit_starts_with_its_siblings_or_at_the_earliest(
    make_stream: MakeStream, age_s: int
) -> None:
    stream = make_stream(2)
    stream.produce([{"text": "Ann", "id": "before"}], partitions=1)
    # Partition 1 has the mark that a sibling made when the group first started; partition 0 has none.
    mark = Checkpoint("sibling", 0, clean=True, first_start=round((time.time() - age_s) * 1000))
    offsets = [TopicPartition(stream.texts, 1, 0, checkpoint.encode(mark))]
    sibling = Consumer({"bootstrap.servers": stream.bootstrap, "group.id": stream.group})
    sibling.commit(offsets=offsets, asynchronous=False)
    sibling.close()
    worker = stream.start({"start": "latest"})
    worker.wait_for("partitions_assigned")
    stream.produce([{"text": "Bob", "id": "after"}], partitions=1)
    stream.wait_until_done()
    assert worker.stop() == 0, worker.tail()
    expected = ["after"] if age_s < 60 else ["before", "after"]
    assert [event.text_id for event in stream.events()] == expected


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_offset_that_is_gone_stops_the_worker_or_is_skipped_aloud(make_stream: MakeStream, protocol: str) -> None:
    quick = QUICK if protocol == "classic" else {"group_protocol": "consumer"}
    stream = make_stream(1)
    stream.produce([{"text": "Ann", "id": number} for number in range(10)], partitions=1)
    stream.start({"FORWARD_SECONDS": 30, **quick}).wait_for("partitions_assigned")
    stream.workers[0].kill()
    admin = AdminClient({"bootstrap.servers": stream.bootstrap})
    for deleted in admin.delete_records([TopicPartition(stream.texts, 0, 4)]).values():
        deleted.result(30)

    failing = stream.start(quick)
    wait_until(lambda: not failing.running, 60, failing.tail)
    assert failing.returncode == 1
    assert "the committed offset 0 is not in the topic any more (4 to 10 are)" in failing.tail()

    skipping = stream.start({"out_of_range": "earliest", **quick})
    stream.wait_until_done()
    assert skipping.stop() == 0, skipping.tail()
    (skipped,) = skipping.lines("offsets_skipped")
    assert (skipped["committed"], skipped["resumed_at"]) == (0, 4)
    assert [event.text_id for event in stream.events()] == [4, 5, 6, 7, 8, 9]


def test_what_is_in_hand_is_published_before_an_offset_that_is_gone_is_skipped(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    stream.produce([{"text": "Ann", "id": number} for number in range(3)], partitions=1)
    # A long forward holds the first records in hand, paused; meanwhile those that come next are deleted.
    pace = {"out_of_range": "earliest", "FORWARD_SECONDS": 4, "buffer_records": 3, "batch_tokens": 16}
    worker = stream.start(pace)
    worker.wait_for("partitions_assigned")
    time.sleep(1)
    stream.produce([{"text": "Ann", "id": number} for number in range(3, 10)], partitions=1)
    admin = AdminClient({"bootstrap.servers": stream.bootstrap})
    for deleted in admin.delete_records([TopicPartition(stream.texts, 0, 8)]).values():
        deleted.result(30)
    stream.wait_until_done()
    assert worker.stop() == 0, worker.tail()
    ids = [event.text_id for event in stream.events()]
    assert ids[:3] == [0, 1, 2]
    assert ids[-2:] == [8, 9]
    assert ids == sorted(set(ids), key=ids.index)

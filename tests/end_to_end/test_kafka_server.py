"""The real broker keeps the promises that the worker's delivery stands on."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.conftest import Kafka
from tests.kafka_server import background, read_back
from tests.kafka_server.jars import KafkaUnavailableError
from tests.kafka_server.read_back import Committed, EndOffsets
from tests.kafka_server.server import KafkaServer, free_port
from tests.kafka_server.settings import HOST
from tests.kafka_server.topics import MakeTopic, create_topic, unique

PROTOCOLS = ("classic", "consumer")
DEADLINE_S = 60.0


@contextmanager
def joined(bootstrap: str, group: str, topic: str, protocol: str) -> Iterator[Consumer]:
    """Yield a consumer that has joined the group and holds every partition of the topic."""
    assigned: list[TopicPartition] = []
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic], on_assign=lambda _, partitions: assigned.extend(partitions))
    try:
        deadline = time.monotonic() + DEADLINE_S
        while not assigned:
            assert time.monotonic() < deadline, "the consumer was assigned nothing"
            consumer.poll(0.1)
        yield consumer
    finally:
        consumer.close()


@pytest.fixture
def transactional(kafka: Kafka) -> Producer:
    """A transactional producer with an id of its own, initialised."""
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "transactional.id": unique("tx"),
            "transaction.timeout.ms": 10_000,
        }
    )
    producer.init_transactions(DEADLINE_S)
    return producer


def values(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[bytes | None]:
    return [message.value() for message in read_back.read_topic(bootstrap, topic, isolation=isolation)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_commit_metadata_comes_back_from_a_transaction(
    kafka: Kafka, make_topic: MakeTopic, group_id: str, transactional: Producer, protocol: str
) -> None:
    source, target = make_topic("texts", partitions=2), make_topic("entities")
    metadata = '{"v":1,"run":"é","clean":false}'
    with joined(kafka.bootstrap, group_id, source, protocol) as consumer:
        transactional.begin_transaction()
        transactional.produce(target, b"event")
        offsets = [TopicPartition(source, 0, 7, metadata), TopicPartition(source, 1, 9)]
        transactional.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), DEADLINE_S)
        transactional.commit_transaction()
        own = consumer.committed([TopicPartition(source, 0), TopicPartition(source, 1)], DEADLINE_S)
    assert [(found.offset, found.metadata or "") for found in own] == [(7, metadata), (9, "")]
    assert read_back.committed(kafka.bootstrap, group_id, source) == {
        0: Committed(7, metadata),
        1: Committed(9, ""),
    }
    assert values(kafka.bootstrap, target) == [b"event"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_offset_in_an_open_transaction_is_not_stable(
    kafka: Kafka, make_topic: MakeTopic, group_id: str, transactional: Producer, protocol: str
) -> None:
    source = make_topic("texts")
    with joined(kafka.bootstrap, group_id, source, protocol) as consumer:
        transactional.begin_transaction()
        offsets = [TopicPartition(source, 0, 3, "open")]
        transactional.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), DEADLINE_S)
        with pytest.raises(KafkaException) as refused:
            read_back.committed(kafka.bootstrap, group_id, source, timeout_s=1)
        transactional.abort_transaction()
    assert refused.value.args[0].code() == KafkaError._TIMED_OUT
    assert read_back.committed(kafka.bootstrap, group_id, source) == {}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_that_left_cannot_commit(
    kafka: Kafka, make_topic: MakeTopic, group_id: str, transactional: Producer, protocol: str
) -> None:
    source = make_topic("texts")
    with joined(kafka.bootstrap, group_id, source, protocol) as consumer:
        membership = consumer.consumer_group_metadata()
    transactional.begin_transaction()
    with pytest.raises(KafkaException) as refused:
        transactional.send_offsets_to_transaction([TopicPartition(source, 0, 3)], membership, DEADLINE_S)
    error = refused.value.args[0]
    assert error.code() == KafkaError.UNKNOWN_MEMBER_ID
    assert error.txn_requires_abort()
    assert not error.fatal()
    transactional.abort_transaction()
    assert read_back.committed(kafka.bootstrap, group_id, source) == {}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_shows_its_members_and_their_partitions(
    kafka: Kafka, make_topic: MakeTopic, group_id: str, protocol: str
) -> None:
    source = make_topic("texts", partitions=2)
    with joined(kafka.bootstrap, group_id, source, protocol):
        present = read_back.group(kafka.bootstrap, group_id)
    assert present.state == "Stable"
    assert [member.assignment for member in present.members] == [frozenset({(source, 0), (source, 1)})]
    left = read_back.group(kafka.bootstrap, group_id)
    assert (left.state, left.members) == ("Empty", ())


def test_an_aborted_transaction_is_not_read(kafka: Kafka, make_topic: MakeTopic, transactional: Producer) -> None:
    topic = make_topic("entities")
    transactional.begin_transaction()
    transactional.produce(topic, b"withdrawn")
    transactional.flush(DEADLINE_S)
    assert read_back.end_offsets(kafka.bootstrap, topic) == {0: EndOffsets(last_stable=0, high_watermark=1)}
    assert read_back.open_transactions(kafka.bootstrap, topic) == [0]
    transactional.abort_transaction()

    transactional.begin_transaction()
    transactional.produce(topic, b"kept")
    transactional.commit_transaction()

    assert read_back.open_transactions(kafka.bootstrap, topic) == []
    assert values(kafka.bootstrap, topic) == [b"kept"]
    assert values(kafka.bootstrap, topic, "read_uncommitted") == [b"withdrawn", b"kept"]


def test_a_topic_that_nobody_created_is_missing(kafka: Kafka) -> None:
    with pytest.raises(KafkaException) as refused:
        read_back.partitions_of(kafka.bootstrap, unique("nobody-made-this"))
    assert refused.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_killed_broker_comes_back_on_the_same_port_with_its_data(kafka_jars: Path, tmp_path: Path) -> None:
    with KafkaServer(tmp_path) as server:
        address, topic = server.bootstrap, unique("texts")
        create_topic(address, topic)
        producer = Producer({"bootstrap.servers": address, "log_level": 0})
        producer.produce(topic, b"written before the kill")
        assert producer.flush(DEADLINE_S) == 0
        server.kill()
        assert server.pid is None
        server.start()
        assert server.bootstrap == address
        assert values(address, topic) == [b"written before the kill"]


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(KafkaUnavailableError, match=f"port {port} .* is taken"):
            KafkaServer(tmp_path, port=port).start()


def test_a_broker_that_cannot_start_shows_its_log(kafka_jars: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text("version=1\ncluster.id=another\nnode.id=2\n")
    server = KafkaServer(tmp_path)
    with pytest.raises(KafkaUnavailableError, match=r"(?s)ended while it started.*node id 2"):
        server.start()
    assert server.pid is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_broker_ends_with_the_process_that_started_it(kafka_jars: Path, tmp_path: Path) -> None:
    starter = (
        "import os, sys; from pathlib import Path; from tests.kafka_server.server import KafkaServer\n"
        "server = KafkaServer(Path(sys.argv[1])); server.start(); print(server.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", starter, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    broker = int(done.stdout)
    deadline = time.monotonic() + DEADLINE_S
    while Path(f"/proc/{broker}/cmdline").exists() and Path(f"/proc/{broker}/cmdline").read_bytes():
        assert time.monotonic() < deadline, "the broker outlived its starter"
        time.sleep(0.05)


def test_the_background_broker_starts_once_and_stops(kafka_jars: Path, tmp_path: Path) -> None:
    port = free_port()
    assert background.status(tmp_path) is None
    running = background.start(port, tmp_path)
    try:
        assert running.bootstrap.endswith(f":{port}")
        assert background.start(port, tmp_path) == running
        assert background.status(tmp_path) == running
        with pytest.raises(KafkaUnavailableError, match="runs already"):
            background.start(port + 1, tmp_path)
        os.kill(running.pid, 0)
    finally:
        assert background.stop(tmp_path) == running
    assert background.status(tmp_path) is None
    assert background.stop(tmp_path) is None

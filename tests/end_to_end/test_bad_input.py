import json
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from schemas.codec import decode_entity_event
from tests.end_to_end import raw_producer
from tests.end_to_end.conftest import Stream

MakeStream = Callable[..., Stream]


def test_each_record_gets_its_one_answer_whatever_it_is(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    values: list[dict[str, object] | bytes | None] = [
        {"text": "Ann met Bob", "id": "good"},
        b"not json",
        b"\xff\xfe",
        {"id": 1},
        {"text": "", "id": "blank"},
        {"text": "Ann", "labels": [], "id": "no labels"},
        None,
        {"text": "POISON", "id": "poison"},
        {"text": "a\ud800 Ann\x00", "id": "surrogate"},
        {"text": "Ann " * 300, "id": "too large"},
        {"text": "Cy saw Di", "id": "last"},
    ]
    stream.produce(values, partitions=1)
    worker = stream.start({"max_record_bytes": 1000, "batch_tokens": 64})
    stream.wait_until_done()
    assert worker.stop() == 0, worker.tail()

    answers = stream.messages()
    events = [decode_entity_event(message.value() or b"") for message in answers if message.value() is not None]
    found = {str(event.text_id): [entity.text for entity in event.entities] for event in events}
    assert found == {
        "good": ["Ann", "Bob"],
        "blank": [],
        "no labels": [],
        "surrogate": ["Ann"],
        "last": ["Cy", "Di"],
    }
    assert [message.key() for message in answers if message.value() is None] == [b"6"]

    dead = stream.letters()
    stages = {int(message.key() or b""): letter.stage for message, letter in dead}
    assert stages == {1: "decode", 2: "decode", 3: "decode", 7: "infer", 9: "too_large"}
    assert [message.value() for message, _ in dead][:2] == [b"not json", b"\xff\xfe"]


def test_an_event_the_topic_does_not_take_is_dead_lettered_and_the_stream_goes_on(
    make_stream: MakeStream,
) -> None:
    stream = make_stream(1)
    shrink(stream, stream.entities, 2_000)
    stream.produce(
        [{"text": "Ann", "id": 0}, {"text": "Ann", "id": 1, "meta": "x" * 3_000}, {"text": "Ann", "id": 2}],
        partitions=1,
    )
    worker = stream.start()
    stream.wait_until_done()
    assert worker.stop() == 0, worker.tail()
    assert [event.text_id for event in stream.events()] == [0, 2]
    ((dead, letter),) = stream.letters()
    assert letter.stage == "result_too_large"
    assert json.loads(dead.value() or b"")["id"] == 1


def test_what_the_broker_refuses_for_good_is_dead_lettered_never_a_loop(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    configure(stream, stream.entities, "cleanup.policy", "compact")
    stream.produce([{"text": "Cy", "id": "keyless"}], partitions=1, keyed=False)
    stream.produce([{"text": "Ann", "id": 0}, {"text": "Bob", "id": 1}], partitions=1)
    worker = stream.start()
    stream.wait_until_done()
    assert worker.stop() == 0, worker.tail()
    assert [event.text_id for event in stream.events()] == [0, 1]
    ((dead, letter),) = stream.letters()
    assert letter.stage == "result_refused"
    assert dead.key() is None


def test_a_timestamp_that_the_output_topics_refuse_is_dead_lettered_without_it(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    configure(stream, stream.texts, "message.timestamp.after.max.ms", str(10**15))
    far = 4_000_000_000_000
    producer = Producer({"bootstrap.servers": stream.bootstrap})
    producer.produce(stream.texts, value=b'{"text":"Ann","id":"far"}', key=b"far", timestamp=far)
    producer.flush()
    stream.produce([{"text": "Bob", "id": 1}], partitions=1)
    worker = stream.start()
    stream.wait_until_done()
    assert worker.stop() == 0, worker.tail()
    assert [event.text_id for event in stream.events()] == [1]
    ((dead, letter),) = stream.letters()
    assert (letter.stage, letter.source.timestamp) == ("result_refused", far)
    assert dead.value() == b'{"text":"Ann","id":"far"}'
    assert dead.timestamp()[1] < far


@pytest.mark.skipif(raw_producer.library() is None, reason="the C library is not beside the Python client here")
def test_a_header_name_that_is_not_utf_8_costs_no_other_record(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    stream.produce([{"text": "Ann", "id": "before"}], partitions=1)
    raw_producer.produce_with_header_name(stream.bootstrap, stream.texts, b'{"text":"Bob"}', b"na\xffme")
    stream.produce([{"text": "Cy", "id": "after"}], partitions=1)
    worker = stream.start()
    stream.wait_until_done()
    assert worker.stop() == 0, worker.tail()
    assert [event.text_id for event in stream.events()] == ["before", "after"]
    ((dead, letter),) = stream.letters()
    assert (letter.stage, letter.exception) == ("decode", "HeadersLost")
    assert dead.value() == b'{"text":"Bob"}'


def shrink(stream: Stream, topic: str, limit: int) -> None:
    configure(stream, topic, "max.message.bytes", str(limit))


def configure(stream: Stream, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    admin = AdminClient({"bootstrap.servers": stream.bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)

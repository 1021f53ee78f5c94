"""The command `glistream run` with the bundled model, on the samples, against the real Kafka."""

import time
from collections.abc import Callable
from itertools import cycle, islice

import samples
from tests.end_to_end.conftest import Stream
from tests.end_to_end.workers import REAL_WORKER


def test_two_workers_give_500_texts_the_entities_the_engine_finds(make_stream: Callable[..., Stream]) -> None:
    short = [sample for sample in samples.read() if len(sample.text) < 600]
    texts = {number: sample.text for number, sample in enumerate(islice(cycle(short), 500))}
    stream = make_stream(6)
    stream.produce(({"id": number, "text": text} for number, text in texts.items()), partitions=6)
    first, second = (stream.start({"dtype": "float32"}, command=REAL_WORKER) for _ in range(2))
    stream.wait_until_done(timeout_s=240)
    assert first.stop() == 0, first.tail()
    assert second.stop() == 0, second.tail()

    events = {event.text_id: event for event in stream.events()}
    assert len(stream.events()) == len(texts) == len(events)
    assert stream.open_transactions() == []
    assert {worker.returncode for worker in stream.workers} == {0}
    for worker in (first, second):
        assert list(worker.lines("bundled_model")), "the bundled model is announced"

    from packing import DEMO_MODEL, Document, Engine
    from worker.config import DEFAULT_LABELS

    engine = Engine.load(DEMO_MODEL, dtype="float32")
    expected = engine.extract([Document(text, DEFAULT_LABELS) for text in texts.values()])
    for number, result in zip(texts, expected, strict=True):
        found = [(entity.start, entity.end, entity.label) for entity in events[number].entities]
        assert found == [(entity.start, entity.end, entity.label) for entity in result.entities]
        assert [texts[number][entity.start : entity.end] for entity in events[number].entities] == [
            entity.text for entity in result.entities
        ]


def test_a_worker_that_leaves_in_the_middle_of_a_forward_ends_in_order(make_stream: Callable[..., Stream]) -> None:
    stream = make_stream(1)
    longest = max((sample.text for sample in samples.read()), key=len)
    stream.produce([{"id": 0, "text": longest * 5}], partitions=1)
    worker = stream.start({"drain_ms": 0}, command=REAL_WORKER)
    worker.wait_for("partitions_assigned")
    time.sleep(1)
    assert worker.stop() == 0, worker.tail()
    assert list(worker.lines("work_dropped"))
    assert stream.events() == []

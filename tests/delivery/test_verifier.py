"""The verifier, the watcher and the report find what they are there to find."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from schemas.codec import dead_letter_headers, encode_entity_event
from schemas.events import DeadLetter, EntityEvent, ModelInfo, Source, event_id
from tests.delivery import answers
from tests.delivery.conftest import MakeStream
from tests.delivery.report import Report, write
from tests.delivery.verifier import Verdict, verify
from tests.delivery.watcher import watching
from tests.end_to_end.conftest import Stream


def event(stream: Stream, partition: int, offset: int, text_id: int, windows: int = 1) -> bytes:
    return encode_entity_event(
        EntityEvent(
            id=event_id(stream.texts, partition, offset),
            text_id=text_id,
            source=Source(topic=stream.texts, partition=partition, offset=offset, timestamp=None),
            entities=[],
            offset_unit="code_points",
            model=ModelInfo(name="fake", revision=None),
            windows=windows,
            label_chunks=1,
        )
    )


def publish(stream: Stream, values: Sequence[bytes], *, partition: int = 0, end: str = "commit") -> Producer:
    """Publish events in one transaction, and commit it, abort it, or leave it open."""
    producer = Producer({"bootstrap.servers": stream.bootstrap, "transactional.id": stream.group})
    producer.init_transactions()
    producer.begin_transaction()
    for value in values:
        producer.produce(stream.entities, value=value, partition=partition)
    assert producer.flush(10) == 0
    if end == "commit":
        producer.commit_transaction()
    elif end == "abort":
        producer.abort_transaction()
    return producer


def commit(stream: Stream, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": stream.bootstrap, "group.id": stream.group})
    consumer.commit(offsets=[TopicPartition(stream.texts, 0, offset)], asynchronous=False)
    consumer.close()


def watch_until_all_are_there(stream: Stream) -> None:
    with watching(stream) as watcher:
        watcher.wait_for(3, 10)


@pytest.fixture
def stream(make_stream: MakeStream) -> Stream:
    """Return a stream of three texts in one partition, all committed, none answered."""
    made: Stream = make_stream(1)
    made.produce([{"id": number, "text": "Ann"} for number in range(3)], partitions=1)
    commit(made, 3)
    return made


def judged(stream: Stream, offsets: Sequence[int]) -> Verdict:
    publish(stream, [event(stream, 0, offset, offset) for offset in offsets])
    return verify(stream, range(3))


def test_a_sound_stream_is_sound(stream: Stream) -> None:
    with watching(stream) as watcher:
        verdict = judged(stream, [0, 1, 2])
        watcher.wait_for(3, 10)
    verdict.assert_sound()
    assert (verdict.texts, verdict.answered, verdict.repeats, verdict.aborted) == (3, 3, 0, 0)


def test_a_lost_text_is_named(stream: Stream) -> None:
    verdict = judged(stream, [0, 2])
    assert verdict.lost == ("text 1 (0:1)",)
    with pytest.raises(AssertionError, match=r"1 lost of 3 texts:\n  text 1 \(0:1\)"):
        verdict.assert_sound()


def test_a_double_is_named_at_once_and_in_the_end(stream: Stream) -> None:
    verdict = judged(stream, [0, 1, 1, 2])
    with pytest.raises(AssertionError, match=r"text 1 \(0:1\)"):
        watch_until_all_are_there(stream)
    assert len(verdict.doubled) == 1
    with pytest.raises(AssertionError, match="1 doubled"):
        verdict.assert_sound()


def test_an_inversion_is_named_at_once_and_in_the_end(stream: Stream) -> None:
    verdict = judged(stream, [0, 2, 1])
    with pytest.raises(AssertionError, match=r"text 1 \(0:1\)"):
        watch_until_all_are_there(stream)
    assert len(verdict.out_of_order) == 1
    with pytest.raises(AssertionError, match="1 out of order"):
        verdict.assert_sound()


def test_aborted_events_answer_nothing(stream: Stream) -> None:
    publish(stream, [event(stream, 0, 0, 0)], end="abort")
    verdict = judged(stream, [1, 2])
    assert verdict.lost == ("text 0 (0:0)",)
    assert verdict.aborted == 1


def test_an_open_transaction_is_found(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.delivery.verifier.SETTLE_S", 0.2)
    publish(stream, [event(stream, 0, number, number) for number in range(3)])
    left = publish(stream, [event(stream, 0, 0, 0)], end="nothing")
    verdict = verify(stream, range(3))
    left.abort_transaction()
    assert len(verdict.open_transactions) == 1
    assert verdict.lost == ()


@pytest.mark.parametrize("offset", [2, 4])
def test_a_committed_offset_that_is_not_the_end_is_found(stream: Stream, offset: int) -> None:
    commit(stream, offset)
    (fault,) = judged(stream, [0, 1, 2]).faults
    assert fault == f"input partition 0: committed {offset}, the last text ends at 3"


def test_an_answer_to_another_text_is_found(stream: Stream) -> None:
    publish(stream, [event(stream, 0, 0, 0), event(stream, 0, 1, 7), event(stream, 0, 2, 2)])
    assert verify(stream).faults == ("text 1 (0:1): answered as text 7",)


def test_a_text_that_never_came_is_found(stream: Stream) -> None:
    publish(stream, [event(stream, 0, number, number) for number in range(3)])
    assert verify(stream, range(4)).faults == ("text 3: produced but not in the input",)


def test_a_dead_letter_is_an_answer_where_one_is_due(stream: Stream) -> None:
    publish(stream, [event(stream, 0, number, number) for number in (0, 2)])
    source = Source(topic=stream.texts, partition=0, offset=1, timestamp=None)
    letter = DeadLetter(stage="crash", exception="Crash", message="it died", attempts=3, source=source)
    producer = Producer({"bootstrap.servers": stream.bootstrap})
    producer.produce(
        stream.dead_letters, value=b'{"id": 1, "text": "Ann"}', headers=dict(dead_letter_headers(letter, []))
    )
    assert producer.flush(10) == 0
    verdict = verify(stream, range(3))
    assert (dict(verdict.dead_letters), dict(verdict.attempts)) == (
        {answers.Source(0, 1): "crash"},
        {answers.Source(0, 1): 3},
    )
    verdict.assert_sound(dead_letters=[answers.Source(0, 1)])
    with pytest.raises(AssertionError, match="1 set aside for no reason"):
        verdict.assert_sound()
    with pytest.raises(AssertionError, match="1 not set aside"):
        verdict.assert_sound(dead_letters=[answers.Source(0, 1), answers.Source(0, 2)])


def test_where_repeats_are_allowed_they_must_be_the_same(stream: Stream) -> None:
    publish(stream, [event(stream, 0, number, number) for number in (0, 1, 0, 1, 2)])
    verdict = verify(stream, range(3), repeats_allowed=True)
    verdict.assert_sound()
    assert verdict.repeats == 2
    publish(stream, [event(stream, 0, 2, 2, windows=2)])
    with pytest.raises(AssertionError, match="another answer the second time"):
        verify(stream, range(3), repeats_allowed=True).assert_sound()


def test_recovery_is_the_time_until_the_last_partition_went_on(make_stream: MakeStream) -> None:
    stream = make_stream(2)
    stream.produce([{"id": number, "text": "Ann"} for number in range(4)], partitions=2)
    with watching(stream) as watcher:
        publish(stream, [event(stream, 0, 0, 0)], partition=0)
        publish(stream, [event(stream, 1, 0, 1)], partition=1)
        watcher.wait_for(2, 10)
        assert watcher.lagging({0: 2, 1: 1}) == {0}
        before = min(watcher.last_arrival(0), watcher.last_arrival(1))
        since = watcher.last_arrival(1)
        with pytest.raises(TimeoutError, match=r"partitions \[0, 1\] to go on"):
            watcher.recovery_s(since, {0, 1}, 0.2)
        publish(stream, [event(stream, 0, 1, 2)], partition=0)
        publish(stream, [event(stream, 1, 1, 3)], partition=1)
        took = watcher.recovery_s(since, {0, 1}, 10)
        assert before < since
        assert took == watcher.last_arrival(1) - since


def test_the_report_sums_what_was_lost_and_keeps_the_longest_recovery(tmp_path: Path) -> None:
    report = Report()
    report.tried("SIGKILL at begin", 2, recovery_s=1.0)
    report.tried("SIGKILL at begin", recovery_s=3.25)
    report.tried("poison", 4)
    report.found(Verdict(9, 6, lost=("a", "b", "c"), doubled=("d",), out_of_order=("e",)), "SIGKILL at begin")
    results = tmp_path / "results" / "delivery.json"
    write({"test_kills.py": report}, {"test_kills.py": 60.4}, results)
    written = json.loads(results.read_text())
    assert written["faults"] == {
        "SIGKILL at begin": {"tried": 3, "lost": 3, "doubled": 1, "out_of_order": 1, "recovery_s": 3.25},
        "poison": {"tried": 4, "lost": 0, "doubled": 0, "out_of_order": 0, "recovery_s": None},
    }
    assert (written["kills"], written["seconds"]) == (3, 60)
    assert list(report.table())[1:] == [
        "SIGKILL at begin      3      3        1             1             3.2 s",
        "poison                4      0        0             0                  ",
    ]


def test_a_part_that_is_run_again_takes_the_place_of_its_earlier_rows_and_of_no_other(tmp_path: Path) -> None:
    results = tmp_path / "delivery.json"
    earlier, later, other = Report(), Report(), Report()
    earlier.tried("a worker joins", 9, recovery_s=9.0)
    later.tried("a worker joins", 2, recovery_s=1.0)
    other.tried("a worker joins", 3, recovery_s=2.0)
    write(
        {"test_kills.py": earlier, "test_rebalances.py": other}, {"test_kills.py": 9, "test_rebalances.py": 8}, results
    )
    write({"test_kills.py": later}, {"test_kills.py": 7}, results)
    written = json.loads(results.read_text())
    assert written["faults"]["a worker joins"] == {
        "tried": 5,
        "lost": 0,
        "doubled": 0,
        "out_of_order": 0,
        "recovery_s": 2.0,
    }
    assert written["seconds"] == 15

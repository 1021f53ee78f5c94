"""What a dead letter says, which are meant, and what a replayed record looks like, over several rounds."""

from dataclasses import replace

import pytest

from schemas.codec import dead_letter_headers
from schemas.events import DeadLetter, ModelInfo, Source
from tests.worker.records import record
from tests.worker.test_answers import topics
from worker.answers import Writer
from worker.config import ConfigError, Settings
from worker.dead_letters import (
    REPLAYED_PREFIX,
    REPLAYS,
    Choice,
    Content,
    Letter,
    Place,
    parse_choice,
    parse_place,
    read_letter,
    replayed,
    replays,
    shown_time,
)
from worker.forward import Answer
from worker.records import Headers, OutgoingMessage, Partition, Record
from worker.tasks import Failure, Task
from worker.topics import Topic

TARGET = Topic("texts", 4, 1_000_000)
OWN: Headers = (("traceparent", b"00-1"), ("note", None), ("twice", b"\xff"), ("twice", b""))


def letter_of(failed: Record, stage: str = "decode", *, dead_bytes: int = 100_000) -> Letter:
    """Return the dead letter that the worker makes of a record."""
    writer = Writer(Settings(), topics(dead_bytes=dead_bytes), ModelInfo(name="m", revision=None))
    message = writer.write(Answer(Task(failed), Failure(stage, "Unreadable", "why"))).message
    return read_letter(Place(0, 7), Content(message.key, message.value, message.headers))


def as_record(message: OutgoingMessage, offset: int) -> Record:
    return record(message.value, offset=offset, key=message.key, headers=message.headers)


def test_a_replayed_record_is_as_it_was_with_the_reasons_moved_aside() -> None:
    failed = record(b"\xff\x00", partition=Partition("texts", 6), offset=3, key=b"", headers=OWN)
    out = replayed(letter := letter_of(failed), letter.content, TARGET)
    assert (out.topic, out.partition, out.key, out.value) == ("texts", None, b"", b"\xff\x00")
    assert out.timestamp == failed.timestamp
    assert out.headers[: len(OWN)] == OWN
    assert out.headers[len(OWN) :] == (
        (REPLAYED_PREFIX + "topic", b"texts"),
        (REPLAYED_PREFIX + "partition", b"6"),
        (REPLAYED_PREFIX + "offset", b"3"),
        (REPLAYED_PREFIX + "timestamp", b"1700000000000"),
        (REPLAYED_PREFIX + "stage", b"decode"),
        (REPLAYED_PREFIX + "exception", b"Unreadable"),
        (REPLAYED_PREFIX + "message", b"why"),
        (REPLAYED_PREFIX + "attempts", b"1"),
        (REPLAYS, b"1"),
    )


def test_without_a_key_it_goes_to_its_own_partition_or_one_that_there_is() -> None:
    for number, expected in ((3, 3), (6, 2)):
        failed = letter_of(record(b"x", partition=Partition("texts", number), key=None))
        assert replayed(failed, failed.content, TARGET).partition == expected


def test_over_several_rounds_the_counter_goes_up_and_the_newest_reason_is_kept() -> None:
    failed = record(b"not json", offset=0, headers=OWN)
    for turn in (1, 2, 3):
        letter = letter_of(failed, stage=f"stage-{turn}")
        assert (letter.said.stage, letter.replays) == (f"stage-{turn}", turn - 1)
        out = replayed(letter, letter.content, TARGET)
        assert out.headers[: len(OWN)] == OWN
        assert len(out.headers) == len(OWN) + 9
        assert dict(out.headers)[REPLAYED_PREFIX + "stage"] == b"stage-%d" % turn
        assert dict(out.headers)[REPLAYED_PREFIX + "offset"] == b"%d" % (turn - 1)
        assert dict(out.headers)[REPLAYS] == b"%d" % turn
        failed = as_record(out, offset=turn)


def test_reasons_left_in_a_record_by_other_means_do_not_hide_the_last_ones() -> None:
    earlier = DeadLetter(
        stage="old",
        exception="Old",
        message="old",
        attempts=1,
        source=Source(topic="elsewhere", partition=9, offset=9, timestamp=None),
    )
    failed = record(b"not json", headers=tuple(dead_letter_headers(earlier, OWN)))
    letter = letter_of(failed, stage="new")
    out = replayed(letter, letter.content, TARGET)
    assert (letter.said.stage, letter.said.source.topic) == ("new", "texts")
    assert len(out.headers) == len(OWN) + 9
    assert dict(out.headers)[REPLAYED_PREFIX + "stage"] == b"new"


def test_of_a_record_that_did_not_fit_the_original_is_sent_and_its_counter_goes_on() -> None:
    headers: Headers = (*OWN, (REPLAYS, b"2"))
    failed = record(b"x" * 5_000, headers=headers)
    letter = letter_of(failed, dead_bytes=1_000)
    assert (letter.whole, letter.replays, letter.content.key) == (False, None, None)
    out = replayed(letter, Content(failed.key, failed.value, failed.headers), TARGET)
    assert (out.key, out.value, out.headers[: len(OWN)]) == (failed.key, failed.value, OWN)
    assert dict(out.headers)[REPLAYS] == b"3"
    assert dict(out.headers)[REPLAYED_PREFIX + "stage"] == b"decode"


@pytest.mark.parametrize("found", [b"", None, b"x", b"-1", b"\xb2", "²".encode(), b"9" * 5000])
def test_a_counter_that_is_no_number_counts_as_never(found: bytes | None) -> None:
    assert replays(((REPLAYS, found),)) == 0


def test_what_is_not_asked_picks_nothing_out_and_all_that_is_asked_must_hold() -> None:
    letter = letter_of(record(b"x", partition=Partition("texts", 2), offset=5))
    said = {
        "stage": "decode",
        "exception": "Unreadable",
        "topic": "texts",
        "partition": 2,
        "offset": 5,
        "since": 1_700_000_000_000,
    }
    other = {"stage": "x", "exception": "x", "topic": "x", "partition": 0, "offset": 0, "since": 1_700_000_000_001}
    assert Choice().takes(letter)
    assert Choice(**said).takes(letter)  # type: ignore[arg-type]
    for name, wrong in other.items():
        assert not Choice(**said | {name: wrong}).takes(letter), name  # type: ignore[arg-type]


def test_a_letter_without_an_event_time_is_not_since_any_time() -> None:
    letter = letter_of(replace(record(b"x"), timestamp=None))
    assert letter.said.source.timestamp is None
    assert not Choice(since=0).takes(letter)
    assert Choice().takes(letter)


@pytest.mark.parametrize(
    ("source", "expected"),
    [("texts", ("texts", None, None)), ("texts:0", ("texts", 0, None)), ("texts:3:42", ("texts", 3, 42))],
)
def test_a_source_is_read(source: str, expected: tuple[object, ...]) -> None:
    choice = parse_choice(source=source)
    assert (choice.topic, choice.partition, choice.offset) == expected


def test_a_time_is_read_in_utc_where_it_does_not_say() -> None:
    for time in ("2023-11-14T22:13:20.5", "2023-11-14T22:13:20.500Z", "2023-11-15T00:13:20.5+02:00"):
        assert parse_choice(since=time).since == 1_700_000_000_500
    assert shown_time(1_700_000_000_500) == "2023-11-14T22:13:20.500Z"
    assert shown_time(None) == "-"
    assert shown_time(10**15 * 9) == f"{10**15 * 9} ms"


@pytest.mark.parametrize("wrong", ["", ":1", "texts:x", "texts:1:2:3", "texts:-1", "texts:²"])
def test_a_source_that_is_none_is_named(wrong: str) -> None:
    with pytest.raises(ConfigError, match=r"--source .*: expected TOPIC"):
        parse_choice(source=wrong)


def test_a_time_that_is_none_is_named() -> None:
    with pytest.raises(ConfigError, match="--since 'yesterday': expected a time in ISO 8601"):
        parse_choice(since="yesterday")


@pytest.mark.parametrize("wrong", ["", "1", "a:b", "0:-1", "0:1:2", "0:" + "9" * 30])
def test_a_place_that_is_none_is_named(wrong: str) -> None:
    with pytest.raises(ConfigError, match="no place in the dead-letter topic"):
        parse_place(wrong)
    assert parse_place("0:17") == Place(0, 17)

"""`glistream dlq` against the real Kafka: dead letters listed, shown, sent back exactly once."""

import json
import os
import pty
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from schemas.codec import dead_letter_headers
from schemas.events import DeadLetter, Source
from tests.end_to_end.conftest import Stream, headers_of
from tests.end_to_end.test_bad_input import configure, shrink
from tests.end_to_end.test_commands import glistream
from tests.end_to_end.workers import wait_until
from tests.kafka_server.read_back import committed, end_offsets
from worker.dead_letters import REPLAYED_PREFIX, REPLAYS
from worker.records import Headers

MakeStream = Callable[..., Stream]

REPLAY = (sys.executable, "-m", "worker", "dlq", "replay")
TIME = round(time.time()) * 1000 - 3_600_123  # recent, as the topics keep nothing that is old
OWN: Headers = (("traceparent", b"00-1"), ("note", None), ("twice", b"\xff"), ("twice", b""))


@dataclass(frozen=True)
class Dead:
    """A dead letter to put on the topic."""

    value: bytes | None = b"not json"
    key: bytes | None = b"k"
    partition: int = 0
    offset: int = 0
    stage: str = "decode"
    exception: str = "Unreadable"
    timestamp: int = TIME
    headers: Headers = OWN
    topic: str | None = None
    place: int = 0


def bury(stream: Stream, letters: Iterable[Dead], *, transaction: bool = False) -> Producer:
    """Put dead letters on their topic; in a transaction that is left open, where asked."""
    properties: dict[str, object] = {"bootstrap.servers": stream.bootstrap, "linger.ms": 5}
    if transaction:
        properties |= {"transactional.id": stream.group}
    producer = Producer(properties)
    if transaction:
        producer.init_transactions()
        producer.begin_transaction()
    for dead in letters:
        said = DeadLetter(
            stage=dead.stage,
            exception=dead.exception,
            message=f"why {dead.offset}",
            attempts=1,
            source=Source(
                topic=dead.topic or stream.texts,
                partition=dead.partition,
                offset=dead.offset,
                timestamp=dead.timestamp,
            ),
        )
        producer.produce(
            stream.dead_letters,
            value=dead.value,
            key=dead.key,
            partition=dead.place,
            timestamp=dead.timestamp,
            headers=list(dead_letter_headers(said, dead.headers)),
        )
        producer.poll(0)
    assert producer.flush(30) == 0
    return producer


def iso(timestamp: int) -> str:
    return datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def places(stream: Stream, group: str | None = None) -> dict[int, int]:
    found = committed(stream.bootstrap, group or f"{stream.group}-dlq-replay", stream.dead_letters)
    return {number: commit.offset for number, commit in found.items()}


def sent(stream: Stream, topic: str | None = None) -> list[bytes | None]:
    return [message.value() for message in stream.messages(topic or stream.texts)]


def test_a_list_shows_where_and_why_and_no_text(make_stream: MakeStream) -> None:
    stream = make_stream(2)
    bury(
        stream,
        [
            Dead(b"a secret", b"secret-key", offset=4, partition=1),
            Dead(b"a secret", stage="infer", exception="ValueError", offset=5, timestamp=TIME + 60_000),
            Dead(None, None, offset=6, stage="too_large", exception="TooLarge", headers=()),
            Dead(offset=7, place=1, headers=(*OWN, (REPLAYS, b"2"))),
        ],
    )
    producer = Producer({"bootstrap.servers": stream.bootstrap})
    producer.produce(stream.dead_letters, b"a secret", partition=1)
    producer.flush()

    shown = glistream("dlq", "list", stream=stream)
    assert shown.returncode == 0, shown.stderr
    texts = stream.texts
    assert [line.split("\t") for line in shown.stdout.splitlines()[:5]] == [
        ["place", "source", "event time", "stage", "exception", "attempts", "replays", "message"],
        ["0:0", f"{texts}:1:4", iso(TIME), "decode", "Unreadable", "1", "0", "why 4"],
        ["0:1", f"{texts}:0:5", iso(TIME + 60_000), "infer", "ValueError", "1", "0", "why 5"],
        ["0:2", f"{texts}:0:6", iso(TIME), "too_large", "TooLarge", "1", "-", "why 6"],
        ["1:0", f"{texts}:0:7", iso(TIME), "decode", "Unreadable", "1", "2", "why 7"],
    ]
    assert shown.stdout.splitlines()[5:] == [
        "       2  decode  Unreadable",
        "       1  infer  ValueError",
        "       1  too_large  TooLarge",
        "4 dead letters",
        "1 records are no dead letters, the first at 1:1: "
        "headers: not a dead letter: none starts with __glistream.errors.",
    ]
    assert "secret" not in shown.stdout + shown.stderr

    as_json = glistream("dlq", "list", "--format", "json", "--stage", "infer", stream=stream)
    assert [json.loads(line) for line in as_json.stdout.splitlines()] == [
        {
            "partition": 0,
            "offset": 1,
            "whole": True,
            "replays": 0,
            "stage": "infer",
            "exception": "ValueError",
            "message": "why 5",
            "attempts": 1,
            "source": {"topic": texts, "partition": 0, "offset": 5, "timestamp": TIME + 60_000},
        }
    ]
    assert "       1  infer  ValueError\n1 dead letters\n" in as_json.stderr
    assert "secret" not in as_json.stdout + as_json.stderr

    def listed(*filters: str) -> list[str]:
        lines = glistream("dlq", "list", *filters, stream=stream).stdout.splitlines()
        return [line.split("\t")[0] for line in lines[1:] if "\t" in line]

    assert listed("--exception", "Unreadable") == ["0:0", "1:0"]
    assert listed("--source", f"{texts}:0") == ["0:1", "0:2", "1:0"]
    assert listed("--source", f"{texts}:0:6") == ["0:2"]
    assert listed("--source", "elsewhere") == []
    assert listed("--since", iso(TIME + 30_000)) == ["0:1"]
    assert listed("--max", "2") == ["0:0", "0:1"]
    counted = glistream("dlq", "list", "--summary", "--stage", "decode", stream=stream).stdout
    assert counted.splitlines()[:2] == ["       2  decode  Unreadable", "2 dead letters"]
    counted = glistream("dlq", "list", "--summary", "--format", "json", "--max", "1", stream=stream).stdout
    assert json.loads(counted) == {"stage": "decode", "exception": "Unreadable", "count": 1}


def test_a_list_ends_before_a_transaction_that_is_open_and_leaves_out_an_aborted_one(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    bury(stream, [Dead(offset=1)])
    bury(stream, [Dead(offset=2)], transaction=True).abort_transaction()
    open_one = bury(stream, [Dead(offset=3)], transaction=True)
    assert "1 dead letters" in glistream("dlq", "list", stream=stream).stdout
    open_one.commit_transaction()
    assert "2 dead letters" in glistream("dlq", "list", stream=stream).stdout


def test_one_letter_is_shown_with_all_that_it_has(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    value = "naïve\x1b[2J\n☃".encode() + b"\xff\x00"
    bury(stream, [Dead(value, b"\xfe", offset=9), Dead(None, None, offset=10, headers=())])

    shown = glistream("dlq", "show", "0:0", stream=stream)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines() == [
        f"{stream.dead_letters}:0:0",
        "why it failed:",
        f"  __glistream.errors.topic: {stream.texts}",
        "  __glistream.errors.partition: 0",
        "  __glistream.errors.offset: 9",
        f"  __glistream.errors.timestamp: {TIME}",
        "  __glistream.errors.stage: decode",
        "  __glistream.errors.exception: Unreadable",
        "  __glistream.errors.message: why 9",
        "  __glistream.errors.attempts: 1",
        "headers of the record:",
        "  traceparent: 00-1",
        "  note: (null)",
        "  twice: \\xff",
        "  twice: ",
        "key: \\xfe",
        "value: naïve\\x1b[2J\\n☃\\xff\\x00",
    ]
    environment = os.environ | stream.environment()
    raw = subprocess.run(
        [sys.executable, "-m", "worker", "dlq", "show", "0:0", "--raw"],
        capture_output=True,
        env=environment,
        check=True,
    )
    assert raw.stdout == value
    away = glistream("dlq", "show", "0:1", stream=stream).stdout.splitlines()[-1]
    assert away == f"value: the record did not fit here; it was {stream.texts}:0:10"
    none = glistream("dlq", "show", "0:1", "--raw", stream=stream)
    assert (none.returncode, none.stdout) == (2, "")
    assert "has no value: the record did not fit here" in none.stderr
    for place in ("0:2", "7:0"):
        missing = glistream("dlq", "show", place, stream=stream)
        assert missing.returncode == 2
        said = f"glistream: no record at {place} of {stream.dead_letters}; what is there: 0:0 to 0:1\n"
        assert missing.stderr == said


def test_letters_go_back_as_they_were_and_a_second_replay_sends_only_what_came_since(make_stream: MakeStream) -> None:
    stream = make_stream(3)
    bury(
        stream,
        [
            Dead(b"\xff\x00one", b"a", partition=2, place=1),
            Dead(b"", b"", partition=1, offset=1),
            Dead(b"keyless", None, partition=2, offset=2),
        ],
    )
    dry = glistream("dlq", "replay", "--dry-run", stream=stream)
    assert dry.returncode == 0, dry.stderr
    assert f"0:1  would be sent to {stream.texts}, partition 2: " in dry.stdout
    assert f"1:0  would be sent to {stream.texts}, by its key: " in dry.stdout
    assert dry.stdout.splitlines()[-1].startswith(f"3 dead letters would be sent to {stream.texts}, 0 left alone")
    assert (sent(stream), places(stream)) == ([], {})

    first = glistream("dlq", "replay", stream=stream)
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith(f"3 dead letters sent to {stream.texts}, 0 left alone"), first.stdout
    back = {message.value(): message for message in stream.messages(stream.texts)}
    assert sorted(back, key=str) == sorted([b"\xff\x00one", b"", b"keyless"], key=str)
    assert [back[value].key() for value in (b"\xff\x00one", b"", b"keyless")] == [b"a", b"", None]
    assert back[b"keyless"].partition() == 2
    for message in back.values():
        assert message.timestamp()[1] == TIME
        headers = headers_of(message)
        assert tuple(headers[: len(OWN)]) == OWN
        assert [name for name, _ in headers[len(OWN) :] if name.startswith(REPLAYED_PREFIX)] == [
            REPLAYED_PREFIX + name
            for name in ("topic", "partition", "offset", "timestamp", "stage", "exception", "message", "attempts")
        ]
        assert headers[-1] == (REPLAYS, b"1")
    assert len(headers_of(back[b""])) == len(OWN) + 9
    ours = committed(stream.bootstrap, f"{stream.group}-dlq-replay", stream.dead_letters)
    assert json.loads(ours[0].metadata) == {"v": 1, "tool": "glistream dlq replay"}
    assert places(stream) == {0: 2, 1: 1}

    again = glistream("dlq", "replay", stream=stream)
    assert (again.returncode, again.stdout[:2]) == (0, "0 ")
    bury(stream, [Dead(b"new", place=2)])
    assert glistream("dlq", "replay", stream=stream).stdout.startswith("1 dead letters sent")
    assert Counter(sent(stream)) == Counter([b"\xff\x00one", b"", b"keyless", b"new"])


def test_a_key_lands_where_the_client_libraries_of_java_put_it(make_stream: MakeStream) -> None:
    stream = make_stream(5)
    keys = [b"key-%d" % number for number in range(20)]
    bury(stream, [Dead(key, key, partition=4) for key in keys])
    assert glistream("dlq", "replay", stream=stream).returncode == 0
    found = {message.key(): message.partition() for message in stream.messages(stream.texts)}
    assert found == {key: (murmur2(key) & 0x7FFFFFFF) % 5 for key in keys}


def test_the_next_few_are_sent_with_max_and_the_rest_later(make_stream: MakeStream) -> None:
    stream = make_stream(2)
    bury(stream, [Dead(b"%d" % number, place=number % 2) for number in range(10)])
    for done in (3, 6, 9):
        assert glistream("dlq", "replay", "--max", "3", stream=stream).stdout.startswith("3 dead letters sent")
        assert len(sent(stream)) == done
    assert glistream("dlq", "replay", stream=stream).stdout.startswith("1 dead letters sent")
    assert sorted(sent(stream), key=str) == [b"%d" % number for number in range(10)]


def test_a_record_that_fails_again_comes_back_with_its_counter_until_it_is_left_alone(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    stream.produce([b"not json"], partitions=1)
    worker = stream.start()
    for replayed in (0, 1, 2):
        # not until all is committed: the mark of the replay's own transaction is an offset that is never read
        wait_until(lambda: len(stream.letters()) > replayed, 60, worker.tail)  # noqa: B023
        message, letter = stream.letters()[-1]
        headers = dict(headers_of(message))
        assert (len(stream.letters()), message.value()) == (replayed + 1, b"not json")
        assert headers.get(REPLAYS) == (b"%d" % replayed if replayed else None)
        if replayed:
            before = stream.letters()[-2][1].source.offset
            assert headers[REPLAYED_PREFIX + "offset"] == b"%d" % before
            assert letter.source.offset > before
        replay = glistream("dlq", "replay", "--max-replays", "2", stream=stream)
        assert replay.returncode == 0, replay.stderr
        sent_now = 1 if replayed < 2 else 0
        assert f"{sent_now} dead letters sent to {stream.texts}, {1 - sent_now} left alone after 2" in replay.stdout
    assert "0:4  not sent: replayed 2 times already (--max-replays)" in replay.stdout
    assert sent(stream) == [b"not json"] * 3
    assert worker.stop() == 0, worker.tail()
    again = glistream("dlq", "replay", "--letter", "0:4", "--max-replays", "9", stream=stream)
    assert again.stdout.startswith("1 dead letters sent"), again.stdout + again.stderr


def test_what_did_not_fit_into_its_dead_letter_is_fetched_from_its_source(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    shrink(stream, stream.dead_letters, 2_000)
    large = b"x" * 5_000
    producer = Producer({"bootstrap.servers": stream.bootstrap})
    producer.produce(stream.texts, large, b"the key", timestamp=TIME, headers=list(OWN))
    producer.flush()
    worker = stream.start()
    stream.wait_until_done()
    assert worker.stop() == 0, worker.tail()
    ((dead, _),) = stream.letters()
    assert (dead.key(), dead.value()) == (None, None)

    assert glistream("dlq", "replay", stream=stream).stdout.startswith("1 dead letters sent")
    _, back = stream.messages(stream.texts)
    assert (back.key(), back.value(), back.timestamp()[1]) == (b"the key", large, TIME)
    assert tuple(headers_of(back)[: len(OWN)]) == OWN
    assert headers_of(back)[-1] == (REPLAYS, b"1")


def test_what_is_lost_or_refused_is_named_and_holds_up_no_other(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    stream.produce([b"another", None], partitions=1)
    shrink(stream, stream.texts, 3_000)
    bury(
        stream,
        [
            Dead(b"first"),
            Dead(None, None, offset=0, headers=()),
            Dead(None, None, offset=500, headers=()),
            Dead(None, None, offset=1, headers=()),
            Dead(None, None, offset=0, partition=77, headers=()),
            Dead(None, None, offset=0, topic="gone", headers=()),
            Dead(b"x" * 4_000),
            Dead(exception="HeadersLost"),
            Dead(b"last"),
        ],
    )
    refused = glistream("dlq", "replay", stream=stream)
    assert refused.returncode == 2
    assert f"nothing was sent: of 9 dead letters, 1 from 'gone', not from '{stream.texts}'" in refused.stderr
    assert (len(sent(stream)), places(stream)) == (2, {})

    replay = glistream("dlq", "replay", "--source", stream.texts, "--dry-run", stream=stream)
    assert not [line for line in replay.stdout.splitlines() if line.startswith("0:5 ")]
    replay = glistream("dlq", "replay", "--to", stream.texts, stream=stream)
    assert replay.returncode == 1
    lines = replay.stdout.splitlines()
    lost = "not sent: it did not fit into its dead letter, and"
    assert f"0:1  {lost} {stream.texts}:0:0 is another record now" in lines
    assert f"0:2  {lost} {stream.texts}:0:500 is not in its topic any more" in lines
    assert f"0:3  {lost} {stream.texts}:0:1 is another record now" in lines
    assert f"0:4  {lost} {stream.texts}:77:0 is not in its topic any more" in lines
    assert f"0:5  {lost} gone:0:0 is not in its topic any more" in lines
    assert any(line.startswith("0:6  not sent: MSG_SIZE_TOO_LARGE") for line in lines), lines
    assert any(line.startswith("0:7  not sent: a header's name is not UTF-8") for line in lines), lines
    assert lines[-1].startswith(f"2 dead letters sent to {stream.texts}")
    assert lines[-1].endswith("7 can't be replayed")
    assert sent(stream)[2:] == [b"first", b"last"]
    assert places(stream) == {0: 9}


def test_picked_letters_are_sent_once_asked_for_and_no_place_is_kept(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    bury(stream, [Dead(b"0"), Dead(b"1", stage="infer"), Dead(b"2", stage="infer"), Dead(b"3")])
    unasked = glistream("dlq", "replay", "--stage", "infer", stream=stream)
    assert unasked.returncode == 2
    assert "nothing was sent: 2 dead letters are picked" in unasked.stderr
    assert sent(stream) == []
    assert glistream("dlq", "replay", "--stage", "infer", "--yes", stream=stream).returncode == 0
    one = glistream("dlq", "replay", "--letter", "0:3", stream=stream)
    assert one.returncode == 0, one.stderr
    assert (sent(stream), places(stream)) == ([b"1", b"2", b"3"], {})
    both = glistream("dlq", "replay", "--letter", "0:3", "--stage", "infer", stream=stream)
    assert (both.returncode, "can't be given together" in both.stderr) == (2, True)
    missing = glistream("dlq", "replay", "--letter", "0:9", stream=stream)
    assert missing.returncode == 2
    assert f"no record at 0:9 of {stream.dead_letters}" in missing.stderr


def test_picked_letters_are_all_sent_or_none(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    shrink(stream, stream.texts, 3_000)
    bury(stream, [Dead(b"small"), Dead(b"x" * 4_000), Dead(b"small")])
    failed = glistream("dlq", "replay", "--stage", "decode", "--yes", stream=stream)
    assert failed.returncode == 1
    assert f"glistream: nothing was sent: {stream.texts} does not take a record: MSG_SIZE_TOO_LARGE" in failed.stderr
    assert sent(stream) == []


def test_each_topic_that_is_sent_to_has_a_place_of_its_own(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    bury(stream, [Dead(b"x", topic="from elsewhere")])
    for count in (1, 0):
        replay = glistream("dlq", "replay", "--to", stream.entities, stream=stream)
        assert replay.stdout.startswith(f"{count} dead letters sent to {stream.entities}"), replay.stderr
    assert sent(stream, stream.entities) == [b"x"]
    assert places(stream) == {}
    assert places(stream, f"{stream.group}-dlq-replay-{stream.entities}") == {0: 1}
    loop = glistream("dlq", "replay", "--to", stream.dead_letters, stream=stream)
    assert (loop.returncode, "that is the dead-letter topic itself" in loop.stderr) == (2, True)


@pytest.mark.parametrize("command", ["list", "replay"])
def test_a_topic_or_broker_that_is_not_there_is_named(make_stream: MakeStream, command: str) -> None:
    stream = make_stream(1)
    unreachable = glistream("dlq", command, "--bootstrap-servers", "127.0.0.1:1", stream=stream)
    assert (unreachable.returncode, "no broker answers at" in unreachable.stderr) == (3, True)
    stream.dead_letters = "nowhere"
    missing = glistream("dlq", command, stream=stream)
    assert (missing.returncode, missing.stderr.startswith("glistream: topic nowhere not there")) == (2, True)


def test_a_replay_killed_in_the_middle_and_run_again_sends_each_letter_once(make_stream: MakeStream) -> None:
    stream = make_stream(3)
    keys = [b"%d" % number for number in range(12_000)]
    bury(stream, [Dead(key, key, partition=2, place=number % 3) for number, key in enumerate(keys)])
    killed = 0
    for batches in (1, 4, 2, 6):
        replay = stream.start(command=REPLAY)
        replay.wait_for("letters_replayed", times=batches)
        replay.kill()
        killed += replay.returncode == -9
    before = len(sent(stream))
    assert killed == 4
    assert 13 * 500 <= before < len(keys)
    assert before == sum(count_of_letters(places(stream)))

    last = glistream("dlq", "replay", stream=stream)
    assert last.returncode == 0, last.stderr
    assert Counter(sent(stream)) == Counter(keys)
    assert last.stdout.startswith(f"{len(keys) - before} dead letters sent")
    ends = end_offsets(stream.bootstrap, stream.texts)
    assert all(end.last_stable == end.high_watermark for end in ends.values())


def test_what_may_be_deleted_before_it_is_read_is_told(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    configure(stream, stream.dead_letters, "retention.ms", "-1")
    bury(stream, [Dead(b"old", timestamp=1_700_000_000_000), Dead(b"new")])
    dry = glistream("dlq", "replay", "--dry-run", stream=stream)
    assert dry.stdout.startswith(f"1 of 2 dead letters are older than {stream.texts} keeps records (retention.ms=")
    configure(stream, stream.texts, "retention.ms", "-1")
    assert "older" not in glistream("dlq", "replay", stream=stream).stdout
    assert sent(stream) == [b"old", b"new"]


def test_of_two_replays_at_once_each_letter_is_sent_by_one(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    keys = [b"%d" % number for number in range(10_000)]
    bury(stream, [Dead(key, key) for key in keys])
    first = stream.start(command=REPLAY)
    first.wait_for("letters_replayed", times=2)
    second = glistream("dlq", "replay", stream=stream)
    assert second.returncode == 0, second.stderr
    assert Counter(sent(stream)) == Counter(keys)
    first.kill()
    if first.returncode == 1:
        assert "another command of the same group was started meanwhile" in first.tail()


def test_picked_letters_of_a_replay_killed_in_the_middle_were_not_sent(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    keys = [b"%d" % number for number in range(40_000)]
    bury(stream, [Dead(key, key) for key in keys])
    picked = ("--stage", "decode", "--yes")
    replay = stream.start(command=(*REPLAY, *picked))
    wait_until(lambda: end_offsets(stream.bootstrap, stream.texts)[0].high_watermark > 0, 60, replay.tail)
    replay.kill()
    assert (replay.returncode, sent(stream)) == (-9, [])
    again = glistream("dlq", "replay", *picked, stream=stream)
    assert again.returncode == 0, again.stderr
    assert Counter(sent(stream)) == Counter(keys)


def test_a_replay_told_to_stop_says_what_is_done_and_is_gone_on_with(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    keys = [b"%d" % number for number in range(12_000)]
    bury(stream, [Dead(key, key) for key in keys])
    replay = stream.start(command=REPLAY)
    replay.wait_for("letters_replayed")
    assert replay.stop() == 1
    assert "glistream: stopped: what was sent is committed; run it again to go on" in replay.tail()
    assert 500 <= len(sent(stream)) < len(keys)
    assert glistream("dlq", "replay", stream=stream).returncode == 0
    assert Counter(sent(stream)) == Counter(keys)


def test_letters_that_are_gone_are_told_and_a_place_beyond_the_end_is_refused(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    bury(stream, [Dead(b"%d" % number) for number in range(6)])
    assert glistream("dlq", "replay", "--max", "2", stream=stream).returncode == 0
    cut = TopicPartition(stream.dead_letters, 0, 4)
    admin = AdminClient({"bootstrap.servers": stream.bootstrap})
    admin.delete_records([cut])[cut].result(30)
    replay = glistream("dlq", "replay", stream=stream)
    gone = f"partition 0 of {stream.dead_letters}: 2 offsets are gone that no replay has seen, up to 4"
    assert (replay.returncode, replay.stdout.splitlines()[0]) == (0, gone)
    assert sent(stream) == [b"0", b"1", b"4", b"5"]

    reader = Consumer({"bootstrap.servers": stream.bootstrap, "group.id": f"{stream.group}-dlq-replay"})
    reader.commit(offsets=[TopicPartition(stream.dead_letters, 0, 1_000)], asynchronous=False)
    reader.close()
    beyond = glistream("dlq", "replay", stream=stream)
    assert beyond.returncode == 2
    assert "ends at 6, before the place where the last replay ended (1000)" in beyond.stderr


def test_on_a_terminal_it_asks_and_a_list_has_columns(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    bury(stream, [Dead(b"a secret"), Dead(b"a secret", offset=1)])
    code, shown = on_a_terminal(stream, "dlq", "replay", "--stage", "decode", answer="n")
    assert code == 1
    assert f"Send 2 dead letters to {stream.texts}?" in shown
    assert sent(stream) == []
    code, shown = on_a_terminal(stream, "dlq", "replay", "--stage", "decode", answer="y")
    assert code == 0, shown
    assert sent(stream) == [b"a secret"] * 2
    code, shown = on_a_terminal(stream, "dlq", "list", answer="")
    assert (code, "secret" in shown) == (0, False)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "place  source" in shown
    assert f"0:1    {stream.texts}:0:1" in shown


def test_a_reader_that_leaves_early_is_no_fault(make_stream: MakeStream) -> None:
    stream = make_stream(1)
    bury(stream, [Dead(offset=number) for number in range(3_000)])
    command = (sys.executable, "-m", "worker", "dlq", "list")
    environment = os.environ | stream.environment()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as listing:
        assert listing.stdout
        assert listing.stderr
        assert listing.stdout.readline().startswith(b"place\t")
        listing.stdout.close()
        assert listing.stderr.read() == b""
    assert listing.returncode == 1


def on_a_terminal(stream: Stream, *arguments: str, answer: str) -> tuple[int, str]:
    """Run the command with a terminal of its own; returns its exit code and what it showed."""
    ours, its = pty.openpty()
    command = (sys.executable, "-m", "worker", *arguments)
    environment = os.environ | stream.environment() | {"COLUMNS": "160", "TERM": "xterm"}
    process = subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment)
    os.close(its)
    os.write(ours, answer.encode() + b"\n")
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65_536)
        except OSError:  # what a terminal says whose other side is closed
            break
    os.close(ours)
    return process.wait(60), shown.decode()


def count_of_letters(offsets: dict[int, int]) -> Iterable[int]:
    # 4,000 in each partition, none in a transaction: the offset is how many stand before it
    return offsets.values()


def murmur2(data: bytes) -> int:
    """Return the hash by which Java clients place a key, unsigned, of 32 bits."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if rest := data[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15

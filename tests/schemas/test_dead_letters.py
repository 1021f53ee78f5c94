"""What the headers of a dead letter say, and that they can be read again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import DeadLetter, Source, Unreadable, dead_letter_headers, read_dead_letter
from schemas.codec import DEAD_LETTER_PREFIX, Header

LETTER = DeadLetter(
    stage="decode",
    exception="Unreadable",
    message="text: expected a string, got a number",
    attempts=1,
    source=Source(topic="texts", partition=3, offset=1042, timestamp=1_700_000_000_000),
)
OTHERS: list[Header] = [("traceparent", b"00-ab-cd-01"), ("note", None), ("raw", b"\xff"), ("raw", b"")]


def test_the_records_own_headers_come_first_and_untouched() -> None:
    assert dead_letter_headers(LETTER, OTHERS) == [
        *OTHERS,
        ("__glistream.errors.topic", b"texts"),
        ("__glistream.errors.partition", b"3"),
        ("__glistream.errors.offset", b"1042"),
        ("__glistream.errors.timestamp", b"1700000000000"),
        ("__glistream.errors.stage", b"decode"),
        ("__glistream.errors.exception", b"Unreadable"),
        ("__glistream.errors.message", b"text: expected a string, got a number"),
        ("__glistream.errors.attempts", b"1"),
    ]


def test_of_two_trips_the_last_is_read() -> None:
    second = DeadLetter(
        stage="crash",
        exception="Died",
        message="",
        attempts=3,
        source=Source(topic="retry", partition=0, offset=0, timestamp=None),
    )

    headers = dead_letter_headers(second, dead_letter_headers(LETTER, OTHERS))

    assert headers[: len(OTHERS) + 8] == dead_letter_headers(LETTER, OTHERS)
    assert read_dead_letter(headers) == second


@given(
    st.builds(
        DeadLetter,
        stage=st.text(),
        exception=st.text(),
        message=st.text(),
        attempts=st.integers(min_value=1),
        source=st.builds(
            Source,
            topic=st.text(),
            partition=st.integers(min_value=0),
            offset=st.integers(min_value=0),
            timestamp=st.none() | st.integers(),
        ),
    )
)
def test_any_dead_letter_is_read_back_as_it_was_written(letter: DeadLetter) -> None:
    assert read_dead_letter(dead_letter_headers(letter, OTHERS)) == letter


def test_a_lone_surrogate_in_a_message_is_written_as_an_escape() -> None:
    letter = LETTER.model_copy(update={"message": "é\ud800"})

    assert (DEAD_LETTER_PREFIX + "message", "é\\ud800".encode()) in dead_letter_headers(letter, [])


def test_a_record_without_our_headers_is_no_dead_letter() -> None:
    with pytest.raises(Unreadable, match="headers: not a dead letter"):
        read_dead_letter(OTHERS)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("offset", None, "__glistream.errors.offset: missing"),
        ("offset", b"ten", "__glistream.errors.offset: expected an integer in decimal"),
        ("offset", b"9" * 5000, "__glistream.errors.offset: expected an integer in decimal"),
        ("timestamp", None, "__glistream.errors.timestamp: missing"),
        ("message", b"\xff", "__glistream.errors.message: not UTF-8: invalid start byte"),
        ("attempts", b"0", "attempts: Input should be greater than or equal to 1"),
        ("partition", b"-1", "partition: Input should be greater than or equal to 0"),
    ],
)
def test_a_malformed_header_is_named(name: str, value: bytes | None, said: str) -> None:
    headers = [*dead_letter_headers(LETTER, []), (DEAD_LETTER_PREFIX + name, value)]

    with pytest.raises(Unreadable) as caught:
        read_dead_letter(headers)
    assert str(caught.value) == said


def test_a_missing_header_is_named() -> None:
    headers = [header for header in dead_letter_headers(LETTER, []) if not header[0].endswith("stage")]

    with pytest.raises(Unreadable, match=r"__glistream\.errors\.stage: missing"):
        read_dead_letter(headers)

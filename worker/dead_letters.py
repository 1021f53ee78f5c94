"""Dead letters: what one says, which are picked, and the record that one becomes when it is replayed."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from schemas.codec import DEAD_LETTER_PREFIX, read_dead_letter
from schemas.events import DeadLetter
from worker.config import ConfigError
from worker.records import Headers, OutgoingMessage
from worker.topics import Topic

REPLAYED_PREFIX = "__glistream.replayed.errors."
REPLAYS = "__glistream.replays"


class Place(NamedTuple):
    """Where a record stands in a topic."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"


class Content(NamedTuple):
    """What a record holds, as it is on the broker."""

    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter.

    Attributes:
        place: where it stands in the dead-letter topic.
        content: the failed record's key, value and headers, then the headers that say why it failed.
        said: what these say.
    """

    place: Place
    content: Content
    said: DeadLetter

    @property
    def whole(self) -> bool:
        """Whether the failed record is in it; a tombstone never fails, so no value means that it did not fit."""
        return self.content.value is not None

    @property
    def replays(self) -> int | None:
        """How often the record was replayed; None where that can't be told, as only the record itself says it."""
        return replays(self.content.headers) if self.whole else None


@dataclass(frozen=True, slots=True)
class NoLetter:
    """A record of the dead-letter topic that is no dead letter, and why."""

    place: Place
    content: Content
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Which dead letters are meant; what is None picks none out.

    Attributes:
        since: earliest event time, in milliseconds since the Unix epoch.
    """

    stage: str | None = None
    exception: str | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    since: int | None = None

    def takes(self, letter: Letter) -> bool:
        """Say whether a dead letter is meant; one without an event time is not, where `since` is set."""
        said, source = letter.said, letter.said.source
        asked = (
            (self.stage, said.stage),
            (self.exception, said.exception),
            (self.topic, source.topic),
            (self.partition, source.partition),
            (self.offset, source.offset),
        )
        late_enough = self.since is None or (source.timestamp is not None and source.timestamp >= self.since)
        return late_enough and all(wanted in (None, found) for wanted, found in asked)


ALL = Choice()


def replays(headers: Headers) -> int:
    """Return how often a record was replayed; what is no number counts as never."""
    found = dict(headers).get(REPLAYS) or b""
    return int(found) if found.isdigit() and len(found) < 10 else 0


def replayed(letter: Letter, original: Content, target: Topic) -> OutgoingMessage:
    """Return the record that sends a dead letter's original to a topic once more.

    Key, value, event time and the original's own headers are as they were. Why it failed is moved to headers that begin
    with `__glistream.replayed.errors.`, in place of those of an earlier trip, so that the next failure is told from it.
    Without a key it goes to the partition that it came from.
    """
    ours = (DEAD_LETTER_PREFIX, REPLAYED_PREFIX)
    own = [header for header in original.headers if not header[0].startswith(ours) and header[0] != REPLAYS]
    errors = {name: value for name, value in letter.content.headers if name.startswith(DEAD_LETTER_PREFIX)}
    moved = [(REPLAYED_PREFIX + name.removeprefix(DEAD_LETTER_PREFIX), value) for name, value in errors.items()]
    source = letter.said.source
    return OutgoingMessage(
        topic=target.name,
        partition=source.partition % target.partitions if original.key is None else None,
        timestamp=source.timestamp,
        key=original.key,
        value=original.value,
        headers=(*own, *moved, (REPLAYS, b"%d" % (replays(original.headers) + 1))),
    )


def read_letter(place: Place, content: Content) -> Letter:
    """Return a record of the dead-letter topic as a dead letter.

    Raises:
        Unreadable: it is none, or a header is missing or malformed.
    """
    return Letter(place, content, read_dead_letter(content.headers))


def parse_place(text: str) -> Place:
    """Read `PARTITION:OFFSET`.

    Raises:
        ConfigError: it is something else.
    """
    numbers = text.split(":")
    if len(numbers) != 2 or not _are_numbers(numbers):
        raise ConfigError(f"{text!r} is no place in the dead-letter topic: expected PARTITION:OFFSET, such as 0:17")
    return Place(int(numbers[0]), int(numbers[1]))


def parse_choice(
    *, stage: str | None = None, exception: str | None = None, source: str | None = None, since: str | None = None
) -> Choice:
    """Return the choice that a person wrote.

    Args:
        stage: of the failure.
        exception: name of its class.
        source: `TOPIC[:PARTITION[:OFFSET]]` of the failed record.
        since: earliest event time in ISO 8601; UTC where it names no offset.

    Raises:
        ConfigError: source or time can't be read.
    """
    topic, *numbers = (source or "").split(":")
    if source is not None and (not topic or len(numbers) > 2 or not _are_numbers(numbers)):
        raise ConfigError(f"--source {source!r}: expected TOPIC[:PARTITION[:OFFSET]], such as texts:3:1042")
    partition, offset = [*map(int, numbers), None, None][:2]
    return Choice(stage, exception, topic or None, partition, offset, _milliseconds(since))


def shown_time(timestamp: int | None) -> str:
    """Return an event time (milliseconds since the Unix epoch) in ISO 8601, in UTC; `-` where there is none."""
    if timestamp is None:
        return "-"
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{timestamp % 1000:03}Z"
    except (ValueError, OverflowError, OSError):
        return f"{timestamp} ms"  # outside the years that a date can have


def _milliseconds(time: str | None) -> int | None:
    if time is None:
        return None
    try:
        found = datetime.fromisoformat(time)
    except ValueError:
        raise ConfigError(f"--since {time!r}: expected a time in ISO 8601, such as 2026-01-31T12:00:00Z") from None
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def _are_numbers(parts: Iterable[str]) -> bool:
    return all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts)

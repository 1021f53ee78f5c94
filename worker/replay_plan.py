"""What becomes of each dead letter in a replay: the message to send, or why there is none."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer
from rich.console import Console

from schemas.events import event_id
from worker.config import ConfigError, Settings
from worker.dead_letters import ALL, Choice, Content, Letter, NoLetter, Place, replayed, replays
from worker.highlight import printable
from worker.letter_reader import Span, letter_at, read_letters, record_at
from worker.messages import headers_of, known
from worker.records import LOST_HEADERS, OutgoingMessage
from worker.topics import Topic, retention_ms

LARGEST_TIMESTAMP = 2**63


class StoppedError(Exception):
    """The replay was told to stop."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to replay.

    Attributes:
        places: these letters alone; empty where `choice` says which.
        to: the topic to send to; None for the input topic, from which all must have come then.
        max_letters: send no more than so many.
        max_replays: leave alone what was replayed so often.
    """

    choice: Choice = ALL
    places: Sequence[Place] = ()
    to: str | None = None
    max_letters: int | None = None
    max_replays: int = 3
    dry_run: bool = False

    @property
    def picks(self) -> bool:
        """Whether letters are picked: then no place is kept."""
        return bool(self.places) or self.choice != ALL


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one dead letter: a message to send; or why there is none, which may be a fault."""

    place: Place
    message: OutgoingMessage | None = None
    reason: str = ""
    fault: bool = False


@dataclass(slots=True)
class Replay:
    """One run of the command: what it reads, where it sends to, what it has done so far."""

    settings: Settings
    order: Order
    target: Topic
    reader: Consumer
    originals: Consumer
    console: Console
    stop: threading.Event
    counts: Counter[str] = field(default_factory=Counter)

    def letters(self, within: dict[int, Span]) -> Iterator[Letter | NoLetter]:
        """Yield what is meant, in the order of the topic."""
        topic = self.settings.dead_letter_topic
        if not self.order.places:
            for letter in read_letters(self.reader, topic, within):
                if isinstance(letter, NoLetter):
                    if not self.order.picks:
                        yield letter
                elif self.order.choice.takes(letter):
                    yield letter
        for place in sorted(set(self.order.places)):
            found = letter_at(self.reader, topic, place)
            if found is None:
                raise ConfigError(f"no record at {place} of {topic}")
            yield found

    def survey(self, within: dict[int, Span]) -> int:
        """Return how many dead letters are meant, and say where some may not last where they are sent to.

        Raises:
            ConfigError: one came from another topic than the one to send to, and none was named.
        """
        meant = old = 0
        others: Counter[str] = Counter()
        kept_ms = retention_ms(self.settings, self.target.name)
        oldest = 0 if kept_ms is None else time.time() * 1000 - kept_ms
        for letter in self.letters(within):
            if isinstance(letter, Letter):
                meant += 1
                old += (letter.said.source.timestamp or oldest) < oldest
                if self.order.to is None and letter.said.source.topic != self.target.name:
                    others[letter.said.source.topic] += 1
        if others:
            came = ", ".join(f"{count} from {topic!r}" for topic, count in others.items())
            raise ConfigError(
                f"nothing was sent: of {meant} dead letters, {came}, not from {self.target.name!r} (input_topic); "
                f"pick with --source {self.target.name}, or name the topic to send to with --to"
            )
        if old:
            self.say(
                f"{old} of {meant} dead letters are older than {self.target.name} keeps records "
                f"(retention.ms={kept_ms}): the broker may delete them before they are read"
            )
        return meant

    def steps(self, within: dict[int, Span]) -> Iterator[Step]:
        """Yield what becomes of each letter, up to the most that may be sent.

        Raises:
            StoppedError: it was told to stop.
        """
        sent = 0
        for letter in self.letters(within):
            if self.stop.is_set():
                raise StoppedError
            if sent == self.order.max_letters:
                return
            step = self._step(letter)
            sent += step.message is not None
            yield step

    def note(self, step: Step) -> None:
        """Count a letter that is done with, and say so where it was not sent."""
        if step.message:
            self.counts["sent"] += 1
        else:
            self.counts["failed" if step.fault else "left"] += 1
            self.say(f"{step.place}  not sent: {step.reason}")

    def say(self, line: str) -> None:
        """Print a line."""
        self.console.file.write(printable(line) + "\n")

    def _step(self, letter: Letter | NoLetter) -> Step:
        place = letter.place
        if isinstance(letter, NoLetter):
            return Step(place, reason=f"not a dead letter: {letter.reason}", fault=True)
        timestamp = letter.said.source.timestamp
        if timestamp is not None and not 0 < timestamp < LARGEST_TIMESTAMP:
            return Step(place, reason=f"the Kafka client can't set its event time, {timestamp}", fault=True)
        found = self._original(letter)
        if isinstance(found, str):
            return Step(place, reason=found, fault=True)
        if (times := replays(found.headers)) >= self.order.max_replays:
            return Step(place, reason=f"replayed {times} times already (--max-replays)")
        return Step(place, replayed(letter, found, self.target))

    def _original(self, letter: Letter) -> Content | str:
        """Return the record as it was, from its source where the dead letter could not hold it; or why it is lost."""
        source = letter.said.source
        if letter.said.exception == LOST_HEADERS:
            return "a header's name is not UTF-8: its headers can't be sent again as they were"
        if letter.whole:
            return letter.content
        name = event_id(source.topic, source.partition, source.offset)
        found = record_at(self.originals, source.topic, Place(source.partition, source.offset))
        if found is None:
            return f"it did not fit into its dead letter, and {name} is not in its topic any more"
        kind, timestamp = found.timestamp()
        if found.value() is None or source.timestamp != (None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp):
            return f"it did not fit into its dead letter, and {name} is another record now"
        if (headers := headers_of(found)) is None:
            return f"it did not fit into its dead letter, and the headers of {name} can't be read"
        return Content(found.key(), known(found.value()), headers)

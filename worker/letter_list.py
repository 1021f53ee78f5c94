"""Dead letters on the screen: listed and counted without any text, or one with all that it has."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from schemas.codec import DEAD_LETTER_PREFIX
from schemas.events import event_id
from worker.config import ConfigError, Settings
from worker.dead_letters import Choice, Letter, NoLetter, Place, shown_time
from worker.highlight import printable
from worker.letter_reader import letter_at, new_letter_reader, read_letters, spans
from worker.topics import require

COLUMNS = ("place", "source", "event time", "stage", "exception", "attempts", "replays", "message")
ROWS_AT_ONCE = 500


@dataclass(slots=True)
class Tally:
    """How many dead letters there are by stage and exception, and what else lies on their topic."""

    letters: Counter[tuple[str, str]] = field(default_factory=Counter)
    others: int = 0
    first_other: NoLetter | None = None

    def lines(self) -> list[str]:
        """Return the counts as lines, the most frequent first."""
        shown = [f"{count:8}  {stage}  {exception}" for (stage, exception), count in self.letters.most_common()]
        lines = [*shown, f"{self.letters.total()} dead letters"]
        if self.first_other:
            first = self.first_other
            lines.append(f"{self.others} records are no dead letters, the first at {first.place}: {first.reason}")
        return [printable(line) for line in lines]


def list_letters(
    settings: Settings,
    choice: Choice,
    *,
    max_letters: int | None,
    as_json: bool,
    summary_only: bool,
    console: Console,
    notes: Console,
) -> None:
    """Print a line for each dead letter that is meant, then how many there are by stage and exception.

    Neither key nor value is printed. It ends where the topic ended when it began.

    Args:
        settings: of them the broker's address and the dead-letter topic.
        choice: which are meant.
        max_letters: stop after so many.
        as_json: a JSON object a line, the counts to `notes`; a table otherwise, without frames off a terminal.
        summary_only: print the counts alone.
        console: where to print.
        notes: for what is not to be among the JSON lines.

    Raises:
        BrokerUnreachableError: no broker answers.
        ConfigError: the topic isn't there, or librdkafka refuses a property.
        KafkaException: the topic can't be read.
    """
    topic = settings.dead_letter_topic
    require(settings, topic)
    reader = new_letter_reader(settings)
    tally = Tally()
    framed = console.is_terminal and not as_json
    waiting: list[Letter] = []
    if not (as_json or framed or summary_only):
        _write(console, "\t".join(COLUMNS))
    try:
        for letter in read_letters(reader, topic, spans(reader, topic)):
            if isinstance(letter, NoLetter):
                tally.others += 1
                tally.first_other = tally.first_other or letter
                continue
            if not choice.takes(letter):
                continue
            tally.letters[letter.said.stage, letter.said.exception] += 1
            if summary_only:
                pass
            elif framed:
                waiting.append(letter)
                if len(waiting) == ROWS_AT_ONCE:
                    console.print(_table(waiting))
                    waiting.clear()
            else:
                _write(console, json.dumps(as_object(letter)) if as_json else "\t".join(_cells(letter)))
            if tally.letters.total() == max_letters:
                break
    finally:
        reader.close()
    if waiting:
        console.print(_table(waiting))
    if as_json and summary_only:
        for (stage, exception), count in tally.letters.most_common():
            _write(console, json.dumps({"stage": stage, "exception": exception, "count": count}))
    else:
        for line in tally.lines():
            _write(notes if as_json else console, line)


def show_letter(settings: Settings, place: Place, *, console: Console) -> None:
    """Print all of one record of the dead-letter topic: why it failed, its own headers, key and value.

    What can't be printed is escaped as in Python's strings.

    Raises:
        BrokerUnreachableError: no broker answers.
        ConfigError: there is no such record.
        KafkaException: the topic can't be read.
    """
    letter = find_letter(settings, place)
    key, value, headers = letter.content
    _write(console, f"{settings.dead_letter_topic}:{place}")
    if isinstance(letter, NoLetter):
        _write(console, f"not a dead letter: {_escaped(letter.reason.encode('utf-8', 'backslashreplace'))}")
    for ours in (True, False):
        _write(console, "why it failed:" if ours else "headers of the record:")
        for name, said in headers:
            if name.startswith(DEAD_LETTER_PREFIX) is ours:
                _write(console, f"  {_escaped(name.encode())}: {_escaped(said)}")
    _write(console, f"key: {_escaped(key)}")
    _write(console, f"value: {_escaped(value) if value is not None or isinstance(letter, NoLetter) else _away(letter)}")


def raw_value(settings: Settings, place: Place) -> bytes:
    """Return the value of one record of the dead-letter topic.

    Raises:
        BrokerUnreachableError: no broker answers.
        ConfigError: there is no such record, or it has no value.
        KafkaException: the topic can't be read.
    """
    letter = find_letter(settings, place)
    if letter.content.value is None:
        why = "it is null" if isinstance(letter, NoLetter) else _away(letter)
        raise ConfigError(f"{settings.dead_letter_topic}:{place} has no value: {why}")
    return letter.content.value


def find_letter(settings: Settings, place: Place) -> Letter | NoLetter:
    """Return the record at a place of the dead-letter topic.

    Raises:
        BrokerUnreachableError: no broker answers.
        ConfigError: there is no such record.
        KafkaException: the topic can't be read.
    """
    require(settings, settings.dead_letter_topic)
    reader = new_letter_reader(settings)
    try:
        found = letter_at(reader, settings.dead_letter_topic, place)
        if found is None:
            held = spans(reader, settings.dead_letter_topic).items()
            there = [
                f"{number}:{span.start} to {number}:{span.end - 1}" for number, span in held if span.start < span.end
            ]
            raise ConfigError(
                f"no record at {place} of {settings.dead_letter_topic}; what is there: {', '.join(there) or 'none'}"
            )
        return found
    finally:
        reader.close()


def as_object(letter: Letter) -> dict[str, Any]:
    """Return a dead letter, without any text, as an object to be written as JSON."""
    place = {"partition": letter.place.partition, "offset": letter.place.offset}
    return place | {"whole": letter.whole, "replays": letter.replays} | letter.said.model_dump()


def _cells(letter: Letter) -> list[str]:
    said, source = letter.said, letter.said.source
    cells = (
        str(letter.place),
        event_id(source.topic, source.partition, source.offset),
        shown_time(source.timestamp),
        said.stage,
        said.exception,
        str(said.attempts),
        "-" if letter.replays is None else str(letter.replays),
        said.message,
    )
    return [printable(cell) for cell in cells]


def _table(letters: Sequence[Letter]) -> Table:
    # In a narrow terminal a place takes two lines; cut off it would be of no use.
    table = Table(*(Column(name, overflow="fold") for name in COLUMNS), box=None, pad_edge=False)
    for letter in letters:
        table.add_row(*(Text(cell) for cell in _cells(letter)))
    return table


def _away(letter: Letter) -> str:
    source = letter.said.source
    return f"the record did not fit here; it was {event_id(source.topic, source.partition, source.offset)}"


def _escaped(text: bytes | None) -> str:
    if text is None:
        return "(null)"
    read = text.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in read)


def _write(console: Console, line: str) -> None:
    # Not by the console's print, which would take `:name:` for a picture and wrap lines.
    console.file.write(line + "\n")

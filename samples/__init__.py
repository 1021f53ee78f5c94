"""Read the sample texts, with their entities, that demos and tests run on.

A file ``<kind>.txt`` beside this module (UTF-8, lines end in a line feed) holds the texts of one kind. A line
``=== <id>`` opens a text, which goes on, exactly as it stands, up to the next such line or the end of the file;
one line feed at its end belongs to the format, not to the text. Ids are unique over all files.

Entities are marked where they stand, as ``[[surface|label]]``::

    === post-001
    Landed in [[Lisbon|location]] and the sun is out at last.

Marks don't nest, and there is no escape: a text can hold neither ``[[`` nor ``]]``, an entity no ``|``. What is
marked, and what is not, is written down in this folder's README.md.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain

LABELS = frozenset({"person", "organization", "location", "date", "product", "event"})

_HEADER = re.compile(r"^=== ?(.*)\n", re.MULTILINE)
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MARK = re.compile(r"\[\[(?P<surface>[^\[\]|]+)\|(?P<label>[^\[\]|]*)\]\]")
_BRACKETS = re.compile(r"\[\[|\]\]")


@dataclass(frozen=True, slots=True)
class Marked:
    """Say where an entity stands in its text: ``text[start:end]``, counted in code points, and its label."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class Sample:
    """Hold one text, free of marks, and its entities in the order of the text; `kind` is its file's stem."""

    id: str
    kind: str
    text: str
    entities: tuple[Marked, ...]


def read() -> list[Sample]:
    """Read every sample of this package, by file name and then in the order of the file.

    Raises ValueError, naming the file, the text's id and the fault, where a file is malformed.
    """
    # Decoded from bytes: text mode would turn every carriage return in a text into a line feed.
    return parse_files(
        {
            entry.name: entry.read_bytes().decode()
            for entry in sorted(files(__name__).iterdir(), key=lambda entry: entry.name)
            if entry.name.endswith(".txt")
        }
    )


def parse_files(sources: Mapping[str, str]) -> list[Sample]:
    """Parse the contents of files, given by file name, into samples.

    Raises ValueError as `read` does: text before the first header, an id that is malformed or taken, a bad mark.
    """
    samples: dict[str, Sample] = {}
    for name, content in sources.items():
        # With one group in the pattern: what precedes the first header, then id, text, id, text, ...
        before, *parts = _HEADER.split(content)
        if before:
            raise ValueError(f"{name}: the file must begin with a line '=== <id>'")
        for sample_id, marked in zip(parts[::2], parts[1::2], strict=True):
            where = f"{name}, {sample_id!r}"
            if not _ID.fullmatch(sample_id):
                raise ValueError(f"{where}: an id is lower-case letters and digits, joined by hyphens")
            if sample_id in samples:
                raise ValueError(f"{where}: the id is taken by a text in {samples[sample_id].kind}.txt")
            try:
                text, entities = parse(marked.removesuffix("\n"))
            except ValueError as fault:
                raise ValueError(f"{where}: {fault}") from fault
            samples[sample_id] = Sample(sample_id, name.removesuffix(".txt"), text, entities)
    return list(samples.values())


def parse(marked: str) -> tuple[str, tuple[Marked, ...]]:
    """Take the marks out of a text: return the text without them, and the entities they stood for.

    Raises ValueError, with the code point at which it stands in `marked`, for a mark that isn't closed, opened,
    labelled or filled as it should be.
    """
    pieces: list[str] = []
    entities: list[Marked] = []
    length = 0  # of the pieces so far, in code points
    done = 0  # how much of `marked` they cover
    for mark in chain(_MARK.finditer(marked), [None]):
        between = marked[done : mark.start() if mark else len(marked)]
        if stray := _BRACKETS.search(between):
            raise ValueError(
                f"'{stray[0]}' at {done + stray.start()} is not part of a mark '[[surface|label]]'; "
                "marks don't nest, and brackets can't be escaped"
            )
        pieces.append(between)
        length += len(between)
        if mark is None:
            break
        surface, label = mark["surface"], mark["label"]
        if label not in LABELS:
            raise ValueError(
                f"unknown label '{label}' in the mark at {mark.start()}; use one of {', '.join(sorted(LABELS))}"
            )
        if surface != surface.strip():
            raise ValueError(f"the mark at {mark.start()} has white space at an end of its surface")
        pieces.append(surface)
        entities.append(Marked(length, length + len(surface), label))
        length += len(surface)
        done = mark.end()
    return "".join(pieces), tuple(entities)

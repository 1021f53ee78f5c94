"""The checkpoint: what a commit says beyond its offset, in the commit's metadata."""

import json
from dataclasses import asdict, dataclass

VERSION = 1
MAX_BYTES = 1024
"""A quarter of what a broker takes (`offset.metadata.max.bytes`, 4,096 by default)."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of one partition as of a commit.

    Attributes:
        run: the worker process that wrote it.
        batch: how many micro-batches that process had answered, this one included.
        clean: the worker left the partition in good order, as against by dying.
        until: records below this offset may have been in the worker's hands after the commit, none from it on; after
            an unclean end, those that are suspect.
        deaths: unclean ends, one after the other, with records below `until` in hand.
        trials: how often a process died while the record at the committed offset ran alone.
        first_start: when the group first started on the partition, in milliseconds since the Unix epoch; only in the
            mark made then, None in all that follow.
    """

    run: str
    batch: int
    clean: bool
    until: int | None = None
    deaths: int = 0
    trials: int = 0
    first_start: int | None = None


def encode(checkpoint: Checkpoint) -> str:
    """Return the checkpoint as compact JSON of at most `MAX_BYTES` bytes.

    Raises:
        ValueError: it would be longer (a run name far too long).
    """
    fields = {name: value for name, value in asdict(checkpoint).items() if value is not None}
    text = json.dumps({"v": VERSION, **fields}, separators=(",", ":"))
    if len(text.encode()) > MAX_BYTES:
        raise ValueError(f"a checkpoint of {len(text.encode())} bytes is over {MAX_BYTES}")
    return text


def decode(metadata: str | None) -> Checkpoint | None:
    """Return the checkpoint in a commit's metadata; None where there is none or another program wrote it."""
    try:
        found = json.loads(metadata or "")
    except (ValueError, RecursionError):
        return None
    match found:
        case {"v": int(version), "run": str(run), "batch": int(batch), "clean": bool(clean)} if version == VERSION:
            return Checkpoint(
                run,
                batch,
                clean,
                until=_integer(found.get("until")),
                deaths=_integer(found.get("deaths")) or 0,
                trials=_integer(found.get("trials")) or 0,
                first_start=_integer(found.get("first_start")),
            )
        case _:
            return None


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None

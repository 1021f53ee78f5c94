"""Records as the consumer would make them."""

import json

from worker.records import Partition, Record

TEXTS = Partition("texts", 0)


def record(
    value: object,
    *,
    partition: Partition = TEXTS,
    offset: int = 0,
    key: bytes | None = b"k",
    headers: tuple[tuple[str, bytes | None], ...] = (("traceparent", b"00-1"),),
    arrived: float = 0.0,
    epoch: int = 1,
) -> Record:
    """Return a record; a `dict` is encoded as JSON, bytes and None stay as they are."""
    encoded = json.dumps(value).encode() if isinstance(value, dict) else value
    assert encoded is None or isinstance(encoded, bytes)
    return Record(partition, offset, epoch, 1_700_000_000_000, key, encoded, headers, arrived)

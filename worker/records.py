"""A record: what Kafka gave, stamped with the assignment under which it was read."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


LOST_HEADERS = "HeadersLost"
"""The exception in a dead letter of a record whose headers the client could not give."""


class Partition(NamedTuple):
    """One partition of one topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


@dataclass(frozen=True, slots=True)
class Record:
    """One record of an input partition.

    Attributes:
        epoch: the assignment of the partition under which the record was read (see `assignment.py`).
        timestamp: event time in milliseconds since the Unix epoch; None where the producer set none.
        arrived: when the worker took the record, in seconds of the worker's monotonic clock.

        headers_lost: the record has headers, but the client can't give them: a name among them is not UTF-8.
    """

    partition: Partition
    offset: int
    epoch: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers
    arrived: float
    headers_lost: bool = False

    @property
    def size(self) -> int:
        """Bytes of key, value and headers."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """One message to publish.

    Attributes:
        partition: the partition to write to; None lets the key decide (murmur2, as Java clients do).
        timestamp: event time in milliseconds since the Unix epoch; None lets the client set it.
    """

    topic: str
    partition: int | None
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def size(self) -> int:
        """Upper bound of the bytes of a record batch that holds this message alone, uncompressed.

        A batch header takes 61 bytes; a record's own lengths, deltas and attributes take at most 36, each
        header's two lengths at most 10 (Kafka's record batch format, version 2).
        """
        headers = sum(len(name.encode()) + len(value or b"") + 10 for name, value in self.headers)
        return 61 + 36 + len(self.key or b"") + len(self.value or b"") + headers

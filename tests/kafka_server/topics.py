"""Create and delete topics for a test, under names that no other test has."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Final, Protocol

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

REQUEST_S: Final = 30.0
LEADERS_S: Final = 30.0


class MakeTopic(Protocol):
    """Create a topic `name` plus a unique ending and return its full name."""

    def __call__(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str: ...


def unique(name: str) -> str:
    """Return the name with an ending that no other call returns."""
    return f"{name}-{uuid.uuid4().hex[:8]}"


def create_topic(bootstrap: str, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
    """Create a topic and return once every partition has a leader.

    Raises:
        KafkaException: the broker refused, or didn't answer.
        TimeoutError: a partition got no leader.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
    admin.create_topics([topic], operation_timeout=REQUEST_S)[name].result(REQUEST_S)
    deadline = time.monotonic() + LEADERS_S
    while time.monotonic() < deadline:
        found = admin.list_topics(name, timeout=REQUEST_S).topics[name].partitions
        if len(found) == partitions and all(partition.leader >= 0 for partition in found.values()):
            return
        time.sleep(0.02)
    raise TimeoutError(f"topic {name} has no leader for every partition after {LEADERS_S:.0f} s")


def delete_topics(bootstrap: str, names: list[str]) -> None:
    """Delete topics; one that is gone already is no fault."""
    if not names:
        return
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for deleted in admin.delete_topics(names, operation_timeout=REQUEST_S).values():
        try:
            deleted.result(REQUEST_S)
        except KafkaException as failed:
            if failed.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise

"""Settings of the workers under which a fault is over soon, and how soon that has to be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

SESSION_S: Final = 1.5
TRANSACTION_S: Final = 2.0
SCAN_S: Final = 0.2
"""How late the broker may find a transaction to be over its time: as the broker of these tests is set."""
RECOVERY_S: Final = max(SESSION_S, TRANSACTION_S + SCAN_S) + 5
"""What is asked: a worker that is gone is missed after its session, what it left open ends after its transaction."""

PACE: Final[Mapping[str, object]] = {
    "transaction_timeout_ms": round(TRANSACTION_S * 1000),
    "batch_tokens": 32,
    "drain_ms": 5000,
    "FORWARD_SECONDS": 0.01,
}
"""Small micro-batches, so that many are under way."""


def pace(protocol: str = "classic", **others: object) -> dict[str, object]:
    """Return settings under which a fault is over soon.

    Args:
        protocol: the group's.
        others: further settings, over those.
    """
    session: dict[str, object] = {"session.timeout.ms": round(SESSION_S * 1000), "heartbeat.interval.ms": 300}
    # Under the protocol `consumer` the session is the broker's to set.
    consumer = {"consumer_properties": json.dumps(session)} if protocol == "classic" else {}
    return {**PACE, "group_protocol": protocol, **consumer, **others}

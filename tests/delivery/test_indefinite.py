"""Calls that succeeded at the broker and failed at the client: their response is lost, late, or its connection ends.

Which it is must not matter: the worker finds out what is committed and goes on by itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from tests.delivery.conftest import MakeStream
from tests.delivery.feed import feeding
from tests.delivery.pace import pace
from tests.delivery.proxy import Api, Fault, Proxy, Rule
from tests.delivery.report import Report, scale
from tests.delivery.streams import side_by_side
from tests.delivery.verifier import verify
from tests.delivery.watcher import watching
from tests.end_to_end.conftest import Stream
from tests.end_to_end.workers import wait_until

SOCKET_S: Final = 1.0
CLIENT: Final = {
    "socket.timeout.ms": round(SOCKET_S * 1000),
    # The client's pause between two connections grows with every one that ends, up to 10 s by default.
    "reconnect.backoff.max.ms": 500,
}
PATIENCE_S: Final = 60.0
PARTITIONS: Final = 2
FAULTS: Final[tuple[Fault, ...]] = ("lose response", "close", "delay")
SAID: Final = {"lose response": "response lost", "close": "connection ends", "delay": "response late"}


class Call(NamedTuple):
    """A mode of delivery and a call that it makes."""

    delivery: str
    api: Api

    def __str__(self) -> str:
        return f"{self.api.name}, {self.delivery}"


CALLS: Final = (
    Call("exactly_once", Api.PRODUCE),
    Call("exactly_once", Api.TXN_OFFSET_COMMIT),
    Call("exactly_once", Api.END_TXN),
    Call("at_least_once", Api.PRODUCE),
    Call("at_least_once", Api.OFFSET_COMMIT),
)


def test_a_call_that_succeeded_unseen_costs_nothing(make_stream: MakeStream, proxy: Proxy, report: Report) -> None:
    times = scale(quick=2, full=20)

    def job(stream: Stream, call: Call) -> None:
        first = CALLS.index(call)
        suffer(stream, call, [FAULTS[(first + n) % len(FAULTS)] for n in range(times)], proxy, report)

    side_by_side(make_stream, PARTITIONS, CALLS, job)


def suffer(stream: Stream, call: Call, faults: Sequence[Fault], proxy: Proxy, report: Report) -> None:
    """Let the responses to one kind of call fail one after the other while texts come, and judge the stream."""
    repeats_allowed = call.delivery == "at_least_once"
    worker = stream.start(
        pace(
            bootstrap_servers=proxy.bootstrap,
            delivery=call.delivery,
            kafka_properties=json.dumps(CLIENT | {"client.id": str(call)}),
        )
    )
    with (
        watching(stream, repeats_allowed=repeats_allowed) as watcher,
        feeding(stream, watcher, partitions=PARTITIONS, per_second=50) as feed,
    ):
        watcher.wait_for(20, PATIENCE_S)
        for fault in faults:
            # The call that is made again after its connection ended fails too.
            rule = proxy.add(
                Rule(call.api, fault, times=2 if fault == "close" else 1, client=str(call), seconds=2 * SOCKET_S)
            )
            wait_until(lambda rule=rule: rule.struck == rule.times, PATIENCE_S, worker.tail)  # type: ignore[misc]
            report.tried(row(call, fault), recovery_s=watcher.recovery_s(rule.struck_at, range(PARTITIONS), PATIENCE_S))
        count = feed.stop()
        watcher.wait_for(count, PATIENCE_S)
        stream.wait_until_done()
    assert worker.stop() == 0, f"{call}\n{worker.tail()}"
    verdict = verify(stream, range(count), repeats_allowed=repeats_allowed)
    report.found(verdict, *{row(call, fault) for fault in faults})
    verdict.assert_sound()


def row(call: Call, fault: Fault) -> str:
    return f"{SAID[fault]}: {call}"

"""A proxy before a Kafka broker that loses, delays and slows what is asked for, by the kind of request.

It reads the frames of the protocol (a size, then a request's api key, version and correlation id, or a response's
correlation id) and nothing of what they hold. A broker is put behind it with `KafkaServer(advertised_port=...)`.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
import time
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass
from enum import IntEnum
from types import TracebackType
from typing import Any, Final, Literal, Self

from tests.kafka_server.settings import HOST

START_S: Final = 10.0
REQUEST: Final = struct.Struct(">hhih")
"""api key, version, correlation id, length of the client id (-1 for none)"""


class Api(IntEnum):
    """The kinds of request that tests name, by their key in the protocol."""

    PRODUCE = 0
    FETCH = 1
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    SYNC_GROUP = 14
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28
    CONSUMER_GROUP_HEARTBEAT = 68


Fault = Literal["lose request", "lose response", "close", "delay"]


@dataclass(eq=False)
class Rule:
    """What happens to a kind of request.

    Attributes:
        api: the kind.
        fault: `lose request`: the broker never sees it; `lose response`: the broker did it, the client never hears;
            `close`: so too, and the connection ends; `delay`: the response comes `seconds` later.
        times: how often it strikes at most.
        client: strike this `client.id` alone.
        struck: how often it has.
        struck_at: when it last did, in seconds of the monotonic clock.
    """

    api: Api
    fault: Fault
    times: int = 1
    seconds: float = 0.0
    client: str | None = None
    struck: int = 0
    struck_at: float = 0.0

    def strikes(self, key: int, client: str | None) -> bool:
        """Return whether it strikes a request, and count that."""
        if key != self.api or self.struck >= self.times or self.client not in (None, client):
            return False
        self.struck_at = time.monotonic()
        self.struck += 1
        return True


class Proxy:
    """Listens on a local port while its block lasts; every connection is passed on to the broker's own port.

    Faults are set from any thread and hold for the requests that come after.
    """

    def __init__(self, port: int, broker_port: int) -> None:
        self.port = port
        self._broker_port = broker_port
        self._rules: list[Rule] = []
        self._seen: Counter[int] = Counter()
        self._delay_s = 0.0
        self._bytes_per_s = float("inf")
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    @property
    def bootstrap(self) -> str:
        """The address for `bootstrap.servers`."""
        return f"{HOST}:{self.port}"

    def add(self, rule: Rule) -> Rule:
        """Let a rule hold from now on; the first that strikes a request is the one."""
        with self._lock:
            self._rules.append(rule)
        return rule

    def seen(self, api: Api) -> int:
        """Return how many requests of a kind have come."""
        with self._lock:
            return self._seen[api]

    def slow(self, *, delay_s: float = 0.0, bytes_per_s: float = float("inf")) -> None:
        """Let every frame take longer, in both directions."""
        with self._lock:
            self._delay_s, self._bytes_per_s = delay_s, bytes_per_s

    def cut(self) -> None:
        """End all connections and refuse new ones."""
        self._call(self._close())

    def mend(self) -> None:
        """Take back everything: no rules, full speed, connections are taken."""
        with self._lock:
            self._rules.clear()
        self.slow()
        self._call(self._listen())

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._listen())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_S)
        self._loop.close()

    def _call(self, step: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(step, self._loop).result(START_S)

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, HOST, self.port)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in tuple(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = self._loop.create_task(self._carry(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _carry(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        with contextlib.closing(to_client):
            try:
                broker, to_broker = await asyncio.open_connection(HOST, self._broker_port)
            except OSError:
                return  # no broker: the client sees its connection end
            struck: dict[int, Rule] = {}
            ways = [
                asyncio.ensure_future(self._pass_requests(client, to_broker, struck)),
                asyncio.ensure_future(self._pass_responses(broker, to_client, struck)),
            ]
            with contextlib.closing(to_broker):
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)

    async def _pass_requests(
        self, client: asyncio.StreamReader, broker: asyncio.StreamWriter, struck: dict[int, Rule]
    ) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await _frame(client)
                key, _, correlation, length = REQUEST.unpack_from(frame, 4)
                name_at = 4 + REQUEST.size
                name = None if length < 0 else frame[name_at : name_at + length].decode(errors="replace")
                rule = self._rule(key, name)
                if rule and rule.fault == "lose request":
                    continue
                if rule:
                    struck[correlation] = rule
                await self._send(broker, frame)

    async def _pass_responses(
        self, broker: asyncio.StreamReader, client: asyncio.StreamWriter, struck: dict[int, Rule]
    ) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await _frame(broker)
                (correlation,) = struct.unpack_from(">i", frame, 4)
                rule = struck.pop(correlation, None)
                if rule and rule.fault == "lose response":
                    continue
                if rule and rule.fault == "close":
                    return
                if rule:
                    await asyncio.sleep(rule.seconds)
                await self._send(client, frame)

    def _rule(self, key: int, client: str | None) -> Rule | None:
        with self._lock:
            self._seen[key] += 1
            return next((rule for rule in self._rules if rule.strikes(key, client)), None)

    async def _send(self, to: asyncio.StreamWriter, frame: bytes) -> None:
        pause = self._delay_s + len(frame) / self._bytes_per_s
        if pause:
            await asyncio.sleep(pause)
        to.write(frame)
        await to.drain()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    return size + await reader.readexactly(int.from_bytes(size))

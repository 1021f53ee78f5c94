"""The proxy strikes what it was asked to strike and nothing else, against a broker that answers every request."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.delivery.proxy import REQUEST, Api, Proxy, Rule
from tests.kafka_server.server import free_port
from tests.kafka_server.settings import HOST

BODY = b"answered"


class EchoBroker:
    """Answers each request with its correlation id; remembers the kinds of request that came."""

    def __init__(self) -> None:
        self._socket = socket.create_server((HOST, 0))
        self.port: int = self._socket.getsockname()[1]
        self.got: list[int] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._answer, args=[connection], daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as stream:
            while size := stream.read(4):
                key, _, correlation, _ = REQUEST.unpack_from(stream.read(int.from_bytes(size)))
                self.got.append(key)
                connection.sendall(struct.pack(">ii", 4 + len(BODY), correlation) + BODY)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def broker() -> Iterator[EchoBroker]:
    broker = EchoBroker()
    yield broker
    broker.close()


@pytest.fixture
def proxy(broker: EchoBroker) -> Iterator[Proxy]:
    with Proxy(free_port(), broker.port) as proxy:
        yield proxy


@contextmanager
def connected(proxy: Proxy, client: str | None = None) -> Iterator[Callable[..., int | None]]:
    """Yield a function that sends a request and returns the correlation id of the response, None where none came."""
    with socket.create_connection((HOST, proxy.port)) as connection:

        def ask(api: Api, correlation: int, patience_s: float = 5.0) -> int | None:
            name = b"" if client is None else client.encode()
            request = REQUEST.pack(api, 7, correlation, -1 if client is None else len(name)) + name + b"the rest"
            connection.sendall(struct.pack(">i", len(request)) + request)
            connection.settimeout(patience_s)
            try:
                answer = connection.recv(1024)
            except TimeoutError:
                return None
            if not answer:
                raise ConnectionResetError
            size, found = struct.unpack_from(">ii", answer)
            assert (size, answer[8:]) == (4 + len(BODY), BODY)
            return int(found)

        yield ask


def test_what_no_rule_is_for_passes(broker: EchoBroker, proxy: Proxy) -> None:
    rule = proxy.add(Rule(Api.END_TXN, "lose request"))
    with connected(proxy, "worker") as ask:
        assert [ask(Api.PRODUCE, 1), ask(Api.FETCH, 2)] == [1, 2]
    assert broker.got == [Api.PRODUCE, Api.FETCH]
    assert (rule.struck, proxy.seen(Api.PRODUCE)) == (0, 1)


def test_a_lost_request_is_never_seen_by_the_broker(broker: EchoBroker, proxy: Proxy) -> None:
    rule = proxy.add(Rule(Api.PRODUCE, "lose request"))
    with connected(proxy) as ask:
        assert ask(Api.PRODUCE, 1, patience_s=0.2) is None
        assert ask(Api.PRODUCE, 2) == 2
    assert broker.got == [Api.PRODUCE]
    assert rule.struck == 1


def test_a_lost_response_leaves_what_the_broker_did_and_the_connection(broker: EchoBroker, proxy: Proxy) -> None:
    proxy.add(Rule(Api.END_TXN, "lose response", times=2))
    with connected(proxy) as ask:
        assert [ask(Api.END_TXN, number, patience_s=0.2) for number in (1, 2)] == [None, None]
        assert ask(Api.END_TXN, 3) == 3
    assert broker.got == [Api.END_TXN] * 3


def test_closing_ends_the_connection_after_the_broker_did_it(broker: EchoBroker, proxy: Proxy) -> None:
    proxy.add(Rule(Api.OFFSET_COMMIT, "close"))
    with connected(proxy) as ask, pytest.raises(ConnectionResetError):
        ask(Api.OFFSET_COMMIT, 1)
    assert broker.got == [Api.OFFSET_COMMIT]
    with connected(proxy) as ask:
        assert ask(Api.OFFSET_COMMIT, 1) == 1


def test_a_delayed_response_comes_later(proxy: Proxy) -> None:
    proxy.add(Rule(Api.HEARTBEAT, "delay", seconds=0.3))
    with connected(proxy) as ask:
        started = time.monotonic()
        assert ask(Api.HEARTBEAT, 1) == 1
        assert time.monotonic() - started >= 0.3


def test_a_rule_for_one_client_leaves_the_others_alone(proxy: Proxy) -> None:
    rule = proxy.add(Rule(Api.PRODUCE, "lose response", client="worker-1"))
    with connected(proxy, "worker-2") as other, connected(proxy, "worker-1") as one, connected(proxy) as nameless:
        assert (other(Api.PRODUCE, 1), nameless(Api.PRODUCE, 2)) == (1, 2)
        assert one(Api.PRODUCE, 3, patience_s=0.2) is None
    assert rule.struck == 1


def test_a_slow_way_costs_its_delay_and_its_bandwidth_both_ways(proxy: Proxy) -> None:
    proxy.slow(delay_s=0.1, bytes_per_s=200)
    with connected(proxy) as ask:
        started = time.monotonic()
        assert ask(Api.PRODUCE, 1) == 1
        # 22 bytes out and 16 back
        assert time.monotonic() - started >= 2 * 0.1 + (22 + 16) / 200


def test_a_cut_ends_connections_and_refuses_new_ones_until_mended(proxy: Proxy) -> None:
    with connected(proxy) as ask:
        assert ask(Api.PRODUCE, 1) == 1
        proxy.cut()
        with pytest.raises(OSError):
            ask(Api.PRODUCE, 2)
    with pytest.raises(ConnectionRefusedError), connected(proxy):
        pass
    proxy.add(Rule(Api.PRODUCE, "close"))
    proxy.mend()
    with connected(proxy) as ask:
        assert ask(Api.PRODUCE, 3) == 3

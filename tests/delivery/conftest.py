"""A broker of its own, whose timeouts are low, and the report of what every fault cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.conftest import Kafka
from tests.delivery.proxy import Proxy
from tests.delivery.report import FULL, Report
from tests.end_to_end.conftest import Stream, make_stream
from tests.kafka_server.server import KafkaServer, free_port

__all__ = ["make_stream"]

MakeStream = Callable[..., Stream]

REPORT: Final = pytest.StashKey[Report]()
STARTED: Final = pytest.StashKey[float]()

BROKER: Final = {
    # How soon a member that is gone is missed is the broker's to say under the protocol `consumer`.
    "group.consumer.session.timeout.ms": 1500,
    "group.consumer.heartbeat.interval.ms": 300,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
}


@pytest.fixture(scope="session")
def proxy_port() -> int:
    """Return where a proxy before the broker listens, if a test starts one."""
    return free_port()


@pytest.fixture(scope="session")
def broker(kafka_jars: object, tmp_path_factory: pytest.TempPathFactory, proxy_port: int) -> Iterator[KafkaServer]:
    """Return the broker of these tests; one that is stopped or killed must be started again."""
    folder = tmp_path_factory.mktemp("delivery-kafka")
    with KafkaServer(folder, settings=BROKER, advertised_port=proxy_port) as server:
        yield server


@pytest.fixture
def proxy(broker: KafkaServer, proxy_port: int) -> Iterator[Proxy]:
    """Return a proxy before the broker, for the workers; what tests ask the broker themselves goes straight to it."""
    with Proxy(proxy_port, broker.proxied_port) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def kafka(broker: KafkaServer) -> Kafka:
    """Return that broker to the fixtures that ask for the broker that all tests share."""
    return Kafka(broker.bootstrap)


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Report:
    """Return the rows of this run; shown at its end."""
    return _report_of(request.config)


def _report_of(config: pytest.Config) -> Report:
    return config.stash.setdefault(REPORT, Report())


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[STARTED] = time.monotonic()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = _report_of(config)
    if rows.rows:
        terminalreporter.section("delivery: what every fault cost")
        for line in rows.table():
            terminalreporter.line(line)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    # A part of the tests must not pass for all of them.
    whole = not config.option.keyword and not any(arg.endswith(".py") or "::" in arg for arg in config.args)
    if FULL and ended and whole:
        _report_of(config).write(time.monotonic() - config.stash[STARTED])

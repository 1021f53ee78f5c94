"""A broker of its own, whose timeouts are low, and the report of what every fault cost."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.conftest import Kafka
from tests.delivery.proxy import Proxy
from tests.delivery.report import FULL, Report, write
from tests.end_to_end.conftest import Stream, make_stream
from tests.kafka_server.server import KafkaServer, free_port

__all__ = ["make_stream"]

MakeStream = Callable[..., Stream]

REPORTS: Final = pytest.StashKey[dict[str, Report]]()
SECONDS: Final = defaultdict[str, float](float)
FAILED: Final = set[str]()

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
    """Return the rows of this file's run; shown at its end."""
    return request.config.stash.setdefault(REPORTS, {}).setdefault(request.path.name, Report())


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    SECONDS[Path(report.fspath).name] += report.duration
    FAILED.update([Path(report.fspath).name] if report.failed else [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reports = config.stash.get(REPORTS, {})
    if not reports:
        return
    terminalreporter.section("delivery: what every fault cost")
    for line in functools.reduce(Report.joined, reports.values()).table():
        terminalreporter.line(line)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    # Whole files alone, in which nothing failed: a part of a file must not pass for all of it.
    if FULL and ended and not config.option.keyword and not any("::" in arg for arg in config.args):
        sound = {name: rows for name, rows in config.stash.get(REPORTS, {}).items() if name not in FAILED}
        write(sound, SECONDS)

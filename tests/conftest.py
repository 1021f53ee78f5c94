"""Give tests a real Apache Kafka, topics and groups of their own, and say at the end what was left out."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import left_out
from tests.kafka_server.jars import KafkaUnavailableError, fetch
from tests.kafka_server.server import KafkaServer
from tests.kafka_server.topics import MakeTopic, create_topic, delete_topics, unique


@dataclass(frozen=True)
class Kafka:
    """The broker that tests share."""

    bootstrap: str


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "kafka: runs against a real Apache Kafka (set by the fixtures it uses)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"kafka", "kafka_jars"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.kafka)


@pytest.fixture(scope="session")
def kafka_jars() -> Path:
    """Return the folder of Kafka's jars; for tests that run a broker of their own.

    Where they can't be had the test is skipped, in CI it fails.
    """
    try:
        return fetch()
    except KafkaUnavailableError as missing:
        left_out.KAFKA.missing(str(missing))


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Return a broker for the whole run: the one that GLISTREAM_TEST_KAFKA names, or one started for the run."""
    if elsewhere := os.environ.get(left_out.ELSEWHERE):
        yield Kafka(elsewhere)
        return
    request.getfixturevalue("kafka_jars")
    with KafkaServer(tmp_path_factory.mktemp("kafka")) as server:
        yield Kafka(server.bootstrap)


@pytest.fixture
def make_topic(kafka: Kafka) -> Iterator[MakeTopic]:
    """Return a function that creates topics under unique names; they are deleted after the test."""
    made: list[str] = []

    def make(name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        topic = unique(name)
        create_topic(kafka.bootstrap, topic, partitions, config)
        made.append(topic)
        return topic

    yield make
    delete_topics(kafka.bootstrap, made)


@pytest.fixture
def group_id() -> str:
    """Return the name of a consumer group that no other test uses."""
    return unique("group")


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outermost, so that these lines come after every other summary
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
    yield
    left_out.tell(terminalreporter)

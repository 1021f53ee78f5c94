"""Say how the one-node broker is configured: as text, without touching a disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

JVM: Final = (
    "-Xms128m",
    "-Xmx512m",
    # A broker that lives for minutes starts sooner without the optimising compiler and parallel collectors.
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
)

HOST: Final = "127.0.0.1"


def server_properties(
    *,
    port: int,
    controller_port: int,
    data: Path,
    proxied: tuple[int, int] | None = None,
    besides: Mapping[str, object] | None = None,
) -> str:
    """Return `server.properties` of a broker that is its own KRaft controller.

    With `proxied` it listens on the first of the two ports as well, and tells who comes that way to use the second.
    What is given as `besides` comes last, over all that is set here.
    """
    clients = {"PLAINTEXT": (port, port)} | ({"PROXIED": proxied} if proxied else {})
    return _properties(
        {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{HOST}:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(
                [f"CONTROLLER://{HOST}:{controller_port}"]
                + [f"{name}://{HOST}:{own}" for name, (own, _) in clients.items()]
            ),
            "advertised.listeners": ",".join(f"{name}://{HOST}:{told}" for name, (_, told) in clients.items()),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT",
            "log.dirs": data,
            # After a kill the controller takes the broker for alive this long (9 s by default) and refuses the
            # restarted one; shorter still, and a stalled JVM would lose its own broker.
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
        }
        | _TOPICS
        | _GROUPS
        | _TRANSACTIONS
        | _SMALL
        | dict(besides or {})
    )


_TOPICS: Final[dict[str, object]] = {
    # A worker must say that a topic is missing; a broker that invents topics would hide it.
    "auto.create.topics.enable": "false",
    "num.partitions": 1,
    "default.replication.factor": 1,
    "min.insync.replicas": 1,
}

_GROUPS: Final[dict[str, object]] = {
    "group.coordinator.rebalance.protocols": "classic,consumer",
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 5,
    # classic: the client chooses its session timeout, the broker only bounds it
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    # consumer: the broker chooses; a killed member's partitions come free after the session timeout
    "group.consumer.session.timeout.ms": 6000,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.heartbeat.interval.ms": 500,
    "group.consumer.min.heartbeat.interval.ms": 100,
}

_TRANSACTIONS: Final[dict[str, object]] = {
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 5,
    # How late an expired transaction is found: 10 s by default, too long for a test to wait.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
}

_SMALL: Final[dict[str, object]] = {
    "num.network.threads": 2,
    "num.io.threads": 4,
    "background.threads": 2,
    "log.cleaner.dedupe.buffer.size": 8 * 1024 * 1024,
}


def log4j_properties(log: Path) -> str:
    """Return a log4j2 configuration that writes warnings, and the broker's own start and end, to one file."""
    return _properties(
        {
            "status": "error",
            "appender.file.type": "File",
            "appender.file.name": "file",
            "appender.file.fileName": log,
            "appender.file.layout.type": "PatternLayout",
            "appender.file.layout.pattern": "%d{ISO8601} %p %c{1}: %m%n",
            "rootLogger.level": "warn",
            "rootLogger.appenderRef.file.ref": "file",
            "logger.server.name": "kafka.server.KafkaRaftServer",
            "logger.server.level": "info",
        }
    )


def _properties(values: dict[str, object]) -> str:
    return "".join(f"{name}={value}\n" for name, value in values.items())

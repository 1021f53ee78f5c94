"""Fetch, start and stop the development broker: `python -m tests.kafka_server fetch|start|stop|status`."""

from __future__ import annotations

import argparse
import sys

import typer

from tests.kafka_server import background
from tests.kafka_server.jars import KafkaUnavailableError, fetch, version

DEFAULT_PORT = 9092


def main() -> int:
    """Run one command; 1 where it can't be done, or where `status` finds no broker."""
    parser = argparse.ArgumentParser(prog="python -m tests.kafka_server", description=__doc__)
    parser.add_argument("command", choices=["fetch", "start", "stop", "status"])
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="for start (default: %(default)s)")
    arguments = parser.parse_args()
    try:
        match arguments.command:
            case "fetch":
                typer.echo(f"Apache Kafka {version()} is in {fetch()}")
            case "start":
                running = background.start(arguments.port)
                typer.echo(f"Apache Kafka {version()} runs on {running.bootstrap} (process {running.pid}).")
                typer.echo("`make kafka-stop` ends it; its data stay in .kafka/broker.")
            case "stop":
                stopped = background.stop()
                typer.echo("Kafka wasn't running." if stopped is None else f"Kafka on {stopped.bootstrap} ended.")
            case "status":
                found = background.status()
                typer.echo("Kafka isn't running." if found is None else f"Kafka runs on {found.bootstrap}.")
                return 0 if found else 1
    except KafkaUnavailableError as failed:
        typer.echo(f"error: {failed}", err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

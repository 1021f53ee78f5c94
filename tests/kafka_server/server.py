"""Run a one-node Apache Kafka in a folder: start, stop, kill, start again on the same data."""

from __future__ import annotations

import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.kafka_server.jars import KafkaUnavailableError, fetch, require
from tests.kafka_server.settings import HOST, JVM, log4j_properties, server_properties

CLUSTER_ID: Final = "R2xpc3RyZWFtVGVzdHMwMQ"  # 16 bytes in base64, as StorageTool wants it
START_S: Final = 90.0  # a start takes about 3 s on two idle cores
STOP_S: Final = 30.0

# Below every system's range of ephemeral ports: a client that reconnects to a dead broker's port from within
# that range can be given the same port as its source, connect to itself, and keep the broker from coming back.
PORTS: Final = range(20_000, 32_000)


def is_free(port: int) -> bool:
    """Tell whether a server could listen on a local port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port(*besides: int | None) -> int:
    """Return a local port that nothing listens on, outside the ephemeral range and not one of those given."""
    return next(port for port in random.sample(PORTS, len(PORTS)) if port not in besides and is_free(port))


class KafkaServer:
    """A broker whose configuration, log and data lie in one folder.

    Used as a context manager it runs inside the block. Unless it is told to outlive its starter, the broker ends
    with the process that started it, however that one ends (on Linux; elsewhere with the block).

    Args:
        folder: where its files are; what is there already is kept.
        port: where it listens; any free port where left out.
        advertised_port: a proxy's port: whoever comes through the proxy to `proxied_port` is told to go on using it.
        outlives_starter: don't end it with the process that started it.
        settings: what to set besides, or otherwise than `settings.py` does.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        advertised_port: int | None = None,
        outlives_starter: bool = False,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self._folder = folder
        self._port = port if port is not None else free_port()
        self._controller_port = free_port(self._port, advertised_port)
        self.proxied_port = free_port(self._port, advertised_port, self._controller_port)
        self._proxied = None if advertised_port is None else (self.proxied_port, advertised_port)
        self._outlives_starter = outlives_starter
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """The address for `bootstrap.servers`; the same after every restart."""
        return f"{HOST}:{self._port}"

    @property
    def log(self) -> Path:
        """The file with the broker's warnings and errors."""
        return self._folder / "server.log"

    @property
    def pid(self) -> int | None:
        """The broker's process id while it runs."""
        running = self._process is not None and self._process.poll() is None
        return self._process.pid if running and self._process is not None else None

    def start(self, *, holding: IO[str] | None = None) -> None:
        """Start the broker and return once a client gets its metadata.

        Args:
            holding: an open file that the broker inherits, so that a lock on it lasts as long as the broker.

        Raises:
            KafkaUnavailableError: Java, Maven or the jars are missing, the port is taken, or the broker died or
                didn't answer in time; the message ends with its log.
        """
        if self.pid is not None:
            return
        if not is_free(self._port):
            raise KafkaUnavailableError(f"port {self._port} on {HOST} is taken by another process; choose another.")
        libs = fetch()
        self._write_configuration()
        if not (self._folder / "data" / "meta.properties").is_file():
            self._format(libs)
        with (self._folder / "console.log").open("wb") as console:
            self._process = subprocess.Popen(
                [*self._ends_with_starter(), *self._java(libs, "kafka.Kafka"), str(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # an interrupt typed at the terminal is for the starter
                pass_fds=() if holding is None else (holding.fileno(),),
            )
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """End the broker in an orderly way; kill it where that takes too long."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the broker as a crash would: SIGKILL."""
        self._end(signal.SIGKILL)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _config(self) -> Path:
        return self._folder / "server.properties"

    def _write_configuration(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._config.write_text(
            server_properties(
                port=self._port,
                controller_port=self._controller_port,
                data=self._folder / "data",
                proxied=self._proxied,
                besides=self._settings,
            )
        )
        (self._folder / "log4j2.properties").write_text(log4j_properties(self.log))

    def _java(self, libs: Path, main: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self._folder / 'log4j2.properties'}"
        return [require("java", "a Java runtime, version 17 or later"), *JVM, logging, "-cp", f"{libs}/*", main]

    def _format(self, libs: Path) -> None:
        """Give the empty data folder its identity, as every KRaft node needs before its first start."""
        arguments = ["format", "--cluster-id", CLUSTER_ID, "--config", str(self._config)]
        done = subprocess.run(
            [*self._java(libs, "kafka.tools.StorageTool"), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise KafkaUnavailableError(f"Kafka could not format {self._folder}:\n{done.stdout}{done.stderr}")

    def _ends_with_starter(self) -> list[str]:
        """Return the command before `java` that has the kernel kill it when its starter is gone."""
        if self._outlives_starter or shutil.which("setpriv") is None:
            return []
        return ["setpriv", "--pdeathsig", "KILL"]

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        client = AdminClient({"bootstrap.servers": self.bootstrap, "reconnect.backoff.max.ms": 200, "log_level": 0})
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise KafkaUnavailableError(
                    f"Kafka ended while it started (exit {process.returncode}).\n{self._tail()}"
                )
            try:
                if client.list_topics(timeout=0.5).brokers:
                    return
            except KafkaException:
                continue
        raise KafkaUnavailableError(f"Kafka did not answer on {self.bootstrap} within {START_S:.0f} s.\n{self._tail()}")

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _tail(self, lines: int = 20) -> str:
        """Return the ends of the broker's log and of what it printed."""
        text = ""
        for file in (self.log, self._folder / "console.log"):
            if file.is_file() and (last := file.read_text(errors="replace").splitlines()[-lines:]):
                text += f"The end of {file}:\n" + "\n".join(f"  {line}" for line in last) + "\n"
        return text or "It wrote no log."

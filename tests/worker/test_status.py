import json
import socket
import urllib.error
import urllib.request
from typing import Any

import pytest

import worker.metrics  # noqa: F401 (they are served once they are there)
from tests.kafka_server.server import free_port
from worker.config import ConfigError
from worker.status import Status, served


def asked(page: str, status: Status, hung: str | None = None) -> tuple[int, str]:
    port = free_port()
    with served(port, status, lambda: hung):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


def asked_json(page: str, status: Status, hung: str | None = None) -> tuple[int, Any]:
    code, body = asked(page, status, hung)
    return code, json.loads(body)


def test_a_worker_that_has_not_joined_is_alive_and_not_ready() -> None:
    assert asked_json("/health", Status()) == (200, {"alive": True, "hangs_in": None})
    code, said = asked_json("/ready", Status())
    assert (code, said["ready"]) == (503, False)


def test_readiness_names_what_is_wrong() -> None:
    fault = "texts-3 has made no progress for 400 s"
    assert asked_json("/ready", Status([fault])) == (503, {"ready": False, "faults": [fault]})
    assert asked_json("/ready", Status([])) == (200, {"ready": True, "faults": []})


def test_a_worker_that_hangs_is_not_alive() -> None:
    assert asked_json("/health", Status([]), "Publish") == (503, {"alive": False, "hangs_in": "Publish"})


def test_the_metrics_are_in_prometheus_form() -> None:
    code, text = asked("/metrics", Status())
    assert code == 200
    assert "# TYPE glistream_held_records gauge" in text


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"status_port={port}"), served(port, Status(), lambda: None):
            pass

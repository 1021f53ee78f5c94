"""The compose file holds together, and agrees with the worker's settings and the Kafka that tests run on."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.compose_file import FILE, ROOT, listeners, load, seconds
from tests.kafka_server.jars import version
from worker.config import ENV_PREFIX, Settings
from worker.config import load as load_settings

COMPOSE = load()
SERVICES: dict[str, Any] = COMPOSE["services"]
KAFKA: dict[str, str] = SERVICES["kafka"]["environment"]
WORKERS = ["worker", "worker-gpu"]

KRAFT = {
    "KAFKA_NODE_ID",
    "KAFKA_PROCESS_ROLES",
    "KAFKA_LISTENERS",
    "KAFKA_ADVERTISED_LISTENERS",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
    "KAFKA_CONTROLLER_QUORUM_VOTERS",
    "KAFKA_CONTROLLER_LISTENER_NAMES",
    "KAFKA_INTER_BROKER_LISTENER_NAME",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS",
}
"""What one KRaft node that is broker and controller must be told, since the image then has no defaults left."""


def settings_of(service: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in os.environ:
        if name.startswith(ENV_PREFIX):
            monkeypatch.delenv(name)
    for name, value in SERVICES[service]["environment"].items():
        monkeypatch.setenv(name, value)
    return load_settings()


def topic_commands(folder: Path, *, exit_code: int = 0) -> tuple[int, list[list[str]]]:
    """Run the script of the service `topics` on a stand-in for `kafka-topics.sh` that notes how it was called."""
    stub, calls = folder / "kafka-topics.sh", folder / "calls"
    stub.write_text(f'#!/bin/bash\necho "$@" >> {calls}\nexit {exit_code}\n')
    stub.chmod(0o755)
    topics = SERVICES["topics"]
    [script] = topics["command"]
    # A compose client reads `$$` as one `$`.
    script = script.replace("$$", "$").replace("/opt/kafka/bin/kafka-topics.sh", str(stub))
    done = subprocess.run([*topics["entrypoint"], script], check=False)
    return done.returncode, [line.split() for line in calls.read_text().splitlines()]


@pytest.mark.parametrize("service", WORKERS)
def test_every_variable_of_a_worker_is_a_setting(service: str) -> None:
    known = {ENV_PREFIX + name.upper() for name in Settings.model_fields}
    assert set(SERVICES[service]["environment"]) <= known


@pytest.mark.parametrize(("service", "device"), [("worker", "cpu"), ("worker-gpu", "cuda")])
def test_a_workers_variables_are_accepted(service: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(service, monkeypatch)
    assert settings.device == device
    assert settings.delivery == "exactly_once"
    assert settings.model == "demo"


def test_the_topics_are_those_the_worker_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of("worker", monkeypatch)
    code, calls = topic_commands(tmp_path)
    assert code == 0
    created = [call[call.index("--topic") + 1] for call in calls]
    assert created == [settings.input_topic, settings.output_topic, settings.dead_letter_topic]
    for call in calls:
        assert {"--create", "--if-not-exists"} <= set(call)
        assert call[call.index("--partitions") + 1] == "6"
        assert call[call.index("--bootstrap-server") + 1] == settings.bootstrap_servers


def test_topics_that_cannot_be_created_fail_the_service(tmp_path: Path) -> None:
    code, calls = topic_commands(tmp_path, exit_code=3)
    assert (code, len(calls)) == (3, 1)


def test_every_client_in_a_container_goes_where_the_broker_sends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    host, port = listeners(KAFKA["KAFKA_ADVERTISED_LISTENERS"])["INTERNAL"]
    inside = f"{host}:{port}"
    assert host in SERVICES
    assert all(settings_of(worker, monkeypatch).bootstrap_servers == inside for worker in WORKERS)
    assert SERVICES["kafka-ui"]["environment"]["KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS"] == inside
    assert SERVICES["kafka"]["healthcheck"]["test"][-1] == inside


def test_a_client_on_the_host_needs_no_setting() -> None:
    host, port = listeners(KAFKA["KAFKA_ADVERTISED_LISTENERS"])["HOST"]
    assert Settings.model_fields["bootstrap_servers"].default == f"{host}:{port}"
    assert SERVICES["kafka"]["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_the_broker_is_told_all_that_a_kraft_node_needs() -> None:
    assert KRAFT - set(KAFKA) == set()
    bound, advertised = listeners(KAFKA["KAFKA_LISTENERS"]), listeners(KAFKA["KAFKA_ADVERTISED_LISTENERS"])
    controller = KAFKA["KAFKA_CONTROLLER_LISTENER_NAMES"]
    assert set(bound) == {*advertised, controller}
    assert {name: port for name, (_, port) in bound.items() if name in advertised} == {
        name: port for name, (_, port) in advertised.items()
    }
    assert KAFKA["KAFKA_INTER_BROKER_LISTENER_NAME"] in advertised
    assert KAFKA["KAFKA_CONTROLLER_QUORUM_VOTERS"] == f"{KAFKA['KAFKA_NODE_ID']}@kafka:{bound[controller][1]}"
    protocols = dict(pair.split(":") for pair in KAFKA["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(","))
    assert protocols == dict.fromkeys(bound, "PLAINTEXT")


def test_the_broker_is_the_one_that_tests_run_on() -> None:
    assert SERVICES["kafka"]["image"] == SERVICES["topics"]["image"] == f"apache/kafka:{version()}"


def test_the_brokers_data_outlives_its_container() -> None:
    assert SERVICES["kafka"]["volumes"] == [f"kafka-data:{KAFKA['KAFKA_LOG_DIRS']}"]


@pytest.mark.parametrize("service", WORKERS)
def test_a_worker_starts_once_broker_and_topics_are_there(service: str) -> None:
    assert SERVICES[service]["depends_on"] == {
        "kafka": {"condition": "service_healthy"},
        "topics": {"condition": "service_completed_successfully"},
    }


def test_every_dependency_is_there_and_can_be_met() -> None:
    for service in SERVICES.values():
        for name, wanted in service.get("depends_on", {}).items():
            if wanted["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[name]
            else:
                # One that is started again for ever never completes.
                assert SERVICES[name]["restart"] == "no"


@pytest.mark.parametrize("name", ["worker", "worker-gpu"])
def test_a_worker_is_asked_whether_it_is_ready_on_the_port_that_it_is_given(name: str) -> None:
    service = SERVICES[name]
    assert f"127.0.0.1:{service['environment']['GLISTREAM_STATUS_PORT']}/ready" in service["healthcheck"]["test"][-1]


def test_the_broker_and_its_page_have_health_checks() -> None:
    assert SERVICES["kafka"]["healthcheck"]["test"][:2] == ["CMD", "/opt/kafka/bin/kafka-broker-api-versions.sh"]
    page = SERVICES["kafka-ui"]
    [port] = page["ports"]
    assert page["healthcheck"]["test"][-1] == f"http://127.0.0.1:{port.rpartition(':')[2]}/actuator/health"


@pytest.mark.parametrize("service", WORKERS)
def test_a_stopped_worker_has_the_time_to_finish(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(service, monkeypatch)
    grace_ms = 1000 * seconds(SERVICES[service]["stop_grace_period"])
    assert grace_ms > settings.drain_ms + settings.transaction_timeout_ms


def test_the_gpu_is_asked_for_in_its_profile_only() -> None:
    assert {name for name, service in SERVICES.items() if "profiles" in service} == {"worker-gpu"}
    [device] = SERVICES["worker-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    assert "deploy" not in SERVICES["worker"]
    # The address given for the CPU's build of torch must not reach the image for the GPU.
    assert "args" not in SERVICES["worker-gpu"]["build"]
    assert SERVICES["worker-gpu"]["image"] != SERVICES["worker"]["image"]


def test_every_volume_is_named_and_declared() -> None:
    mounted = [mount.split(":")[0] for service in SERVICES.values() for mount in service.get("volumes", [])]
    assert set(mounted) == set(COMPOSE["volumes"])


def test_every_image_from_elsewhere_has_an_exact_version() -> None:
    tags = [service["image"].rpartition(":")[2] for service in SERVICES.values() if "build" not in service]
    assert tags
    assert all(tag.removeprefix("v").replace(".", "").isdigit() and tag.count(".") == 2 for tag in tags)


def test_no_port_is_open_to_other_machines() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert sorted(ports) == ["127.0.0.1:8080:8080", "127.0.0.1:9092:9092"]


def test_the_file_names_no_version_of_its_format() -> None:
    assert "version" not in COMPOSE


@pytest.mark.parametrize("profile", [[], ["--profile", "gpu"]])
def test_a_compose_client_accepts_the_file(profile: list[str]) -> None:
    client = compose_client()
    if client is None:
        pytest.skip("needs a compose client: `docker compose` or `docker-compose`")
    done = subprocess.run(
        [*client, "--file", str(FILE), *profile, "config", "--quiet"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def compose_client() -> list[str] | None:
    if shutil.which("docker"):
        asked = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
        if asked.returncode == 0:
            return ["docker", "compose"]
    return ["docker-compose"] if shutil.which("docker-compose") else None

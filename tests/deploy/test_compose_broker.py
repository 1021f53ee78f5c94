"""A real broker runs on the compose file's variables and serves what the worker asks of one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from tests.deploy.compose_file import listeners, load
from tests.kafka_server.server import KafkaServer, free_port
from tests.kafka_server.settings import HOST
from tests.kafka_server.topics import create_topic

WAIT_S = 30.0


class ComposeBroker(KafkaServer):
    """A broker configured by the variables of the compose file, on ports and in a folder of its own."""

    def _write_configuration(self) -> None:
        super()._write_configuration()
        variables: dict[str, str] = load()["services"]["kafka"]["environment"]
        ports = {name: port for name, (_, port) in listeners(variables["KAFKA_LISTENERS"]).items()}
        here = {
            f":{ports['HOST']}": f":{self._port}",
            f":{ports['CONTROLLER']}": f":{self._controller_port}",
            f":{ports['INTERNAL']}": f":{free_port()}",
            "@kafka:": f"@{HOST}:",
            "//kafka:": f"//{HOST}:",
            variables["KAFKA_LOG_DIRS"]: str(self._folder / "data"),
        }
        lines = []
        for variable, value in variables.items():
            # The image's own rule for a variable's name.
            name = variable.removeprefix("KAFKA_").lower().replace("_", ".")
            for there, instead in here.items():
                value = value.replace(there, instead)
            lines.append(f"{name}={value}\n")
        self._config.write_text("".join(lines))


@pytest.fixture(scope="module")
def bootstrap(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ComposeBroker(tmp_path_factory.mktemp("compose")) as broker:
        yield broker.bootstrap


def test_events_are_committed_with_their_offsets(bootstrap: str) -> None:
    create_topic(bootstrap, "texts")
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "glistream", "enable.auto.commit": False})
    writer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "glistream"})
    writer.init_transactions(WAIT_S)
    writer.begin_transaction()
    writer.produce("texts", b"{}")
    writer.send_offsets_to_transaction([TopicPartition("texts", 0, 1)], reader.consumer_group_metadata(), WAIT_S)
    writer.commit_transaction(WAIT_S)
    assert reader.committed([TopicPartition("texts", 0)], WAIT_S)[0].offset == 1
    reader.close()


def test_a_misspelt_topic_is_not_created(bootstrap: str) -> None:
    asked = Producer({"bootstrap.servers": bootstrap}).list_topics("text", timeout=WAIT_S).topics["text"]
    assert asked.error is not None
    assert asked.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART

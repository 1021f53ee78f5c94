import os
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.export import NAMES


def glistream(*arguments: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:

    return subprocess.run(
        [sys.executable, "-m", "worker", *arguments],
        input=stdin,
        capture_output=True,
        env=os.environ | environment,
        timeout=120,
        check=False,
    )


def test_a_wrong_setting_is_one_line_and_exit_code_2() -> None:
    ended = glistream("run", "--batch-tokens", "1")
    assert ended.returncode == 2
    assert ended.stderr == b"glistream: batch_tokens='1': input should be greater than or equal to 16\n"
    assert ended.stdout == b""


def test_a_wrong_variable_is_one_line_and_exit_code_2() -> None:
    ended = glistream("run", GLISTREAM_DELIVERY="twice")
    assert ended.returncode == 2
    assert b"delivery='twice': input should be 'exactly_once' or 'at_least_once'" in ended.stderr


def test_a_wrong_client_property_is_named() -> None:
    ended = glistream("run", "--kafka-properties", "no.such.property=1")
    assert ended.returncode == 2
    assert b"no.such.property" in ended.stderr
    assert ended.stderr.count(b"\n") == 1


def test_without_a_broker_fail_fast_exits_3() -> None:
    ended = glistream("run", "--fail-fast", "--bootstrap-servers", "127.0.0.1:1", "--log-level", "error")
    assert ended.returncode == 3
    assert b"no broker answers at 127.0.0.1:1" in ended.stderr


def test_a_model_that_is_not_there_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    ended = glistream("pipe", "--model", str(tmp_path), "--log-level", "error")
    assert ended.returncode == 2
    assert str(tmp_path).encode() in ended.stderr
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_printed(name: str) -> None:
    ended = glistream("schema", name)
    assert ended.returncode == 0
    assert ended.stdout == (Path("schemas/generated") / _file(name)).read_bytes()


def test_an_unknown_schema_says_which_there_are() -> None:
    ended = glistream("schema", "texts")
    assert ended.returncode == 2
    assert b"text-event" in ended.stderr


def test_doctor_says_what_is_wrong() -> None:
    ended = glistream("doctor", "--bootstrap-servers", "127.0.0.1:1")
    assert ended.returncode == 1
    assert b"wrong  broker: no broker answers at 127.0.0.1:1" in ended.stdout
    assert b"ok     model: demo_model" in ended.stdout
    assert b"ok     processor: " in ended.stdout
    assert b"ok     forward: packed, " in ended.stdout
    assert b" on cpu: " in ended.stdout


def test_pipe_prints_json_alone() -> None:
    ended = glistream("pipe", stdin=b'{"text":"Tim Cook met Angela Merkel in Berlin."}\nnot json\n')
    assert ended.returncode == 0
    event, error = ended.stdout.splitlines()
    assert b'"Tim Cook"' in event
    assert b'"Berlin"' in event
    assert b'"error"' in error


def _file(name: str) -> str:
    return "asyncapi.json" if name == "asyncapi" else f"{name}.schema.json"

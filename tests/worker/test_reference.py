import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from worker import reference
from worker.config import Settings

README = reference.README.read_text()


def test_the_readmes_settings_are_in_step() -> None:
    assert reference.written(README) == README
    assert README.count("\n| `") >= len(Settings.model_fields)


def test_a_readme_that_is_out_of_step_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "README.md"
    monkeypatch.setattr(reference, "README", copy)
    copy.write_text(README.replace("| `batch_tokens` | `2048` |", "| `batch_tokens` | `1` |"))
    assert reference.main(["--check"]) == 1
    assert reference.main([]) == 0
    assert copy.read_text() == README


def test_the_readmes_output_is_what_the_command_prints() -> None:
    _, _, rest = README.partition("glistream pipe --log-level error\n")
    shown = [json.loads(line) for line in rest.split("\n\n")[0].splitlines()]
    source = '{"text":"Tim Cook met Angela Merkel in Berlin."}\nnot json\n'
    command = (sys.executable, "-m", "worker", "pipe", "--log-level", "error")
    environment = os.environ | {"GLISTREAM_DTYPE": "float32"}
    ended = subprocess.run(command, input=source, capture_output=True, text=True, check=True, env=environment)
    event, error = map(json.loads, ended.stdout.splitlines())
    for entities in (shown[0]["entities"], event["entities"]):
        for entity in entities:
            entity["score"] = pytest.approx(entity["score"], abs=0.01)
    assert shown == [event, error]

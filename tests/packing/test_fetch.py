from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from packing import Document, Engine, ModelError, fetch
from packing.fetch import HubUnreachable
from tests.packing import hub as hubs
from tests.packing import tiny_models
from tests.packing.hub import COMMIT, Hub

DOCUMENTS = [Document(text, ["person", "city"], 0.0) for text in tiny_models.CORPUS[:2]]


def remake(folder: Path, model: Path, base: str, *, labels: bool = False) -> dict[str, Any]:
    """Copy a model, and leave its tokenizers and its encoders' configurations to a base model."""
    shutil.copytree(model, folder, ignore=shutil.ignore_patterns("encoder", "tokenizer*", "labels_tokenizer"))
    config: dict[str, Any] = json.loads((folder / "gliner_config.json").read_text())
    del config["encoder_config"]
    # As published models have it: the library adds its markers to the base's tokenizer at each load.
    config |= {"model_name": base, "class_token_index": -1, "vocab_size": -1}
    if labels:
        del config["labels_encoder_config"]
        config["labels_encoder"] = base
    (folder / "gliner_config.json").write_text(json.dumps(config))
    return config


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("repositories")
    whole = tiny_models.build(root / "whole", "bert", seed=2)
    bi = tiny_models.build(root / "bi", "bert", bi_encoder=True, scale=3.0)
    remake(root / "bare", whole, "base/encoder")
    remake(root / "bare_bi", bi, "base/other", labels=True)
    relex = remake(root / "relex", whole, "base/encoder")
    (root / "relex" / "gliner_config.json").write_text(json.dumps(relex | {"relations_layer": "dot"}))
    (root / "baseless").mkdir()
    shutil.copytree(root / "bare", root / "baseless", dirs_exist_ok=True)
    baseless = json.loads((root / "bare" / "gliner_config.json").read_text()) | {"model_name": "base/gone"}
    (root / "baseless" / "gliner_config.json").write_text(json.dumps(baseless))
    # What a repository may hold besides, and nothing of it is wanted.
    for name in ("onnx/model.onnx", "onnx/config.json", "training_args.bin", ".gitattributes", "picture.png"):
        (whole / name).parent.mkdir(exist_ok=True)
        (whole / name).write_bytes(b"x")
    (whole / "README.md").write_text("A card.")
    return {
        "somebody/whole": whole,
        "somebody/bi": bi,
        "somebody/bare": root / "bare",
        "somebody/bare-bi": root / "bare_bi",
        "somebody/relex": root / "relex",
        "somebody/baseless": root / "baseless",
        "base/encoder": whole / "encoder",
        "base/other": bi / "encoder",
    }


@pytest.fixture
def hub(repositories: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with hubs.running(dict(repositories)) as running:
        running.use(monkeypatch, tmp_path / "home")
        yield running


def refusal(kind: type[ModelError], *args: Any) -> str:
    """Fetch in vain; returns the message, and makes sure that nothing is left."""
    with pytest.raises(kind) as raised:
        fetch.fetch(*args)
    assert type(raised.value) is kind
    message = str(raised.value)
    assert "\n" not in message
    folder: Path = args[1]
    assert [path.name for path in folder.parent.iterdir() if path.name.startswith(f".{folder.name}")] == []
    return message


def answers(folder: Path) -> Any:
    return Engine.load(folder, device="cpu", dtype="float32").extract(DOCUMENTS)


def test_a_whole_model_is_its_own_files(hub: Hub, repositories: dict[str, Path], tmp_path: Path) -> None:
    made = fetch.fetch("somebody/whole", tmp_path / "deep" / "model")
    assert (made.folder, made.commit, made.added) == (tmp_path / "deep" / "model", COMMIT, ())
    names = sorted(path.name for path in made.folder.iterdir())
    assert names == ["README.md", "gliner_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    for name in names:
        assert (made.folder / name).read_bytes() == (repositories["somebody/whole"] / name).read_bytes()
    assert made.info.name == "model"


@pytest.mark.parametrize(
    ("bare", "whole", "added"),
    [
        ("somebody/bare", "somebody/whole", ["the tokenizer of base/encoder", "the configuration of base/encoder"]),
        ("somebody/bare-bi", "somebody/bi", ["the tokenizer of base/other", "the configuration of base/other"] * 2),
    ],
)
def test_what_is_left_to_a_base_model_is_put_beside_it_and_no_answer_changes(
    hub: Hub, repositories: dict[str, Path], tmp_path: Path, bare: str, whole: str, added: list[str]
) -> None:
    made = fetch.fetch(bare, tmp_path / "model")
    assert list(made.added) == added
    assert not any(path.name.startswith(".") for path in made.folder.iterdir())
    hub.status = 500  # the network is off
    hub.asked.clear()
    found = answers(made.folder)
    assert any(result.entities for result in found)
    assert found == answers(repositories[whole])
    assert hub.asked == []


def test_weights_are_fetched_once_and_those_of_the_base_model_never(hub: Hub, tmp_path: Path) -> None:
    fetch.fetch("somebody/bare", tmp_path / "model")
    got = [line for line in hub.asked if line.startswith("GET") and line.endswith((".safetensors", ".bin"))]
    assert got == [f"GET /somebody/bare/resolve/{COMMIT}/model.safetensors"]


def test_a_revision_is_that_of_the_hub(hub: Hub, tmp_path: Path) -> None:
    assert fetch.fetch("somebody/whole", tmp_path / "model", "v1").commit == COMMIT
    message = refusal(ModelError, "somebody/whole", tmp_path / "other", "v9")
    assert message == "model 'somebody/whole' can't be fetched: it has no such revision"


def test_an_empty_folder_is_taken_and_one_with_anything_in_it_is_left_as_it_is(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert fetch.fetch("somebody/whole", tmp_path / "empty").folder.is_dir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    (tmp_path / "file").touch()
    for name in ("full", "file"):
        assert "is there already and isn't an empty folder" in refusal(ModelError, "somebody/whole", tmp_path / name)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]


def test_what_is_no_model_that_can_be_run_is_refused_before_its_weights_are_fetched(hub: Hub, tmp_path: Path) -> None:
    target = tmp_path / "model"
    assert "the hub has no such model" in refusal(ModelError, "somebody/nothing", target)
    assert "is no GLiNER: it has no gliner_config.json" in refusal(ModelError, "base/encoder", target)
    assert "'somebody/relex' is a relation-extraction GLiNER" in refusal(ModelError, "somebody/relex", target)
    assert "that is no name of the hub" in refusal(ModelError, "no//name", target)
    hub.gated.add("somebody/whole")
    assert "it is gated" in refusal(ModelError, "somebody/whole", target)
    assert not any("model.safetensors" in line for line in hub.asked)
    assert not target.exists()


def test_a_base_model_that_is_gone_is_named(hub: Hub, tmp_path: Path) -> None:
    message = refusal(ModelError, "somebody/baseless", tmp_path / "model")
    assert (
        message
        == "its base model 'base/gone' can't be fetched: the hub has no such model, or it is private and "
        + ("HF_TOKEN isn't set")
    )


def test_weights_that_do_not_load_leave_nothing(hub: Hub, repositories: dict[str, Path], tmp_path: Path) -> None:
    broken = shutil.copytree(repositories["somebody/whole"], tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"not weights at all")
    hub.repositories["somebody/broken"] = broken
    message = refusal(ModelError, "somebody/broken", tmp_path / "model")
    assert message.startswith("the model in 'somebody/broken' can't be loaded")
    assert not (tmp_path / "model").exists()


def test_a_hub_that_does_not_answer(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    hub.status = 503
    assert "the hub doesn't answer" in refusal(HubUnreachable, "somebody/whole", tmp_path / "model")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert "the hub doesn't answer" in refusal(HubUnreachable, "somebody/whole", tmp_path / "model")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set" in refusal(HubUnreachable, "somebody/whole", tmp_path / "model")


def test_a_disk_that_is_full_leaves_nothing(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fetch, "hf_hub_download", full)
    message = refusal(ModelError, "somebody/whole", tmp_path / "model")
    assert message == "model 'somebody/whole' can't be fetched: the disk is full"


def test_the_command_makes_a_folder_or_says_in_a_line_why_not(hub: Hub, tmp_path: Path) -> None:
    def command(name: str, address: str) -> subprocess.CompletedProcess[str]:
        command = (sys.executable, "-m", "worker", "model", "fetch", name, "--to", str(tmp_path / "model"))
        environment = os.environ | {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "home")}
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    unreachable = command("somebody/bare", "http://127.0.0.1:9")
    assert unreachable.returncode == 3
    assert unreachable.stderr.splitlines()[-1].startswith("glistream: model 'somebody/bare' can't be fetched: the hub")
    made = command("somebody/bare", hub.address)
    assert made.returncode == 0, made.stderr
    first, *added = made.stdout.splitlines()
    assert first.startswith(
        f"somebody/bare at {COMMIT} is in {tmp_path / 'model'}: UniEncoderSpanGLiNER/bert, content "
    )
    assert added == ["added: the tokenizer of base/encoder", "added: the configuration of base/encoder"]

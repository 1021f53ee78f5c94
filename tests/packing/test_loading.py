from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from gliner import GLiNER
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from packing import DEMO_MODEL, Engine, ModelError, loading
from packing.loading import content_hash
from tests.packing import tiny_models


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build(tmp_path_factory.mktemp("tiny"), "bert")


@pytest.fixture
def changed(folder: Path, tmp_path: Path) -> Callable[..., Path]:
    def change(**config: Any) -> Path:
        copy = tmp_path / "changed"
        shutil.copytree(folder, copy)
        saved = json.loads((copy / "gliner_config.json").read_text())
        (copy / "gliner_config.json").write_text(json.dumps(saved | config))
        return copy

    return change


def refusal(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(ModelError) as raised:
        Engine.load(*args, **kwargs)
    assert isinstance(raised.value, ValueError)
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "no model folder at" in refusal(tmp_path / "nowhere")
    assert "no model folder at" in refusal(str(tmp_path / "nowhere"))
    assert "no model folder at" in refusal("./nowhere")


def test_a_folder_that_is_no_gliner(tmp_path: Path) -> None:
    assert "it has no gliner_config.json" in refusal(tmp_path)
    (tmp_path / "gliner_config.json").write_text("{")
    assert "can't be read" in refusal(tmp_path)
    (tmp_path / "gliner_config.json").write_text("{}")
    assert "has no weights" in refusal(tmp_path)


def test_a_name_that_the_hub_does_not_give(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    message = refusal("nobody/nothing-of-that-name")
    assert "'nobody/nothing-of-that-name' is no folder here and can't be had from the hub" in message
    assert "HF_HUB_OFFLINE is set" in message


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"relations_layer": "dot"}, "relation-extraction"),
        ({"labels_decoder": "gpt2"}, "generative"),
        ({"represent_spans": True}, "span representations"),
        ({"precomputed_prompts_mode": True}, "fixed-label"),
        ({"relations_layer": ""}, "relation-extraction"),
        ({"labels_decoder": ""}, "generative"),
        ({"model_type": "gliner_streaming_span"}, "streaming"),
        ({"model_type": "gliner_uni_encoder_token_relex"}, "relation-extraction"),
        ({"model_type": "gliner_uni_encoder_span_decoder"}, "generative"),
    ],
)
def test_another_kind_of_gliner_is_refused_by_name(
    changed: Callable[..., Path], config: dict[str, Any], kind: str
) -> None:
    message = refusal(changed(**config))
    assert kind in message
    assert "isn't supported" in message


def test_a_kind_of_gliner_that_is_not_known_is_refused_by_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class RiddleGLiNER:
        model = torch.nn.Module()

    monkeypatch.setattr(GLiNER, "from_pretrained", lambda *_, **__: RiddleGLiNER())
    assert "is a RiddleGLiNER, which isn't supported" in refusal(folder)


def test_a_model_never_runs_code_from_the_hub(changed: Callable[..., Path], folder: Path) -> None:
    saved = json.loads((folder / "gliner_config.json").read_text())["encoder_config"]
    foreign = saved | {"auto_map": {"AutoModel": "somebody/code--modeling.Model"}}
    assert "needs code from the hub to run (encoder_config.auto_map)" in refusal(changed(encoder_config=foreign))


def test_missing_weights_are_an_error_and_never_random_numbers(changed: Callable[..., Path]) -> None:
    copy = changed()
    weights = load_file(copy / "model.safetensors")
    gone = next(name for name in weights if "prompt_rep_layer" in name)
    del weights[gone]
    save_file(weights, copy / "model.safetensors")
    assert f"lack 1 of the model's tensors, such as {gone}" in refusal(copy)


def test_weights_that_are_no_weights(changed: Callable[..., Path]) -> None:
    copy = changed()
    (copy / "model.safetensors").write_bytes(b"not weights at all")
    assert "can't be loaded" in refusal(copy)


def test_a_wrong_device_or_dtype(folder: Path) -> None:
    assert "unknown dtype 'int3': must be auto, float32, bfloat16, float16" in refusal(folder, dtype="int3")
    assert "device 'toaster' can't be used here" in refusal(folder, device="toaster")
    assert "device 'meta' can't be used here" in refusal(folder, device="meta")
    if not torch.cuda.is_available():
        assert "device 'cuda' can't be used here" in refusal(folder, device="cuda")


def test_the_model_says_what_it_is(folder: Path) -> None:
    info = Engine.load(folder, device="cpu", dtype="float32").info
    assert (info.name, info.device, info.dtype) == (folder.name, "cpu", "float32")
    assert (info.max_words, info.max_tokens, info.max_width) == (384, 512, 12)
    assert info.architecture == "UniEncoderSpanGLiNER/bert"
    assert info.revision == info.content_hash
    assert len(info.content_hash) == 16
    assert Engine.load(folder, revision="v2").info.revision == "v2"


def test_the_revision_follows_the_weights(folder: Path, changed: Callable[..., Path]) -> None:
    copy = changed()
    weights = load_file(copy / "model.safetensors")
    first = next(iter(weights))
    save_file(weights | {first: weights[first] + 1}, copy / "model.safetensors")
    assert Engine.load(copy).info.revision != Engine.load(folder).info.revision


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "tokenizer_config.json", "vocab.txt", "spm.model", "labels_tokenizer/tokenizer.json"]
)
def test_the_content_hash_follows_every_file_that_can_change_an_answer(changed: Callable[..., Path], name: str) -> None:
    copy = changed()
    hashes = [content_hash(copy)]
    (copy / name).parent.mkdir(exist_ok=True)
    for content in ("{}", '{"a": 1}'):
        (copy / name).write_text(content)
        hashes.append(content_hash(copy))
    (copy / name).rename((copy / name).with_name(f"other_{Path(name).name}"))
    hashes.append(content_hash(copy))
    assert len(set(hashes)) == 4


def test_the_content_hash_leaves_out_what_is_said_about_the_model(changed: Callable[..., Path]) -> None:
    copy = changed()
    before = content_hash(copy)
    for name in ("README.md", "metrics.json", ".cache/state.json"):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text("{}")
    assert content_hash(copy) == before


def without_tokenizer(folder: Path) -> Path:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    return folder


@pytest.mark.parametrize("base", ["nobody/base-of-nothing", "/gone/from/here/base"])
def test_a_folder_without_tokenizer_whose_base_is_not_here_says_exactly_that(
    changed: Callable[..., Path], base: str
) -> None:
    message = refusal(without_tokenizer(changed(model_name=base)), device="cpu")
    assert message.endswith(
        f"it has no tokenizer of its own, and that of its base model '{base}' is neither in a folder here nor in "
        "the hub's cache"
    )


@pytest.mark.parametrize("hub", [True, False])
def test_only_a_model_from_the_hub_may_take_its_bases_tokenizer_from_there(
    changed: Callable[..., Path], folder: Path, hub: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = without_tokenizer(changed(model_name="somebody/base"))
    from_pretrained, asked = AutoTokenizer.from_pretrained, []

    def hub_has_it(name: str, **options: Any) -> Any:
        asked.append((name, options["local_files_only"]))
        return from_pretrained(folder)

    monkeypatch.setattr(loading, "snapshot_download", lambda *_, **__: str(copy))
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", hub_has_it)
    Engine.load("somebody/model" if hub else copy, device="cpu")
    assert asked == [("somebody/base", not hub)]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Refuse every connection, and return who was asked for."""
    asked: list[Any] = []

    def refuse(*target: Any, **_: Any) -> None:
        asked.append(target)
        raise OSError("no network here")

    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    return asked


def test_a_whole_folder_loads_without_asking_any_network(folder: Path, calls: list[Any]) -> None:
    with pytest.raises(OSError, match="no network"):
        socket.create_connection(("127.0.0.1", 9))
    calls.clear()
    Engine.load(folder, device="cpu", dtype="float32")
    assert calls == []


def test_a_folder_without_tokenizer_asks_no_network_either(changed: Callable[..., Path], calls: list[Any]) -> None:
    assert "it has no tokenizer of its own" in refusal(without_tokenizer(changed(model_name="nobody/base")))
    assert calls == []


def test_a_tokenizer_that_deletes_plain_letters_is_an_error_of_the_model(changed: Callable[..., Path]) -> None:
    copy = changed()
    saved = json.loads((copy / "tokenizer.json").read_text())
    saved["normalizer"] = {"type": "Replace", "pattern": {"String": "a"}, "content": ""}
    (copy / "tokenizer.json").write_text(json.dumps(saved))
    assert "doesn't give a word the same sub-tokens" in refusal(copy, device="cpu")


def test_whatever_fails_after_the_weights_are_read_is_an_error_of_the_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "token_limit", lambda gliner: vars(gliner)["positions"])
    assert refusal(folder, device="cpu") == f"the model in {str(folder)!r} can't be used: 'positions'"


def test_a_relative_position_model_has_no_limit_in_tokens_but_a_bound(tmp_path: Path) -> None:
    assert Engine.load(tiny_models.build(tmp_path / "free", "deberta-v2")).info.max_tokens == 5 * 384
    limited = tiny_models.build(tmp_path / "limited", "deberta-v2", model_max_length=200)
    assert Engine.load(limited).info.max_tokens == 200


@pytest.mark.parametrize(
    ("family", "encoder", "limit"),
    [
        ("bert", {}, 512),
        ("bert", {"max_position_embeddings": 300}, 300),
        ("roberta", {}, 512),
        ("xlm-roberta", {"max_position_embeddings": 102}, 100),
        ("modernbert", {}, 8192),
        ("deberta-v2", {"position_biased_input": True}, 512),
    ],
)
def test_a_table_of_positions_is_a_limit(
    family: tiny_models.Family, encoder: dict[str, Any], limit: int, tmp_path: Path
) -> None:
    gliner = loading.load_gliner(tiny_models.build(tmp_path, family, encoder=encoder), torch.device("cpu"), local=True)
    assert loading.token_limit(gliner) == limit


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "deberta-v2"])
def test_weights_and_buffers_are_the_librarys(family: tiny_models.Family, tmp_path: Path) -> None:
    folder = tiny_models.build(tmp_path, family)
    ours = loading.load_gliner(folder, torch.device("cpu"), local=True).model
    theirs = GLiNER.from_pretrained(str(folder), local_files_only=True).model
    for tensors in ("named_parameters", "named_buffers"):
        found, expected = dict(getattr(ours, tensors)()), dict(getattr(theirs, tensors)())
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_memory_that_was_freed_goes_back_to_the_system() -> None:
    # Blocks too small to be mapped on their own, freed under one that stays: the C library keeps them.
    code = """
import numpy, pathlib, sys
from packing.loading import give_back
def resident(): return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4 // 1024
blocks = [numpy.ones(8000) for _ in range(4000)]
last = numpy.ones(8000)
before = resident()
blocks.clear()
give_back()
print(before - resident())
"""
    freed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(freed) > 200 or sys.platform != "linux"


def test_bfloat16_runs_on_a_cpu(folder: Path) -> None:
    assert Engine.load(folder, device="cpu", dtype="bfloat16").info.dtype == "bfloat16"


def test_the_demo_model_loads() -> None:
    info = Engine.load(DEMO_MODEL, device="cpu").info
    assert info.name == "demo_model"
    assert info.max_tokens <= 512


def test_importing_the_package_does_not_import_torch() -> None:
    code = "import sys, packing; packing.Engine, packing.Document('x', ['y']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

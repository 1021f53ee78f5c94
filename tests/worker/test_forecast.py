import pytest

from worker.forecast import ForwardTimes


def test_before_the_first_forward_nothing_is_predicted() -> None:
    assert ForwardTimes().predict(1000) == 0.0


def test_one_size_of_forward_predicts_in_proportion() -> None:
    times = ForwardTimes()
    for _ in range(5):
        times.observe(1000, 0.5)
    assert times.predict(2000) == pytest.approx(1.0)


def test_the_fixed_part_of_a_forward_is_learnt() -> None:
    times = ForwardTimes()
    for tokens in (100, 1000, 400, 2000, 700):
        times.observe(tokens, 0.02 + 0.001 * tokens)
    assert times.predict(500) == pytest.approx(0.52)


def test_the_prediction_follows_a_machine_that_gets_slower() -> None:
    times = ForwardTimes()
    for _ in range(50):
        times.observe(1000, 0.1)
    for _ in range(50):
        times.observe(1000, 0.3)
    assert times.predict(1000) == pytest.approx(0.3, rel=0.02)


def test_noise_never_makes_a_larger_forward_shorter() -> None:
    times = ForwardTimes()
    times.observe(100, 0.9)
    times.observe(1000, 0.1)
    assert times.predict(1000) >= times.predict(100) >= 0

from worker.checkpoint import Checkpoint
from worker.isolation import PATIENT_DEATHS, Suspicion, suspicion_of


def test_an_unclean_end_makes_suspect_what_was_in_hand() -> None:
    assert suspicion_of(Checkpoint("r", 1, clean=False, until=40), 10, end=100) == Suspicion(1, 40, 0)


def test_who_left_in_good_order_leaves_nothing_suspect() -> None:
    assert suspicion_of(Checkpoint("r", 1, clean=True, until=40), 10, end=100) is None


def test_earlier_deaths_outlive_a_clean_end() -> None:
    left = Checkpoint("r", 1, clean=True, until=40, deaths=2, trials=1)
    assert suspicion_of(left, 10, end=100) == Suspicion(2, 40, 1)


def test_each_unclean_end_is_one_more_death() -> None:
    left = Checkpoint("r", 1, clean=False, until=40, deaths=2, trials=1)
    assert suspicion_of(left, 10, end=100) == Suspicion(3, 40, 1)


def test_nothing_beyond_the_end_of_the_partition_can_have_been_in_hand() -> None:
    left = Checkpoint("r", 1, clean=False, until=40)
    assert suspicion_of(left, 10, end=12) == Suspicion(1, 12, 0)
    assert suspicion_of(left, 10, end=10) is None
    assert suspicion_of(left, 40, end=100) is None


def test_no_history_no_suspicion() -> None:
    assert suspicion_of(None, 10, end=100) is None
    assert suspicion_of(Checkpoint("r", 0, clean=False), 10, end=100) is None


def test_a_child_process_is_worth_its_model_from_the_second_death_on() -> None:
    assert not Suspicion(1, 40, 0).in_child
    assert Suspicion(2, 40, 0).in_child


def test_a_trial_in_a_child_counts_beforehand_only_once_workers_seem_to_die_along_with_it() -> None:
    assert not Suspicion(PATIENT_DEATHS, 40, 0).counts_beforehand
    assert Suspicion(PATIENT_DEATHS + 1, 40, 0).counts_beforehand

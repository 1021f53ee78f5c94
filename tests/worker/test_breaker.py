from worker.breaker import LEAST, WINDOW_S, Breaker

BAD = "decode: Unreadable"


def test_one_reason_for_most_of_a_minute_opens_it_for_the_pause() -> None:
    breaker = Breaker(0.5, 10)
    assert breaker.note(0, [BAD] * (LEAST - 1) + [None] * (LEAST - 1)) is None
    assert breaker.note(1, [BAD]) == BAD
    assert breaker.is_open(1)
    assert breaker.is_open(10.9)
    assert not breaker.is_open(11)


def test_a_few_dead_letters_are_no_pattern() -> None:
    breaker = Breaker(0.5, 10)
    assert breaker.note(0, [BAD] * (LEAST - 1)) is None
    assert not breaker.is_open(0)


def test_many_dead_letters_among_more_answers_are_none_either() -> None:
    assert Breaker(0.5, 10).note(0, [BAD] * LEAST + [None] * (LEAST + 1)) is None


def test_dead_letters_of_different_reasons_are_not_added_up() -> None:
    assert Breaker(0.6, 10).note(0, [BAD] * LEAST + ["infer: RuntimeError"] * LEAST) is None


def test_what_is_older_than_a_minute_counts_no_more() -> None:
    breaker = Breaker(0.5, 10)
    breaker.note(0, [BAD] * (LEAST - 1))
    assert breaker.note(WINDOW_S + 1, [BAD] * (LEAST - 1)) is None


def test_after_it_opened_it_takes_as_much_again() -> None:
    breaker = Breaker(0.5, 10)
    assert breaker.note(0, [BAD] * LEAST) == BAD
    assert breaker.note(11, [BAD]) is None
    assert not breaker.is_open(11)


def test_without_a_share_it_never_opens() -> None:
    breaker = Breaker(0, 10)
    assert breaker.note(0, [BAD] * 10 * LEAST) is None
    assert not breaker.is_open(0)

import pytest

from worker import checkpoint
from worker.checkpoint import Checkpoint


def test_a_checkpoint_survives_the_round_trip() -> None:
    written = Checkpoint(run="a1b2c3", batch=42, clean=False, until=90, deaths=2, trials=1)
    text = '{"v":1,"run":"a1b2c3","batch":42,"clean":false,"until":90,"deaths":2,"trials":1}'
    assert checkpoint.encode(written) == text
    assert checkpoint.decode(text) == written


def test_the_mark_of_a_first_start_says_when_that_was() -> None:
    mark = Checkpoint(run="r", batch=0, clean=True, first_start=1_796_000_000_000)
    assert checkpoint.decode(checkpoint.encode(mark)) == mark


def test_fields_of_a_later_version_of_the_same_form_are_passed_over() -> None:
    assert checkpoint.decode('{"v":1,"run":"r","batch":1,"clean":false,"colour":2}') == Checkpoint("r", 1, False)


@pytest.mark.parametrize(
    "foreign",
    [None, "", "hello", "{", "[]", "1", '{"v":2,"run":"r","batch":1,"clean":true}', '{"v":1}', "[" * 4000,
     '{"v":1,"run":"r","batch":"1","clean":true}'],
)  # fmt: skip
def test_absent_or_foreign_metadata_means_no_history(foreign: str | None) -> None:
    assert checkpoint.decode(foreign) is None


def test_a_checkpoint_is_never_over_its_limit() -> None:
    with pytest.raises(ValueError, match="over 1024"):
        checkpoint.encode(Checkpoint("r" * 2000, 1, True))

import pytest

from packing import Result
from tests.worker.fake_engine import FakeEngine
from tests.worker.records import record
from worker.config import Settings
from worker.forward import EngineError, answer_tasks
from worker.tasks import Failure, read_tasks


def outcomes(engine: FakeEngine, *values: object) -> list[Result | Failure | None]:
    tasks = read_tasks([record(value, offset=index) for index, value in enumerate(values)], engine, Settings())
    return [answer.outcome for answer in answer_tasks(engine, tasks)]


def test_one_forward_answers_all_and_leaves_out_what_needs_none() -> None:
    engine = FakeEngine()
    event, unreadable, tombstone = outcomes(engine, {"text": "Ann met Bob"}, b"not json", None)
    assert isinstance(event, Result)
    assert [entity.text for entity in event.entities] == ["Ann", "Bob"]
    assert isinstance(unreadable, Failure)
    assert unreadable.stage == "decode"
    assert tombstone is None
    assert engine.forwards == [1]


def test_a_record_that_breaks_the_forward_is_found_and_its_mates_are_answered() -> None:
    texts = [{"text": f"Ann {n}"} for n in range(6)]
    plain = outcomes(FakeEngine(), *texts)
    found = outcomes(FakeEngine(), *texts[:3], {"text": "POISON"}, *texts[3:])
    assert found[3] == Failure("infer", "RuntimeError", "the forward failed")
    assert found[:3] + found[4:] == plain


def test_several_such_records_are_all_found() -> None:
    found = outcomes(FakeEngine(), *({"text": "POISON" if n in (0, 3, 7) else "Ann"} for n in range(8)))
    assert [index for index, outcome in enumerate(found) if isinstance(outcome, Failure)] == [0, 3, 7]


def test_a_broken_engine_never_costs_a_good_record() -> None:
    with pytest.raises(EngineError, match="harmless text too"):
        outcomes(FakeEngine(broken=True), {"text": "Ann"})


def test_no_tasks_need_no_forward() -> None:
    engine = FakeEngine()
    assert outcomes(engine) == []
    assert engine.forwards == []

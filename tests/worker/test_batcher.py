from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.batcher import Closed, MicroBatch, MicroBatcher
from worker.records import Partition

A, B = Partition("texts", 0), Partition("texts", 1)


@dataclass(frozen=True)
class Item:
    partition: Partition
    tokens: int
    arrived: float = 0.0
    size: int = 10
    offset: int = 0


def batcher(*, budget: int = 100, latency: float = 1.0, rate: float = 0.0) -> MicroBatcher[Item]:
    return MicroBatcher(budget_tokens=budget, max_latency_s=latency, forward_seconds=lambda tokens: rate * tokens)


def filled(*items: Item, budget: int = 100, latency: float = 1.0, rate: float = 0.0) -> MicroBatcher[Item]:
    made = batcher(budget=budget, latency=latency, rate=rate)
    for item in items:
        made.add(item)
    return made


def closed(batch: MicroBatch[Item] | None) -> MicroBatch[Item]:
    assert batch is not None
    return batch


def test_nothing_closes_while_there_is_something_to_gain_from_waiting() -> None:
    assert filled(Item(A, 99)).close(0.5) is None


def test_an_empty_buffer_never_closes() -> None:
    assert batcher().close(1e9, idle=True, draining=True) is None


def test_the_budget_closes() -> None:
    batch = closed(filled(Item(A, 60), Item(A, 40)).close(0.0))
    assert (batch.reason, batch.tokens, len(batch.items)) == (Closed.BUDGET, 100, 2)


def test_a_micro_batch_never_holds_more_than_the_budget() -> None:
    made = filled(Item(A, 60, 0.0), Item(A, 60, 0.1))
    assert closed(made.close(0.2)).tokens == 60
    assert len(made) == 1


def test_the_deadline_is_the_oldest_arrival_plus_latency_less_the_forward() -> None:
    made = filled(Item(A, 30, 5.0), Item(B, 20, 5.5), latency=1.0, rate=0.01)
    assert made.deadline() == pytest.approx(5.0 + 1.0 - 0.5)
    assert made.close(5.49) is None
    assert closed(made.close(5.5)).reason is Closed.LATENCY


def test_the_forward_predicted_is_that_of_one_micro_batch_at_most() -> None:
    assert filled(Item(A, 90), Item(A, 90), budget=100, rate=0.01).deadline() == pytest.approx(1.0 - 1.0)


def test_an_idle_source_closes_early() -> None:
    assert closed(filled(Item(A, 1)).close(0.0, idle=True)).reason is Closed.IDLE


def test_draining_closes_what_is_left() -> None:
    assert closed(filled(Item(A, 1)).close(0.0, draining=True)).reason is Closed.DRAIN


def test_while_a_forward_runs_only_a_full_micro_batch_closes() -> None:
    assert filled(Item(A, 99)).close(9.0, idle=True, draining=True, full_only=True) is None
    assert closed(filled(Item(A, 100)).close(0.0, full_only=True)).reason is Closed.BUDGET


def test_an_item_over_the_budget_is_a_micro_batch_of_its_own() -> None:
    made = filled(Item(A, 500, 0.0), Item(B, 1, 0.1))
    assert [item.tokens for item in closed(made.close(0.2)).items] == [500]
    assert [item.tokens for item in closed(made.close(0.2, idle=True)).items] == [1]


def test_a_misfit_holds_up_its_own_partition_alone() -> None:
    made = filled(Item(A, 60, 0.0), Item(A, 60, 0.1), Item(A, 5, 0.2), Item(B, 30, 0.3))
    assert [(item.partition, item.tokens) for item in closed(made.close(0.4)).items] == [(A, 60), (B, 30)]


def test_a_misfit_leads_the_next_micro_batch() -> None:
    made = filled(Item(A, 60, 0.0), Item(A, 60, 0.1), Item(B, 30, 0.3), Item(B, 30, 0.4))
    made.close(0.5)
    assert closed(made.close(0.5, idle=True)).items[0] == Item(A, 60, 0.1)


def test_dropping_a_partition_frees_what_it_held() -> None:
    made = filled(Item(A, 90), Item(B, 5))
    assert made.drop(A) == 1
    assert (made.tokens, made.size, made.head(A)) == (5, 10, None)
    assert closed(made.close(0.0, idle=True)).items == [Item(B, 5)]


items = st.lists(
    st.tuples(st.sampled_from([A, B, Partition("texts", 2)]), st.integers(1, 150)), min_size=1, max_size=60
)


@given(items)
def test_every_item_leaves_once_in_the_order_of_its_partition_and_within_the_budget(
    arrivals: list[tuple[Partition, int]],
) -> None:
    made = filled(*(Item(partition, tokens, float(at), offset=at) for at, (partition, tokens) in enumerate(arrivals)))
    left: list[Item] = []
    while batch := made.close(0.0, draining=True):
        assert batch.tokens <= 100 or len(batch.items) == 1
        assert batch.tokens == sum(item.tokens for item in batch.items)
        assert batch.items[0].arrived == min(item.arrived for item in batch.items)
        left += batch.items
    for partition in {partition for partition, _ in arrivals}:
        offsets = [item.offset for item in left if item.partition == partition]
        assert offsets == [at for at, (of, _) in enumerate(arrivals) if of == partition]
    assert (len(made), made.tokens, made.size) == (0, 0, 0)

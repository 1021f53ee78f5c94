"""Whatever shares a pack with a row, and however rows are split into packs, the row's logits are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from packing import Document, Engine
from packing.engine import _rows
from packing.forward import Row
from packing.self_test import existing
from tests.packing.conftest import Load
from tests.packing.texts import LABEL_SETS, ORDINARY

NAMES = ["bert span", "bert token", "deberta span", "bi-encoder span"]
TOLERANCE = 2e-5


def rows_of(engine: Engine, texts: list[str]) -> list[Row]:
    """Return a row for each text, with other labels from one to the next."""
    documents = [Document(text, LABEL_SETS[i % len(LABEL_SETS)]) for i, text in enumerate(texts)]
    return _rows(engine.prepare(documents))


def logits(engine: Engine, rows: list[Row]) -> list[Tensor]:
    forward: Any = engine._forward
    return [existing(one, forward.width) for one in forward.logits(rows)]


def assert_equal(ours: list[Tensor], theirs: list[Tensor]) -> None:
    deviation = torch.cat(theirs).std()
    assert (torch.cat(ours) - torch.cat(theirs)).abs().max() <= TOLERANCE * deviation


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_split_into_packs_gives_the_same(load: Load, name: str, data: st.DataObject) -> None:
    engine, _ = load(name)
    rows = rows_of(engine, ORDINARY)
    alone = [one for row in rows for one in logits(engine, [row])]
    order = data.draw(st.permutations(range(len(rows))))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows) - 1))))
    found: dict[int, Tensor] = {}
    for part in np.split(np.array(order), cuts):
        found.update(zip(part.tolist(), logits(engine, [rows[i] for i in part]), strict=True))
    assert_equal([found[i] for i in range(len(rows))], alone)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("capacity", [1, 40, 100, 100_000])
def test_any_capacity_gives_the_same(load: Load, name: str, capacity: int, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _ = load(name)
    rows = rows_of(engine, ORDINARY)
    usual = logits(engine, rows)
    monkeypatch.setattr(engine._forward, "_capacity", capacity)
    assert_equal(logits(engine, rows), usual)


@pytest.mark.parametrize("name", NAMES)
def test_a_text_is_read_alike_alone_first_last_and_among_a_thousand(load: Load, name: str) -> None:
    engine, _ = load(name)
    probe, *_ = rows_of(engine, ["Angela Merkel met Tim Cook of Apple in Berlin on Friday."])
    others = rows_of(engine, (ORDINARY * (1000 // len(ORDINARY) + 1))[:1000])
    alone = logits(engine, [probe])
    together = logits(engine, [probe, *others[:500], probe, *others[500:], probe])
    for place in (0, 501, 1002):
        assert_equal([together[place]], alone)


@pytest.mark.parametrize("name", NAMES)
def test_another_text_leaves_no_trace(load: Load, name: str) -> None:
    engine, _ = load(name)
    rows = rows_of(engine, ORDINARY)
    before = logits(engine, rows)
    changed = [*rows]
    changed[3] = rows_of(engine, [*ORDINARY[:3], "Nothing of the kind was said by anybody there."])[3]
    after = logits(engine, changed)
    assert before[3].shape != after[3].shape or not torch.allclose(before[3], after[3], atol=1e-2)
    del before[3], after[3]
    assert_equal(after, before)

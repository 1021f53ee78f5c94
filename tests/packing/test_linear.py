from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from packing.linear import Activation, Linear

PLAIN = {"none": lambda x: x, "relu": F.relu, "gelu": F.gelu}


def made(rows: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(rows)
    x, weight, bias = (torch.randn(*shape, generator=generator) for shape in ((rows, 48), (80, 48), (80,)))
    return x.to(dtype), weight.to(dtype), bias.to(dtype)


@pytest.mark.parametrize("rows", [1, 15, 16, 100, 2500])
@pytest.mark.parametrize("activation", ["none", "relu", "gelu"])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_the_plain_linear_layer(rows: int, activation: Activation, bias: bool) -> None:
    x, weight, offset = made(rows, torch.float32)
    given = offset if bias else None
    ours = Linear(weight, given, torch.float32)(x, activation)
    assert torch.allclose(ours, PLAIN[activation](F.linear(x, weight, given)), atol=2e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_adding_to_a_residual_leaves_the_residual_as_it_was(dtype: torch.dtype) -> None:
    x, weight, bias = made(33, dtype)
    residual = torch.randn(33, 80, generator=torch.Generator().manual_seed(1)).to(dtype)
    before = residual.clone()
    right = F.linear(x.float(), weight.float(), bias.float()) + residual.float()
    ours = Linear(weight, bias, dtype).added_to(residual, x)
    assert ours.dtype == dtype
    assert torch.allclose(ours.float(), right, atol=2e-5 if dtype == torch.float32 else 0.3)
    assert torch.equal(residual, before)


def test_layers_side_by_side_give_their_outputs_side_by_side() -> None:
    torch.manual_seed(0)
    layers = [nn.Linear(48, size) for size in (16, 32, 5)]
    x = torch.randn(7, 48)
    together = Linear.of(torch.float32, *layers)
    assert (together.in_features, together.out_features) == (48, 53)
    assert torch.allclose(together(x), torch.cat([layer(x) for layer in layers], 1), atol=1e-5)


def test_without_onednns_operators_the_answer_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight, bias = made(20, torch.float32)
    blocked = Linear(weight, bias, torch.float32)
    monkeypatch.setattr("packing.linear._blocks", lambda _: False)
    plain = Linear(weight, bias, torch.float32)
    residual = torch.ones(20, 80)
    for activation in PLAIN:
        assert torch.allclose(plain(x, activation), blocked(x, activation), atol=2e-5)  # type: ignore[arg-type]
    assert torch.allclose(plain.added_to(residual, x), blocked.added_to(residual, x), atol=2e-5)
    assert torch.equal(residual, torch.ones(20, 80))

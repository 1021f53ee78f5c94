from __future__ import annotations

from pathlib import Path

import pytest
import torch

from packing import ModelError, precision
from packing.precision import candidates

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def names(requested: str, device: torch.device) -> list[str]:
    return [str(one.dtype).removeprefix("torch.") for one in candidates(requested, device)]


def test_a_cpu_takes_bfloat16_only_where_it_multiplies_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "bfloat16_instructions", lambda: ["amx"])
    assert names("auto", CPU) == ["bfloat16", "float32"]
    assert "amx" in candidates("auto", CPU)[0].why
    monkeypatch.setattr(precision, "bfloat16_instructions", list)
    assert names("auto", CPU) == ["float32"]
    assert "avx512_bf16" in candidates("auto", CPU)[0].why


def test_a_gpu_tries_both_halves() -> None:
    assert names("auto", CUDA) == ["float16", "bfloat16", "float32"]


def test_another_device_is_not_trusted_with_less_than_float32() -> None:
    assert names("auto", torch.device("mps")) == ["float32"]


@pytest.mark.parametrize("device", [CPU, CUDA])
def test_what_is_asked_for_comes_first_and_float32_last(device: torch.device) -> None:
    assert names("float32", device) == ["float32"]
    assert names("bfloat16", device) == ["bfloat16", "float32"]
    assert names("float16", device) == ["float16", "float32"]


def test_an_unknown_dtype_is_refused_with_those_known() -> None:
    with pytest.raises(ModelError, match=r"unknown dtype 'int8': must be auto, float32, bfloat16, float16"):
        candidates("int8", CPU)


def test_the_processors_instructions_are_those_the_system_reports() -> None:
    cpuinfo = Path("/proc/cpuinfo")
    flags = cpuinfo.read_text() if cpuinfo.exists() else ""
    found = precision.bfloat16_instructions()
    if "flags" in flags:  # Linux on x86
        assert ("avx512_bf16" in found) == ("avx512_bf16" in flags)
        assert ("amx" in found) == ("amx_tile" in flags)

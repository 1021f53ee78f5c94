"""A flat encoder against the library's module, segment by segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from packing.encoders import Encoder
from packing.pack import pack

RAGGED = [1, 2, 3, 3, 3, 17, 64, 64, 128, 129, 191, 192, 193, 200, 200, 257, 300, 400, 510]


def scaled(model: nn.Module, factor: float = 4.0) -> nn.Module:
    """Make random weights large, so that every part of the model shows in its output."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.mul_(factor)
            elif name.endswith("bias"):
                parameter.normal_(0, 0.5)
    return model.eval()


@torch.inference_mode()
def largest_difference(model: Any, encoder: Encoder, lengths: Sequence[int], vocabulary: int = 200) -> float:
    """Return the largest difference from the module's answer for a segment alone, in standard deviations."""
    random = np.random.default_rng(len(lengths))
    sequences = [random.integers(5, vocabulary, length).astype(np.int32) for length in lengths]
    packed = pack(sequences, range(len(sequences)))
    states = encoder(packed)
    assert torch.isfinite(states).all()
    some = torch.from_numpy(random.permutation(packed.tokens)[: max(1, packed.tokens // 3)])
    assert (encoder(packed, some) - states[some]).abs().max() <= 1e-4 * states.std(), "of some tokens it is the same"
    differences: list[Tensor] = []
    expected: list[Tensor] = []
    for start, length, number in zip(packed.starts, packed.lengths, packed.order, strict=True):
        ids = torch.from_numpy(sequences[number].astype(np.int64))[None]
        alone = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0].float()
        expected.append(alone)
        differences.append((states[start : start + length].float() - alone).abs().max())
    return float(torch.stack(differences).max() / torch.cat(expected).std())


def assert_no_segment_sees_another(encoder: Encoder) -> None:
    """Change one segment: its own states change, all others stay."""
    random = np.random.default_rng(0)
    sequences = [random.integers(5, 200, length).astype(np.int32) for length in (40, 40, 200, 7)]
    before = encoder(pack(sequences, range(4)))
    changed = [*sequences[:1], random.integers(5, 200, 40).astype(np.int32), *sequences[2:]]
    after = encoder(pack(changed, range(4)))
    own = slice(240, 280)  # the second of the two of 40 tokens
    assert torch.allclose(before[:240], after[:240], rtol=0, atol=1e-6)
    assert torch.allclose(before[280:287], after[280:287], rtol=0, atol=1e-6)
    assert not torch.allclose(before[own], after[own], atol=1e-2)

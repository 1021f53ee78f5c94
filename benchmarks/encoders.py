"""The encoder against the least it can take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from benchmarks import ceilings
from benchmarks.report import Metric
from benchmarks.rounds import interleave
from packing import Engine
from packing.forward import Row


def shape(gliner: Any) -> ceilings.Shape:
    """Return the shape of a model's encoder."""
    config = gliner.model.token_rep_layer.bert_layer.model.config
    return ceilings.Shape(
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        wide=config.intermediate_size,
        heads=config.num_attention_heads,
        relative=bool(getattr(config, "relative_attention", False)),
    )


def measure(
    engine: Engine, encoder: ceilings.Shape, rows: Sequence[Row], rounds: int, name: str, goal: float
) -> list[Metric]:
    """Return the share of the encoder's time that its products alone would take, by torch's products and by ours.

    Args:
        engine: Whose encoder; it runs in its dtype.
        encoder: The encoder's shape.
        rows: What it reads, packed as the engine packs them.
        rounds: How often.
        name: Of the metric.
        goal: Its least share.
    """
    forward: Any = engine._forward
    packs = list(forward.packs(rows))
    dtype = getattr(torch, engine.info.dtype)

    @torch.inference_mode()
    def encode() -> None:
        for pack in packs:
            forward.encoder(pack)

    ways: dict[str, Callable[[], None]] = {
        "encoder": encode,
        "linear": ceilings.linear_products(packs, encoder, dtype),
        "prepacked linear": ceilings.linear_products(packs, encoder, dtype, prepacked=True),
        "attention": ceilings.attention_products(packs, encoder, dtype),
    }
    timed = interleave(ways, rounds)
    metrics = []
    for linear, suffix, note in (
        ("linear", "", "torch's linear layers and attention's products"),
        ("prepacked linear", "_prepacked", "our prepacked linear layers and attention's products"),
    ):
        shares = [
            (a + b) / whole
            for a, b, whole in zip(
                timed.seconds[linear], timed.seconds["attention"], timed.seconds["encoder"], strict=True
            )
        ]
        shares.sort()
        metrics.append(
            Metric(
                name + suffix,
                shares[len(shares) // 2],
                "of the encoder's time",
                goal if not suffix else None,
                spread=(shares[0], shares[-1]),
                note=note,
            )
        )
    return metrics

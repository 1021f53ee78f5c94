"""The training loop: batches in, a fitted model out, in a given number of minutes."""

import ctypes
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from gliner import GLiNER

from training.examples import Example
from training.span_loss import span_loss

ENCODER_RATE = 1e-4
"""Peak learning rate of the pretrained encoder."""

HEAD_RATE = 6e-4
"""Peak learning rate of what starts from random weights."""

WARM_UP = 0.04
"""Share of the time in which the learning rates rise from 0; then they fall to 0 as a half cosine."""

CLIP = 5.0
"""Largest norm of a step's gradient."""

FOCAL_ALPHA, FOCAL_GAMMA = 0.75, 2.0
"""Focal loss: positives weigh three times as much as negatives, easy spans next to nothing."""

CHECKPOINT_SECONDS = 300.0
"""Time between two checkpoints."""


@dataclass(frozen=True)
class Progress:
    """Where the training stands: steps and examples done, seconds used, the mean loss of late."""

    step: int
    examples: int
    seconds: float
    loss: float


def rate(share: float) -> float:
    """Scale the learning rate for the share of the time that is used, in [0, 1]: warm-up, then half a cosine."""
    if share < WARM_UP:
        return share / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (share - WARM_UP) / (1 - WARM_UP))))


def make_optimizer(model: GLiNER) -> torch.optim.AdamW:
    """Make the optimizer: the encoder learns slower than the head; norms and biases don't decay."""
    groups: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        peak = ENCODER_RATE if ".bert_layer." in name else HEAD_RATE
        decay = 0.01 if parameter.ndim > 1 else 0.0
        groups.setdefault((peak, decay), []).append(parameter)
    return torch.optim.AdamW(
        [{"params": ps, "lr": peak, "peak": peak, "weight_decay": decay} for (peak, decay), ps in groups.items()],
        fused=True,
    )


def without_costly_dropout(model: GLiNER) -> None:
    """Turn off the dropout of the encoder and of the widest span layer.

    On a CPU its random numbers took a fifth of a step, and attention without dropout has a faster kernel.
    """
    for name, module in model.named_modules():
        if "bert_layer" in name or "out_project" in name:
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
            if hasattr(module, "attention_dropout"):
                module.attention_dropout = 0.0


def keep_freed_memory() -> None:
    """Tell glibc to keep freed memory: a step's large tensors then cost no page faults. No-op without glibc."""
    m_trim_threshold, m_top_pad, m_mmap_max = -1, -2, -4  # malloc.h
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(m_mmap_max, 0)
        mallopt(m_trim_threshold, 2**31 - 1)
        mallopt(m_top_pad, 2**28)


def fit(
    model: GLiNER,
    make_batches: Callable[[random.Random], list[list[Example]]],
    minutes: float,
    seed: int,
    report: Callable[[Progress], None],
    checkpoint: Path | None = None,
) -> Progress:
    """Fit the model for so many minutes of this process's time, however many steps that is.

    `make_batches` gives one round of batches; it is called with a generator seeded by `seed` and the round's
    number. Where `checkpoint` is an existing file of an earlier, broken-off call, training goes on from there,
    with the next round.
    The schedule follows the time used, so it ends with a learning rate of 0 on a fast machine and a slow one.
    """
    optimizer = make_optimizer(model)
    budget, used, step, examples, first_round, mean = minutes * 60, 0.0, 0, 0, 0, math.nan
    if checkpoint is not None and checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        used, step, examples, first_round = state["used"], state["step"], state["examples"], state["round"] + 1
    without_costly_dropout(model)
    model.train()
    started, saved = time.monotonic() - used, used
    collate = model.data_collator_class(model.config, data_processor=model.data_processor, prepare_labels=True)
    for number, batch in _rounds(make_batches, seed, first_round):
        used = time.monotonic() - started
        if used >= budget:
            break
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * rate(used / budget)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inputs: dict[str, Any] = collate(batch)
            loss = span_loss(model, inputs, FOCAL_ALPHA, FOCAL_GAMMA)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step, examples = step + 1, examples + len(batch)
        mean = loss.item() if math.isnan(mean) else 0.98 * mean + 0.02 * loss.item()
        report(Progress(step, examples, used, mean))
        if checkpoint is not None and used - saved >= CHECKPOINT_SECONDS:
            saved = used
            state = {"used": used, "step": step, "examples": examples, "round": number}
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), **state}, checkpoint)
    model.eval()
    return Progress(step, examples, min(used, budget), mean)


def _rounds(
    make_batches: Callable[[random.Random], list[list[Example]]], seed: int, first: int
) -> Iterator[tuple[int, list[Example]]]:
    """Give batches for ever, round after round, each with its round's number."""
    number = first
    while True:
        for batch in make_batches(random.Random(f"{seed}/{number}")):
            yield number, batch
        number += 1

"""The span head on the same words: ours against the library's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from benchmarks.report import Metric
from benchmarks.rounds import interleave
from benchmarks.subject import Subject, possible
from packing.forward import Row
from packing.heads.spans import SpanScorer

_GOALS: Final = {"head_vs_sequential": 7.0, "head_vs_sorted8": 9.0, "head_vs_padded32": 30.0}


def measure(measured: Subject, rows: Sequence[Row], rounds: int, *, quick: bool) -> list[Metric]:
    """Time span scoring in float32, from the words' and labels' states to logits, on random states.

    The library's layers are its span representation, its label projection and their product. Ours is in packs, as the
    engine makes them.
    """
    model, width = measured.gliner.model, measured.gliner.config.max_width
    hidden = measured.gliner.config.hidden_size
    generator = torch.Generator().manual_seed(0)
    words = [torch.randn(len(row.counts), hidden, generator=generator) for row in rows]
    labels = [torch.randn(len(row.prompt.labels), hidden, generator=generator) for row in rows]
    order = sorted(range(len(rows)), key=lambda i: len(words[i]))
    batches = {
        "head_vs_sequential": [[i] for i in range(len(rows))],
        "head_vs_sorted8": [order[at : at + 8] for at in range(0, len(rows), 8)],
        "head_vs_padded32": [list(range(len(rows)))[at : at + 32] for at in range(0, len(rows), 32)],
    }
    if quick:
        del batches["head_vs_padded32"]
    ways: dict[str, Callable[[], Any]] = {
        name: partial(_library, model, width, [(_pad(words, some), _pad(labels, some)) for some in members])
        for name, members in batches.items()
    }
    ways["ours"] = partial(_ours, SpanScorer(model, torch.float32), _by_pack(measured, rows, words, labels))
    timed = interleave(ways, rounds)
    _check(timed.given["head_vs_sequential"], timed.given["ours"])
    return [
        Metric(name, ratio.median, "times as fast", _GOALS[name], spread=ratio[1:])
        for name, ratio in ((name, timed.ratio(name, "ours")) for name in batches)
    ]


def _by_pack(
    measured: Subject, rows: Sequence[Row], words: Sequence[Tensor], labels: Sequence[Tensor]
) -> list[tuple[list[int], Tensor, Tensor, list[int], list[slice]]]:
    """Return for each pack the rows in it, their words and labels end to end, and whose is what."""
    forward: Any = measured.engine._forward
    packs = []
    for pack in forward.packs(rows):
        counts = [len(labels[i]) for i in pack.order]
        bounds = list(accumulate(counts, initial=0))
        packs.append(
            (
                list(pack.order),
                torch.cat([words[i] for i in pack.order]),
                torch.cat([labels[i] for i in pack.order]),
                [len(words[i]) for i in pack.order],
                [slice(start, end) for start, end in pairwise(bounds)],
            )
        )
    return packs


@torch.inference_mode()
def _ours(scorer: SpanScorer, packs: Sequence[Any]) -> list[Tensor]:
    """Return the logits `[W, K, C]` of each row."""
    found: dict[int, Tensor] = {}
    for order, words, labels, lengths, slices in packs:
        shapes = [(n, scorer.width, of.stop - of.start) for n, of in zip(lengths, slices, strict=True)]
        logits = torch.zeros(sum(math.prod(shape) for shape in shapes))
        own = logits.split_with_sizes([math.prod(shape) for shape in shapes])
        out = [one.view(shape) for one, shape in zip(own, shapes, strict=True)]
        scorer(words, lengths, scorer.label_weights(labels), slices, out)
        found.update(zip(order, out, strict=True))
    return [found[i] for i in range(len(found))]


def _check(theirs: Sequence[Tensor], ours: Sequence[Tensor]) -> None:
    reference = torch.cat([possible(one[0]) for one in theirs])
    difference = (torch.cat([possible(one) for one in ours]) - reference).abs().max() / reference.std()
    assert difference < 1e-4, f"the heads' logits differ by {difference} standard deviations"


@torch.inference_mode()
def _library(model: Any, width: int, batches: Sequence[tuple[Tensor, Tensor]]) -> list[Tensor]:
    """Return the logits `[B, W, K, C]` of batches of words `[B, W, H]` and labels `[B, C, H]`."""
    logits = []
    for words, labels in batches:
        starts = torch.arange(words.shape[1])[:, None].expand(-1, width)
        spans = torch.stack([starts, starts + torch.arange(width)], -1).view(1, -1, 2)
        spans = torch.where(spans < words.shape[1], spans, 0).expand(len(words), -1, -1)
        found = model.span_rep_layer(words, spans)
        logits.append(torch.einsum("BLKD,BCD->BLKC", found, model.prompt_rep_layer(labels)))
    return logits


def _pad(states: Sequence[Tensor], members: Sequence[int]) -> Tensor:
    return pad_sequence([states[i] for i in members], batch_first=True)

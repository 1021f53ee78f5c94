"""Rows of random ids, and a tiny model's hidden states for them, each row read alone by the library's encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from packing.forward import Row
from packing.pack import Pack, pack
from packing.prompts import Prompt
from packing.tokenizer import IntArray

SUFFIX = (3,)
ORDINARY = np.arange(10, 200, dtype=np.int32)
"""Ids that are no special token of a tiny model."""


def random_prompt(random: np.random.Generator, labels: int, ent: int | None) -> Prompt:
    """Return a prompt of so many labels, each of 1 to 3 ids after its marker `ent`; None for a bi-encoder's."""
    names = tuple(f"label {i}" for i in range(labels))
    words = [tuple(random.choice(ORDINARY, random.integers(1, 4)).tolist()) for _ in names]
    if ent is None:
        return Prompt(0, names, (2,), tuple((2, *ids, 3) for ids in words))
    ids = [2]
    marks = []
    for word in words:
        marks.append(len(ids))
        ids += [ent, *word]
    return Prompt(0, names, (*ids, ent + 1), marks=np.array(marks, np.int32))


def random_row(random: np.random.Generator, words: int, prompt: Prompt, threshold: float = 0.5) -> Row:
    """Return a text of so many words of 1 to 4 ids each."""
    counts = random.integers(1, 5, words).astype(np.int32)
    ids = random.choice(ORDINARY, int(counts.sum()))
    return Row(prompt, ids, counts, (threshold,) * len(prompt.labels))


def random_rows(gliner: Any, shapes: Sequence[tuple[int, int]], seed: int = 0) -> list[Row]:
    """Return a row for each (words, labels)."""
    random = np.random.default_rng(seed)
    ent = None if getattr(gliner.config, "labels_encoder", None) else gliner.config.class_token_index
    return [random_row(random, words, random_prompt(random, labels, ent)) for words, labels in shapes]


def sequence(row: Row) -> IntArray:
    """Return a row's ids, int32."""
    return np.concatenate([row.prompt.array, row.ids, np.array(SUFFIX, np.int32)])


@torch.inference_mode()
def encode(model: nn.Module, packed: Pack) -> Tensor:
    """Return `[T, D]` of the library's encoder on each segment alone; the rounding's rows are large."""
    hidden = []
    for start, length in zip(packed.starts.tolist(), packed.lengths, strict=True):
        ids = packed.ids[start : start + length][None]
        hidden.append(model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0])
    states = torch.cat(hidden)
    return torch.cat([states, torch.full((len(packed.ids) - len(states), states.shape[1]), 1e4)])


def packed_rows(rows: Sequence[Row]) -> tuple[Pack, list[Row]]:
    """Return all rows as one pack, and the rows in its order."""
    packed = pack([sequence(row) for row in rows], range(len(rows)))
    return packed, [rows[i] for i in packed.order]

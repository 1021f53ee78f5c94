"""A bi-encoder's labels -> their weights, remembered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from packing.linear import Linear
from packing.pack import Pack, pack
from packing.plan import plan
from packing.prompts import CacheCounts, Prompt

CACHED_LABELS = 4096
"""Labels whose weights are remembered: some 30 MB."""

CAPACITY = 2048
"""Tokens of a pack of labels."""

Ids = tuple[int, ...]


class LabelWeights:
    """What scoring needs of each label, computed once and remembered for the labels last asked for.

    Attributes:
        counts: Labels that were known, each counted once a pack, and labels that had to be encoded.
    """

    def __init__(
        self,
        gliner: Any,
        dtype: torch.dtype,
        encode: Callable[[Pack], Tensor],
        finish: Callable[[Tensor], Tensor],
        *,
        capacity: int = CACHED_LABELS,
    ) -> None:
        """Copy the weights of a library's bi-encoder.

        Args:
            gliner: The library's object.
            dtype: To compute in.
            encode: The label encoder: packs of labels -> hidden states `[T, D]`.
            finish: Label vectors `[C, H]` -> weights `[C, N]`.
            capacity: Labels to remember.
        """
        projection = getattr(gliner.model.token_rep_layer, "labels_projection", None)
        self._projection = None if projection is None else Linear.of(dtype, projection)
        self._device = str(next(gliner.model.parameters()).device)
        self._dtype = dtype
        self._encode = encode
        self._finish = finish
        self._capacity = capacity
        self._known: OrderedDict[Ids, Tensor] = OrderedDict()  # [N] each, the one asked for last at the end
        self.counts = CacheCounts(0, 0)

    def __len__(self) -> int:
        """Return how many labels are remembered."""
        return len(self._known)

    def __call__(self, prompts: Sequence[Prompt]) -> tuple[Tensor, list[slice]]:
        """Return the weights of all labels, `[C, N]`, and which of them are each prompt's.

        Prompts that are one object share theirs.
        """
        distinct = {id(prompt): prompt for prompt in prompts}
        asked = list(dict.fromkeys(ids for prompt in distinct.values() for ids in prompt.label_ids))
        missing = [ids for ids in asked if ids not in self._known]
        self.counts = self.counts.plus(len(asked), len(missing))
        fresh = dict(zip(missing, self._compute(missing), strict=True)) if missing else {}
        weights = {ids: fresh[ids] if ids in fresh else self._known[ids] for ids in asked}
        self._remember(weights)
        slices: dict[int, slice] = {}
        gathered: list[Tensor] = []
        for number, prompt in distinct.items():
            slices[number] = slice(len(gathered), len(gathered) + len(prompt.label_ids))
            gathered.extend(weights[ids] for ids in prompt.label_ids)
        return torch.stack(gathered), [slices[id(prompt)] for prompt in prompts]

    def _remember(self, weights: dict[Ids, Tensor]) -> None:
        for ids, own in weights.items():
            self._known[ids] = own
            self._known.move_to_end(ids)
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)

    def _compute(self, labels: Sequence[Ids]) -> list[Tensor]:
        """Return the labels' weights, `[N]` each.

        A label's vector is the mean of its tokens', all of them, as in the library's `encode_labels`.
        """
        sequences = [np.array(ids, np.int32) for ids in labels]
        found: dict[int, Tensor] = {}
        for members in plan([len(ids) for ids in sequences], CAPACITY):
            packed = pack(sequences, members, device=self._device)
            hidden = self._encode(packed)[: packed.tokens].float()
            tokens = torch.arange(packed.tokens, device=hidden.device)
            starts = torch.from_numpy(packed.starts).long().to(hidden.device)
            vectors = F.embedding_bag(tokens, hidden, starts, mode="mean").to(self._dtype)
            if self._projection is not None:
                vectors = self._projection(vectors)
            # Copies: a view would keep the weights of a whole pack in memory as long as one of its labels.
            weights = (own.clone() for own in self._finish(vectors))
            found.update(zip(packed.order, weights, strict=True))
        return [found[i] for i in range(len(labels))]

"""The encoder for every model that isn't packed: the library's module, on padded batches of like length."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from packing.pack import Pack
from packing.padded_forward import batches


class PaddedEncoder:
    """Run a `transformers` module on a pack's segments.

    Attributes:
        tokens: Tokens read so far, without padding.
        padding: Tokens of padding read so far.
    """

    def __init__(self, module: Any, dtype: torch.dtype) -> None:
        """Keep a module, converted to `dtype` where it is."""
        self._module = module.to(dtype).eval()
        self._pad_id = int(getattr(module.config, "pad_token_id", None) or 0)
        self.tokens = 0
        self.padding = 0

    def __call__(self, pack: Pack, read: Tensor | None = None) -> Tensor:
        """See `Encoder`."""
        lengths = pack.lengths
        states: Tensor | None = None
        end = 0
        # segments come longest first, as batches do: a batch is a stretch of the stream
        for batch in batches(lengths, pack.tokens):
            longest = lengths[batch[0]]
            inside = torch.arange(longest) < torch.tensor([lengths[i] for i in batch])[:, None]
            inside = inside.to(pack.ids.device)
            start, end = end, end + sum(lengths[i] for i in batch)
            ids = pack.ids.new_full((len(batch), longest), self._pad_id)
            ids[inside] = pack.ids[start:end]
            found = self._module(input_ids=ids, attention_mask=inside.long())[0]
            if states is None:
                states = found.new_zeros(len(pack.ids), found.shape[-1])
            states[start:end] = found[inside]
            self.padding += ids.numel() - (end - start)
        assert states is not None, "a pack has at least one segment"
        self.tokens += end
        return states if read is None else states[read]

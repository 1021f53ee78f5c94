"""RoBERTa, XLM-R and CamemBERT on the flat stream: BERT, but the position table starts with rows that nothing has."""

from __future__ import annotations

from typing import Any

import torch

from packing.encoders.bert import BertEncoder


def build(model: Any, dtype: torch.dtype) -> BertEncoder:
    """Lay out a `RobertaModel`, `XLMRobertaModel` or `CamembertModel`.

    Their first position is one after the padding's number. Padding inside a text, which would have no position,
    can't occur: a tokenizer's special tokens are never read from text.
    """
    return BertEncoder(model, dtype, first_position=int(model.embeddings.padding_idx) + 1)

"""The forward that works for every model: the model library's own, on padded batches of like length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from packing.decode import Answers
from packing.forward import Row
from packing.overlap import Candidate
from packing.prompts import CacheCounts

BATCH_TOKENS = {"cpu": 2048, "cuda": 16384}
"""Sub-tokens in a batch, padding included. On a CPU larger batches are no faster (measured: within 5 %)."""

MOST_PADDING = 0.1
"""Share of a batch that may be padding at most; on a CPU padding costs more than a batch saves."""

LABELS_CACHED = 4096
"""Labels whose embeddings a bi-encoder remembers."""


class PaddedForward:
    """Run a `gliner` model on its own tensors' layout, with sub-tokens, words and labels given by us."""

    def __init__(self, gliner: Any, suffix: tuple[int, ...]) -> None:
        """Wrap a loaded NER model of the library, span or token-level, uni- or bi-encoder.

        Args:
            gliner: The library's object, its model on the device and in the dtype it shall run with.
            suffix: Ids that end every sequence.
        """
        config = gliner.config
        self._gliner = gliner
        self._model = gliner.model
        self._suffix = suffix
        self._device = next(gliner.model.parameters()).device
        self._pad_id = gliner.data_processor.transformer_tokenizer.pad_token_id or 0
        self._pooling = getattr(config, "subtoken_pooling", "first")
        self.padding: str | None = "the library's own forward pads"
        self.width = None if config.span_mode == "token_level" else int(config.max_width)
        self._bi_encoder = bool(getattr(config, "labels_encoder", None))
        if self._bi_encoder:
            self._label_pad_id = gliner.data_processor.labels_tokenizer.pad_token_id or 0
        self._label_embeddings: dict[tuple[int, ...], Tensor] = {}
        self._label_counts = CacheCounts(0, 0)
        self._batch_tokens = BATCH_TOKENS.get(self._device.type, BATCH_TOKENS["cpu"])

    def label_counts(self) -> CacheCounts | None:
        """See `Forward.label_counts`."""
        return self._label_counts if self._bi_encoder else None

    @torch.inference_mode()
    def candidates(self, rows: Sequence[Row]) -> list[list[Candidate]]:
        """See `Forward.candidates`."""
        answers = Answers(rows, self.width)
        for i, logits in self._scored(rows):
            words, widths, labels = logits.shape
            answers.add(logits.float().flatten(), [(words, widths, labels)], [i])
        return answers.candidates()

    @torch.inference_mode()
    def logits(self, rows: Sequence[Row]) -> list[Tensor]:
        """See `LogitForward.logits`."""
        found = dict(self._scored(rows))
        return [found[i].float() for i in range(len(rows))]

    def _scored(self, rows: Sequence[Row]) -> Iterator[tuple[int, Tensor]]:
        """Yield the rows' logits, `[W, K, C]` or `[W, C, 3]`, without the padding, and which row's they are."""
        lengths = [len(row.prompt.ids) + len(row.ids) + len(self._suffix) for row in rows]
        for batch in batches(lengths, self._batch_tokens):
            padded = self._logits([rows[i] for i in batch], max(lengths[i] for i in batch))
            for i, logits in zip(batch, padded, strict=True):
                words, labels = len(rows[i].counts), len(rows[i].prompt.labels)
                yield i, logits[:words, :labels] if self.width is None else logits[:words, :, :labels]

    def _logits(self, rows: Sequence[Row], length: int) -> Tensor:
        """Return `[B, W, K, C]` of a span model or `[B, W, C, 3]` of a token-level one, padded."""
        inputs = self._sequences(rows, length)
        word_lengths = [len(row.counts) for row in rows]
        inputs["text_lengths"] = torch.tensor(word_lengths)[:, None]
        if self.width is not None:
            inputs |= _spans(word_lengths, self.width)
        inputs = {name: value.to(self._device) for name, value in inputs.items()}
        if self._bi_encoder:
            inputs |= self._labels(rows)
        logits: Tensor = self._model(**inputs, word_lengths=word_lengths).logits
        return logits

    def _sequences(self, rows: Sequence[Row], length: int) -> dict[str, Tensor]:
        """Return ids, attention mask and the mask of words (1-based word numbers), each int64 `[B, L]`."""
        ids = np.full((len(rows), length), self._pad_id, np.int64)
        attention = np.zeros_like(ids)
        words = np.zeros_like(ids)
        for i, row in enumerate(rows):
            text = len(row.prompt.ids)
            end = text + len(row.ids)
            ids[i, :text] = row.prompt.ids
            ids[i, text:end] = row.ids
            ids[i, end : end + len(self._suffix)] = self._suffix
            attention[i, : end + len(self._suffix)] = 1
            numbers = np.arange(1, len(row.counts) + 1)
            if self._pooling in ("mean", "max"):
                words[i, text:end] = numbers.repeat(row.counts)
            else:
                last = text + row.counts.cumsum() - 1
                words[i, last if self._pooling == "last" else last - row.counts + 1] = numbers
        return {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(attention),
            "words_mask": torch.from_numpy(words),
        }

    def _labels(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """Return a bi-encoder's label embeddings, `[B, C, D]`, and which of them are padding, `[B, C]`."""
        known = self._label_embeddings
        asked = list(dict.fromkeys(ids for row in rows for ids in row.prompt.label_ids))
        missing = [ids for ids in asked if ids not in known]
        self._label_counts = self._label_counts.plus(len(asked), len(missing))
        if missing and len(known) + len(missing) > LABELS_CACHED:
            known.clear()
            missing = asked
        for batch in batches([len(ids) for ids in missing], self._batch_tokens):
            labels = [torch.tensor(missing[i], device=self._device) for i in batch]
            present = [torch.ones_like(ids) for ids in labels]
            embeddings = self._model.token_rep_layer.encode_labels(
                pad_sequence(labels, batch_first=True, padding_value=self._label_pad_id),
                pad_sequence(present, batch_first=True),
            )
            known.update(zip((missing[i] for i in batch), embeddings, strict=True))
        stacked = [torch.stack([known[ids] for ids in row.prompt.label_ids]) for row in rows]
        present = [torch.ones(len(row), dtype=torch.long, device=self._device) for row in stacked]
        return {
            "labels_embeds": pad_sequence(stacked, batch_first=True),
            "prompts_embedding_mask": pad_sequence(present, batch_first=True),
        }


def batches(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Group positions, longest first, into batches of little padding.

    A batch holds at most `max_tokens` tokens with its padding (a longer row goes alone), and none of its rows
    is shorter than the longest by more than `MOST_PADDING`.
    """
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        longest = lengths[batch[0]] if batch else lengths[i]
        if batch and ((len(batch) + 1) * longest > max_tokens or lengths[i] < (1 - MOST_PADDING) * longest):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _spans(word_lengths: Sequence[int], width: int) -> dict[str, Tensor]:
    """Return all spans of up to `width` words, `[B, W * K, 2]`, and which of them exist, `[B, W * K]`."""
    words = max(word_lengths)
    start = torch.arange(words)[:, None].expand(words, width).reshape(-1)
    last = start + torch.arange(width).repeat(words)
    exists = last < torch.tensor(word_lengths)[:, None]
    return {"span_idx": torch.stack([start, last], -1).expand(len(word_lengths), -1, -1), "span_mask": exists}

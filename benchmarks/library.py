"""The model library's own ways of reading texts, and what it says of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
from gliner import GLiNER
from gliner.infer_packing import InferencePackingConfig, pack_requests
from torch import Tensor

BATCH: Final = 8
SORTED: Final = "sorted 8"
PACKED_TOKENS: Final = 512
"""Tokens in a stream of the library's packing; 2,048 is slower (its mask is quadratic)."""

Answer = dict[tuple[int, int, str], float]
"""The entities of a text: start, end and label to score."""


class Question(NamedTuple):
    """What is asked of every text."""

    texts: list[str]
    labels: list[str]
    threshold: float


def load(folder: Path, dtype: torch.dtype) -> Any:
    """Load a model with the library, without a network."""
    gliner = GLiNER.from_pretrained(str(folder), local_files_only=True, map_location="cpu")
    gliner.model.to(dtype)
    return gliner.eval()


def sequential(gliner: Any, asked: Question) -> list[Answer]:
    """Answer one text after the other."""
    return [_answer(gliner.predict_entities(text, asked.labels, threshold=asked.threshold)) for text in asked.texts]


def padded(gliner: Any, asked: Question, batch: int = BATCH) -> list[Answer]:
    """Answer in batches of texts as they come."""
    found = gliner.inference(asked.texts, asked.labels, threshold=asked.threshold, batch_size=batch)
    return [_answer(entities) for entities in found]


def sorted_by_length(gliner: Any, asked: Question, batch: int = BATCH) -> list[Answer]:
    """Answer in batches of texts of like length."""
    order = by_length(asked.texts)
    found = padded(gliner, asked._replace(texts=[asked.texts[i] for i in order]), batch)
    return _back(found, order)


def packed(gliner: Any, asked: Question, batch: int = BATCH) -> list[Answer]:
    """Answer with the library's own packing of a batch's texts, which are of like length."""
    order = by_length(asked.texts)
    found = gliner.inference(
        [asked.texts[i] for i in order],
        asked.labels,
        threshold=asked.threshold,
        batch_size=batch,
        packing_config=InferencePackingConfig(max_length=PACKED_TOKENS),
    )
    return _back([_answer(entities) for entities in found], order)


WAYS: Final[Mapping[str, Callable[[Any, Question], list[Answer]]]] = {
    "sequential": sequential,
    SORTED: sorted_by_length,
    "padded 8": padded,
    "its packing": packed,
}

BETTER: Final = ("sequential", SORTED, "its packing")
"""Those of the ways that may be the fastest."""


@torch.inference_mode()
def logits(gliner: Any, texts: Sequence[str], labels: Sequence[str]) -> list[Tensor]:
    """Run one batch and return the logits of each text, float32 `[W, K, C]`, without the padding."""
    prepared = gliner.prepare_batch(list(texts), list(labels))
    batch = gliner.collate_batch(prepared["input_x"], prepared["entity_types"], gliner.create_collator())
    scores = gliner.run_batch(batch, move_to_device=True).logits
    return [row[: len(words)].float() for row, words in zip(scores, prepared["tokens"], strict=True)]


def logits_alone(gliner: Any, text: str, labels: Sequence[str]) -> Tensor:
    """Return the logits of a text by itself, float32 `[W, K, C]`."""
    return logits(gliner, [text], labels)[0]


def reads_whole(gliner: Any, text: str, labels: Sequence[str]) -> bool:
    """Whether the library reads all of a text; what is beyond its limits it cuts, and says so at most in a warning."""
    words = len(list(gliner.data_processor.words_splitter(text)))
    if not 0 < words <= gliner.config.max_len:
        return False
    prepared = gliner.prepare_batch([text], list(labels))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batch = gliner.collate_batch(prepared["input_x"], prepared["entity_types"], gliner.create_collator())
    # A cut sequence has the full length; the last word may lose a part of its sub-tokens alone.
    fits = batch["input_ids"].shape[1] < gliner.data_processor.transformer_tokenizer.model_max_length
    return bool(fits and int(batch["words_mask"].max()) == words)


def by_length(texts: Sequence[str]) -> list[int]:
    """Return the positions of texts, the shortest first."""
    return sorted(range(len(texts)), key=lambda i: len(texts[i]))


def packed_shape(lengths: Sequence[int]) -> tuple[int, int]:
    """Return how many streams of how many tokens the library's packing makes of a batch."""
    shape = pack_requests(
        [{"input_ids": [0] * length} for length in lengths], InferencePackingConfig(max_length=PACKED_TOKENS), 0
    ).input_ids.shape
    return shape[0], shape[1]


def _answer(entities: Sequence[Mapping[str, Any]]) -> Answer:
    return {(entity["start"], entity["end"], entity["label"]): entity["score"] for entity in entities}


def _back(found: Sequence[Answer], order: Sequence[int]) -> list[Answer]:
    answers: list[Answer] = [{}] * len(order)
    for i, answer in zip(order, found, strict=True):
        answers[i] = answer
    return answers

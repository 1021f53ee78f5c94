"""The library's span loss, computed for a fraction of its cost.

gliner's markerV0 head forms a vector of every span, `W2 relu(W1 [start; end] + b1) + b2`, and then takes its
product with each label. `W1 [start; end]` splits into a part of the start and a part of the end, each needed
once a word; and `W2` can be folded into the labels, of which there are far fewer than spans. Same scores, same
gradients, and no matrix product is left that runs over spans times width.
"""

from typing import Any

import torch
from gliner import GLiNER
from torch.nn import functional


def span_scores(model: GLiNER, inputs: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Score spans against labels: `[B, L, K, C]` logits for L words, K widths, C labels, and `[B, C]`, which are real.

    `inputs` is what gliner's collator gives. A span that ends past the words gets a score without meaning;
    the collator's `span_mask` says which. Dropout inside the head's last layers is not applied.
    """
    core = model.model
    seen = core.get_representations(
        inputs["input_ids"], inputs["attention_mask"], inputs["text_lengths"], inputs["words_mask"]
    )
    marker = core.span_rep_layer.span_rep_layer
    first, last = marker.out_project[0], marker.out_project[-1]
    dim = marker.out_project[-1].out_features
    words = seen.words_embedding  # [B, L, D]
    starts = functional.linear(marker.project_start(words).relu(), first.weight[:, :dim], first.bias)  # [B, L, 4D]
    ends = functional.linear(marker.project_end(words).relu(), first.weight[:, dim:])  # [B, L, 4D]

    labels = core.prompt_rep_layer(seen.prompts_embedding)  # [B, C, D]
    weights = torch.matmul(labels, last.weight).transpose(1, 2)  # [B, 4D, C]
    bias = torch.matmul(labels, last.bias)[:, None]  # [B, 1, C]

    length = words.shape[1]
    padded = functional.pad(ends, (0, 0, 0, marker.max_width - 1))
    widths = [
        torch.matmul((starts + padded[:, width : width + length]).relu(), weights) + bias
        for width in range(marker.max_width)
    ]
    return torch.stack(widths, dim=2), seen.prompts_embedding_mask


def span_loss(model: GLiNER, inputs: dict[str, Any], alpha: float, gamma: float) -> torch.Tensor:
    """Sum the focal loss over all spans and labels of a batch: a scalar, float32."""
    scores, real_labels = span_scores(model, inputs)
    loss: torch.Tensor = model.model.loss(
        scores.float(), inputs["labels"], real_labels, inputs["span_mask"], alpha=alpha, gamma=gamma, reduction="sum"
    )
    return loss

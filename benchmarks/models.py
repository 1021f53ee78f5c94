"""Models of published shapes with random weights, built without a network and kept."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from gliner import GLiNER, GLiNERConfig
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoModel, DebertaV2Config, PreTrainedTokenizerFast

from benchmarks.library import logits_alone

SHAPES: Final[dict[str, dict[str, Any]]] = {
    "small": {"encoder": {"num_hidden_layers": 6}, "hidden_size": 512, "scale": 2.0, "tokens": 0},
    "base": {"encoder": {"num_hidden_layers": 12}, "hidden_size": 512, "scale": 1.4, "tokens": 128_100},
}
"""By size, as the published `gliner_small-v2.1` and `gliner_medium-v2.1` (on DeBERTa-v3-base) are.

`scale` is a factor on the random weights, with which attention is neither even nor all on one token; the more layers,
the less, as they multiply what is rounded. `tokens` are those that the tokenizer has at least; the base one has as many
as the published one, because its memory is held against its weights.
"""

_ENCODER: Final[dict[str, Any]] = {
    "hidden_size": 768,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "relative_attention": True,
    "position_buckets": 256,
    "max_relative_positions": -1,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "type_vocab_size": 0,
    "pad_token_id": 0,
}
_GLINER: Final[dict[str, Any]] = {
    "max_len": 384,
    "max_width": 12,
    "num_rnn_layers": 1,
    "dropout": 0.0,
    "span_mode": "markerV0",
}
_PIECES: Final = 30_000
"""Tokens that are learnt from the texts; the others never occur."""

_MODEL_MAX_LENGTH: Final = 512

_SPREAD: Final = 2.0
"""The logits' standard deviation; random weights as they come give .01, which would hide errors."""

_NEVER: Final = -1e4
"""Logarithm of the probability of a piece that no text shall hold."""

_RECIPE: Final = 1  # raised when what is built here changes


def cache_folder() -> Path:
    """Return where built models lie: `GLISTREAM_BENCHMARK_CACHE` where set, else a folder in the user's cache."""
    if chosen := os.environ.get("GLISTREAM_BENCHMARK_CACHE"):
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "glistream" / "benchmarks"


def random_model(size: str, texts: Sequence[str], cache: Path) -> Path:
    """Return the folder of a model of a size in `SHAPES`, built at the first call.

    Args:
        size: A key of `SHAPES`.
        texts: What its tokenizer is trained on.
        cache: Where it is kept.
    """
    shape = SHAPES[size]
    settings = json.dumps([_RECIPE, shape, _ENCODER, _GLINER, _PIECES, _MODEL_MAX_LENGTH, _SPREAD])
    digest = hashlib.sha256(settings.encode())
    for text in texts:
        digest.update(text.encode(errors="replace"))
    folder = cache / f"deberta-{size}-{digest.hexdigest()[:12]}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".building-") as temporary:
            fresh = Path(temporary) / size
            _build(fresh, shape, texts)
            fresh.rename(folder)
    return folder


def _build(folder: Path, shape: dict[str, Any], texts: Sequence[str]) -> None:
    torch.manual_seed(0)
    encoder = folder / "encoder"
    tokenizer = _tokenizer(texts, shape["tokens"])
    config = DebertaV2Config(**_ENCODER, **shape["encoder"], vocab_size=len(tokenizer))
    AutoModel.from_config(config).save_pretrained(encoder)  # type: ignore[no-untyped-call]
    tokenizer.save_pretrained(encoder)
    wanted = GLiNERConfig(model_name=str(encoder), hidden_size=shape["hidden_size"], **_GLINER)
    gliner = GLiNER.from_config(wanted, backbone_from_pretrained=True, local_files_only=True)
    _spread(gliner, texts, shape["scale"])
    gliner.save_pretrained(folder, safe_serialization=True)
    saved = folder / "gliner_config.json"
    saved.write_text(json.dumps(json.loads(saved.read_text()) | {"model_name": "random-deberta"}))
    shutil.rmtree(encoder)


@torch.no_grad()
def _spread(gliner: Any, texts: Iterable[str], scale: float) -> None:
    """Scale the weights so that the model tells spans apart."""
    for name, parameter in gliner.model.named_parameters():
        if parameter.dim() > 1 and "embeddings" not in name:
            parameter.mul_(scale)
    gliner.eval()
    some = [text for text in texts if 80 < len(text) < 400][:16]
    logits = torch.cat([logits_alone(gliner, text, ["person", "location"]).flatten() for text in some])
    last = gliner.model.prompt_rep_layer[-1]
    factor = _SPREAD / logits.std()
    last.weight.mul_(factor)
    last.bias.mul_(factor)


def _tokenizer(texts: Iterable[str], tokens: int) -> PreTrainedTokenizerFast:
    """Train one of DeBERTa-v3's kind, of at least so many tokens: unigram pieces, spaces kept as a mark."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=_PIECES,
        unk_token="[UNK]",
        special_tokens=["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    learnt = json.loads(tokenizer.to_str())
    learnt["model"]["vocab"] += [[f"[unused{i}]", _NEVER] for i in range(tokens - tokenizer.get_vocab_size())]
    tokenizer = Tokenizer.from_str(json.dumps(learnt))
    frame = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=frame
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        model_max_length=_MODEL_MAX_LENGTH,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )

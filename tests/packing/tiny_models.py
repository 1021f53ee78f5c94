"""Tiny GLiNER models with random weights, built without a network, saved as ordinary model folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import torch
from gliner import GLiNER, GLiNERConfig
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoModel, BertConfig, DebertaV2Config, PretrainedConfig, PreTrainedTokenizerFast

Family = Literal["bert", "deberta-v2"]

DELETED = "[\\x{00}\\x{AD}\\x{200B}-\\x{200F}\\x{FE0F}\\x{FEFF}\\x{FFFD}]"
"""What the tokenizers make no sub-token of, as a regular expression; BERT's own normaliser deletes these."""

CORPUS = [
    "Angela Merkel met Tim Cook in Berlin on Monday, and they spoke about Apple's new office.",
    "The United Nations opened a conference in Geneva; Maria Santos of Brazil gave the first speech.",
    "Order 4711 arrived late. Customer service at ACME Corp. answered within two hours!",
    "In March 2024 the Bank of Japan raised rates, said Reuters, for the first time since 2007.",
    "Zoë's café in São Paulo - well-known for its cold_brew - closes at 18:30 (email: hi@cafe.example).",
    "person organization location date product event city country",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z",
]


def build(
    folder: Path,
    family: Family,
    *,
    token_level: bool = False,
    bi_encoder: bool = False,
    max_len: int = 384,
    max_width: int = 12,
    model_max_length: int | None = None,
    num_rnn_layers: int = 1,
    scale: float = 2.5,
    seed: int = 0,
) -> Path:
    """Save a tiny model in `folder` and return it.

    Args:
        folder: Made where absent.
        family: `bert` has a table of 512 positions and a WordPiece tokenizer that deletes control characters;
            `deberta-v2` has relative positions alone and a Unigram tokenizer.
        token_level: Score words as start, end and inside rather than spans.
        bi_encoder: Read the labels with an encoder of their own.
        max_len: Most words of a text.
        max_width: Most words of a span.
        model_max_length: The tokenizer's own limit; None leaves it unstated.
        num_rnn_layers: LSTM layers over the words.
        scale: Factor on the weights: unscaled random weights score everything alike.
        seed: Of the random weights.
    """
    torch.manual_seed(seed)
    encoder = folder / "encoder"
    tokenizer = _wordpiece() if family == "bert" else _unigram()
    if model_max_length is not None:
        tokenizer.model_max_length = model_max_length
    model = AutoModel.from_config(_encoder_config(family, len(tokenizer)))  # type: ignore[no-untyped-call]
    model.save_pretrained(encoder)
    tokenizer.save_pretrained(encoder)
    config = GLiNERConfig(
        model_name=str(encoder),
        hidden_size=32,
        max_width=max_width,
        max_len=max_len,
        num_rnn_layers=num_rnn_layers,
        dropout=0.0,
        span_mode="token_level" if token_level else "markerV0",
        labels_encoder=str(encoder) if bi_encoder else None,
    )
    gliner = GLiNER.from_config(config, backbone_from_pretrained=True, local_files_only=True)
    with torch.no_grad():
        for name, parameter in gliner.model.named_parameters():
            if parameter.dim() > 1 and "embeddings" not in name:
                parameter.mul_(scale)
    gliner.save_pretrained(folder, safe_serialization=True)
    saved = json.loads((folder / "gliner_config.json").read_text())
    saved["model_name"] = family
    (folder / "gliner_config.json").write_text(json.dumps(saved))
    return folder


def _encoder_config(family: Family, vocabulary: int) -> PretrainedConfig:
    shape: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 512,
        "pad_token_id": 0,
    }
    if family == "bert":
        return BertConfig(**shape)
    relative: dict[str, Any] = {
        "relative_attention": True,
        "position_buckets": 64,
        "max_relative_positions": -1,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "type_vocab_size": 0,
    }
    return DebertaV2Config(**shape, **relative)


def _wordpiece() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=400, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return _finish(tokenizer, trainer)


def _unigram() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(DELETED), ""), normalizers.Nmt(), normalizers.NFKC()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=300,
        unk_token="[UNK]",
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        show_progress=False,
    )
    return _finish(tokenizer, trainer)


def _finish(tokenizer: Tokenizer, trainer: trainers.Trainer) -> PreTrainedTokenizerFast:
    tokenizer.train_from_iterator(CORPUS * 4, trainer)
    cls, sep = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", cls), ("[SEP]", sep)],
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )

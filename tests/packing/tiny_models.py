"""Tiny GLiNER models with random weights, built without a network, saved as ordinary model folders."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from gliner import GLiNER, GLiNERConfig
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoConfig,
    AutoModel,
    PretrainedConfig,
    PreTrainedTokenizerFast,
    RobertaTokenizer,
    XLMRobertaTokenizer,
)

Family = Literal["bert", "roberta", "xlm-roberta", "modernbert", "deberta-v2"]

ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
"""In the order of their ids."""

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
    hidden_size: int = 32,
    subtoken_pooling: str = "first",
    embed_ent_token: bool = True,
    encoder: Mapping[str, Any] | None = None,
    biases: float = 0.0,
    scale: float = 2.5,
    seed: int = 0,
) -> Path:
    """Save a tiny model in `folder` and return it.

    Args:
        folder: Made where absent.
        family: `bert` has a table of 512 positions and a WordPiece tokenizer that deletes control characters;
            `roberta` and `xlm-roberta` have one whose first position is 2, with a byte-level BPE tokenizer and a
            Unigram one; `modernbert` has rotary positions, local attention in every layer but the first, with a
            window of 16 tokens, and a byte-level BPE tokenizer; `deberta-v2` has relative positions alone and a
            Unigram tokenizer.
        token_level: Score words as start, end and inside rather than spans.
        bi_encoder: Read the labels with an encoder of their own.
        max_len: Most words of a text.
        max_width: Most words of a span.
        model_max_length: The tokenizer's own limit; None leaves it unstated.
        num_rnn_layers: LSTM layers over the words.
        hidden_size: Of the vectors scored; if it isn't the encoder's, 32, a projection lies between.
        subtoken_pooling: How a word's sub-tokens become one vector.
        embed_ent_token: Take a label's vector from its marker rather than from its first sub-token.
        encoder: Fields of the encoder's configuration that shall differ.
        biases: Standard deviation of what is added to the encoder's biases and norms: unchanged they are 0 and 1,
            which hides whether they are there.
        scale: Factor on the weights: unscaled random weights score everything alike.
        seed: Of the random weights.
    """
    torch.manual_seed(seed)
    base = folder / "encoder"
    tokenizer = TOKENIZERS[family]()
    if model_max_length is not None:
        tokenizer.model_max_length = model_max_length
    model = AutoModel.from_config(encoder_config(family, len(tokenizer), **(encoder or {})))  # type: ignore[no-untyped-call]
    if biases:
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 1:
                    parameter.add_(torch.randn_like(parameter), alpha=biases)
    model.save_pretrained(base)
    tokenizer.save_pretrained(base)
    config = GLiNERConfig(
        model_name=str(base),
        hidden_size=hidden_size,
        max_width=max_width,
        max_len=max_len,
        num_rnn_layers=num_rnn_layers,
        subtoken_pooling=subtoken_pooling,
        embed_ent_token=embed_ent_token,
        dropout=0.0,
        span_mode="token_level" if token_level else "markerV0",
        labels_encoder=str(base) if bi_encoder else None,
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


def encoder_config(family: Family | Literal["camembert"], vocabulary: int, **changed: Any) -> PretrainedConfig:
    """Return the configuration of a tiny encoder: 2 layers (ModernBERT 3) of 4 heads, 32 wide."""
    shape: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 512,
        "pad_token_id": 0,
    }
    if family in ("roberta", "xlm-roberta", "camembert"):
        shape |= {"pad_token_id": 1, "max_position_embeddings": 514, "bos_token_id": 0, "eos_token_id": 2}
        shape["type_vocab_size"] = 1
    elif family == "modernbert":
        special = {"bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
        shape |= {"num_hidden_layers": 3, "local_attention": 16, "max_position_embeddings": 8192, **special}
    elif family == "deberta-v2":
        shape |= {
            "relative_attention": True,
            "position_buckets": 64,
            "max_relative_positions": -1,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_biased_input": False,
            "type_vocab_size": 0,
        }
    return AutoConfig.for_model(family, **(shape | changed))


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


def _byte_level() -> PreTrainedTokenizerFast:
    special_tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer, trainer = _byte_pairs(special_tokens)
    return _finish(tokenizer, trainer)


def _roberta() -> RobertaTokenizer:
    tokenizer, trainer = _byte_pairs(ROBERTA_SPECIAL)
    tokenizer.train_from_iterator(CORPUS * 4, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges: Any = [tuple(merge) for merge in model["merges"]]
    return RobertaTokenizer(vocab=model["vocab"], merges=merges, add_prefix_space=True)


def _byte_pairs(special_tokens: list[str]) -> tuple[Tokenizer, trainers.Trainer]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=special_tokens,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    return tokenizer, trainer


def _xlm_roberta() -> XLMRobertaTokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    trainer = trainers.UnigramTrainer(
        vocab_size=300, unk_token="<unk>", special_tokens=ROBERTA_SPECIAL, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS * 4, trainer)
    pieces = [tuple(piece) for piece in json.loads(tokenizer.to_str())["model"]["vocab"]]
    return XLMRobertaTokenizer(vocab=pieces)


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


TOKENIZERS: dict[Family, Callable[[], PreTrainedTokenizerFast]] = {
    "bert": _wordpiece,
    "roberta": _roberta,
    "xlm-roberta": _xlm_roberta,
    "modernbert": _byte_level,
    "deberta-v2": _unigram,
}

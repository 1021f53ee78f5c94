"""Cut a WordPiece vocabulary down to the pieces that pay for their place in the file.

A piece costs 768 bytes of a float16 embedding of 384 dimensions. BERT's list is in the order of how frequent the
pieces were, so the last ones go; a word that held one is spelled with shorter pieces.
"""

import json
from typing import Any, cast

import torch
from tokenizers import Tokenizer

CONTINUATION = "##"
"""What WordPiece writes before a piece that does not start a word."""


def choose_pieces(vocabulary: dict[str, int], size: int) -> list[str]:
    """Choose which pieces of a vocabulary stay, in the order of their old ids.

    Special tokens, signs and Latin letters always stay, so that no word of these becomes unknown; then come the
    pieces of the lowest ids. Unused ones go.

    Raises ValueError where `size` has no room for those that always stay.
    """

    def stays(piece: str) -> bool:
        bare = piece.removeprefix(CONTINUATION)
        special = piece.startswith("[") and piece.endswith("]")
        latin = len(bare) == 1 and (not bare.isalpha() or ord(bare) < 0x250)  # up to Latin Extended-B
        return special or latin

    used = {piece: index for piece, index in vocabulary.items() if not piece.startswith("[unused")}
    ranked = sorted(used, key=lambda piece: (not stays(piece), used[piece]))
    if size < len(ranked) and stays(ranked[size]):
        raise ValueError(f"a vocabulary of {size} pieces has no room for those that always stay")
    return sorted(ranked[:size], key=used.__getitem__)


def cut_tokenizer(tokenizer: Tokenizer, pieces: list[str]) -> Tokenizer:
    """Build the same tokenizer with only these pieces, numbered in their order, without truncation and padding.

    Raises KeyError where a special token of the tokenizer is not among the pieces.
    """
    state = cast("dict[str, Any]", json.loads(tokenizer.to_str()))
    new_ids = {piece: index for index, piece in enumerate(pieces)}
    state["model"]["vocab"] = new_ids
    state["added_tokens"] = [{**t, "id": new_ids[t["content"]]} for t in state["added_tokens"]]
    for name, token in state["post_processor"]["special_tokens"].items():
        state["post_processor"]["special_tokens"][name] = {**token, "ids": [new_ids[name]]}
    # The encoder's package ships a tokenizer that cuts and pads every text to 128 pieces.
    state["truncation"] = state["padding"] = None
    return Tokenizer.from_str(json.dumps(state))


def cut_embedding(weight: torch.Tensor, vocabulary: dict[str, int], pieces: list[str]) -> torch.Tensor:
    """Take the rows of the pieces, in their order: `[V, H]` -> `[len(pieces), H]`, same dtype."""
    return weight[torch.tensor([vocabulary[piece] for piece in pieces])].clone()

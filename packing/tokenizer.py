"""Words -> sub-tokens, with a private copy of the model's tokenizer."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from packing.errors import ModelError

IntArray = NDArray[np.int32]

_SURROGATE = re.compile("[\ud800-\udfff]")


def legible(text: str) -> str:
    """Put a space for each lone surrogate, which no tokenizer takes; all offsets stay."""
    return _SURROGATE.sub(" ", text)


class SubTokenizer:
    """Encode words one by one: nothing is padded, nothing is cut, no special token is read from text.

    The model library switches padding and truncation on in the tokenizer it shares with its callers; this
    copy is untouched by that, and immutable, so any thread may use it.

    Attributes:
        prefix: Ids that start every sequence, such as `[CLS]`.
        suffix: Ids that end every sequence, such as `[SEP]`.
    """

    def __init__(self, tokenizer: Any, markers: Sequence[str]) -> None:
        """Copy a fast `transformers` tokenizer.

        Args:
            tokenizer: The model's tokenizer.
            markers: The model's own prompt tokens; in a label or a text they are ordinary characters.

        Raises:
            ModelError: It isn't seen how the tokenizer starts and ends a sequence.
        """
        serialised = tokenizer.backend_tokenizer.to_str()
        # Not kept: a tokenizer of 128,000 pieces takes 93 MiB.
        marking = _unlimited(serialised)
        self._markers = {
            token: tuple(marking.encode([token], is_pretokenized=True, add_special_tokens=False).ids)
            for token in markers
        }
        probe = marking.encode(["a"], is_pretokenized=True, add_special_tokens=False).ids
        framed = marking.encode(["a"], is_pretokenized=True).ids
        del marking
        self._literal = _unlimited(_with_special_apart(serialised, markers))
        self._literal.encode_special_tokens = True
        at = next((i for i in range(len(framed)) if probe and framed[i : i + len(probe)] == probe), None)
        if at is None:
            raise ModelError("the tokenizer doesn't give a word the same sub-tokens inside a sequence as alone")
        self.prefix: tuple[int, ...] = tuple(framed[:at])
        self.suffix: tuple[int, ...] = tuple(framed[at + len(probe) :])

    def marker(self, token: str) -> tuple[int, ...]:
        """Return the ids of one of the prompt tokens; several if the vocabulary lacks it."""
        return self._markers[token]

    def encode(self, words: Sequence[str]) -> tuple[IntArray, IntArray]:
        """Return the words' sub-tokens, `ids[T]`, and how many each word has, `counts[W]`.

        A word's sub-tokens don't depend on its neighbours. A word of characters that the tokenizer deletes
        has none.
        """
        if not words:
            return np.empty(0, np.int32), np.empty(0, np.int32)
        encoding = self._literal.encode(words, is_pretokenized=True, add_special_tokens=False)
        ids = np.array(encoding.ids, np.int32)
        counts = np.bincount(np.array(encoding.word_ids, np.int64), minlength=len(words))
        return ids, counts.astype(np.int32)


def _unlimited(serialised: str) -> Tokenizer:
    copy = Tokenizer.from_str(serialised)
    copy.no_padding()
    copy.no_truncation()
    return copy


def _with_special_apart(serialised: str, markers: Sequence[str]) -> str:
    """Return the tokenizer with nothing special to be found in text once `encode_special_tokens` is on."""
    state = json.loads(serialised)
    # Older models carry their markers as ordinary added tokens, which `encode_special_tokens` doesn't cover.
    for token in state["added_tokens"]:
        token["special"] = token["special"] or token["content"] in markers
    if state["model"]["type"] == "Unigram":
        # Its vocabulary holds the special tokens too, and they would match like any piece. A space never does:
        # SentencePiece writes it as another character.
        special = {token["content"] for token in state["added_tokens"] if token["special"]}
        pieces = state["model"]["vocab"]
        found = {piece for piece, _ in pieces} & special
        state["model"]["vocab"] = [[f" {piece}" if piece in found else piece, score] for piece, score in pieces]
        state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] not in found]
    return json.dumps(state)

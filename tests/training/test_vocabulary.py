import pytest
import torch
from tokenizers import Tokenizer

from training.model import encoder_folder
from training.vocabulary import choose_pieces, cut_embedding, cut_tokenizer

TEXTS = ["Tim Cook met the French king in Berlin.", "Prices of café tables rose by 5 % on Monday!"]


@pytest.fixture(scope="module")
def full() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(encoder_folder() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


@pytest.fixture(scope="module")
def pieces(full: Tokenizer) -> list[str]:
    return choose_pieces(full.get_vocab(), 9_000)


def test_covered_texts_are_spelled_as_before(full: Tokenizer, pieces: list[str]) -> None:
    cut = cut_tokenizer(full, pieces)
    for text in TEXTS:
        assert cut.encode(text).tokens == full.encode(text).tokens


def test_a_piece_keeps_its_embedding_under_its_new_id(full: Tokenizer, pieces: list[str]) -> None:
    vocabulary = full.get_vocab()
    weight = torch.arange(len(vocabulary), dtype=torch.float32)[:, None]
    rows = cut_embedding(weight, vocabulary, pieces)
    cut = cut_tokenizer(full, pieces)
    for text in TEXTS:
        assert rows[cut.encode(text).ids, 0].tolist() == full.encode(text).ids


def test_rare_latin_words_are_spelled_out_and_stay_known(full: Tokenizer, pieces: list[str]) -> None:
    cut = cut_tokenizer(full, pieces)
    text = "zugzwang, Ørsted, naïveté, photosynthesis: 5 €"
    encoding = cut.encode(text)
    assert "[UNK]" not in encoding.tokens
    assert len(encoding.tokens) > len(full.encode(text).tokens)


def test_a_text_longer_than_the_packages_limit_is_not_cut(full: Tokenizer, pieces: list[str]) -> None:
    assert len(cut_tokenizer(full, pieces).encode("berlin " * 400).ids) == 402


def test_the_most_frequent_pieces_stay(full: Tokenizer, pieces: list[str]) -> None:
    assert len(pieces) == 9_000
    assert {"berlin", "monday", "[CLS]", "[UNK]", "##a", "q", "##ø"} <= set(pieces)
    assert not any(piece.startswith("[unused") for piece in pieces)


def test_a_vocabulary_too_small_for_the_characters_is_refused(full: Tokenizer) -> None:
    with pytest.raises(ValueError, match="always stay"):
        choose_pieces(full.get_vocab(), 50)

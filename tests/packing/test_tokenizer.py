from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from transformers import AutoTokenizer

from packing.tokenizer import SubTokenizer
from tests.packing import tiny_models
from tests.packing.texts import ORDINARY

MARKERS = ["<<ENT>>", "<<SEP>>"]
FAMILIES = get_args(tiny_models.Family)


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a family's tokenizer as the library makes it from a folder, markers added, and our copy."""

    @cache
    def by_family(family: tiny_models.Family) -> tuple[Any, SubTokenizer]:
        folder: Path = tmp_path_factory.mktemp(family)
        tiny_models.TOKENIZERS[family]().save_pretrained(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        tokenizer.add_tokens(MARKERS, special_tokens=True)
        return tokenizer, SubTokenizer(tokenizer, MARKERS)

    return by_family


@pytest.mark.parametrize("family", FAMILIES)
def test_sub_tokens_are_the_librarys(load: Any, family: tiny_models.Family) -> None:
    tokenizer, ours = load(family)
    for text in [*ORDINARY, "x", "São 日本 ! well-known 4711"]:
        words = text.split()
        theirs = tokenizer(words, is_split_into_words=True)
        ids, counts = ours.encode(words)
        assert [*ours.prefix, *ids.tolist(), *ours.suffix] == theirs["input_ids"]
        numbers = [number for number in theirs.word_ids() if number is not None]
        assert [numbers.count(number) for number in range(len(words))] == counts.tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_prefix_and_the_suffix_are_the_familys(load: Any, family: tiny_models.Family) -> None:
    tokenizer, ours = load(family)
    assert tokenizer.convert_ids_to_tokens([*ours.prefix, *ours.suffix]) == [tokenizer.cls_token, tokenizer.sep_token]
    assert ours.marker("<<ENT>>") == (tokenizer.convert_tokens_to_ids("<<ENT>>"),)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_word_has_its_sub_tokens_wherever_it_stands(load: Any, family: tiny_models.Family) -> None:
    _, ours = load(family)
    words = ["Berlin", "met", "Zoë", "x"]
    together, _ = ours.encode(words)
    alone = [int(i) for word in words for i in ours.encode([word])[0]]
    assert together.tolist() == alone


@pytest.mark.parametrize("family", FAMILIES)
def test_special_tokens_are_never_read_from_text(load: Any, family: tiny_models.Family) -> None:
    tokenizer, ours = load(family)
    special = [token for token in tokenizer.all_special_tokens if token != tokenizer.unk_token]
    assert len(special) >= 4
    for word in [*special, *MARKERS, *(f"a{token}b" for token in special)]:
        ids, counts = ours.encode([word, "x"])
        assert not {*ids.tolist()} & {*tokenizer.convert_tokens_to_ids([*special, *MARKERS])}
        assert counts.sum() == len(ids)

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from gliner import GLiNER
from torch import Tensor

from packing.encoders.unpackable import Unpackable
from packing.forward import Row
from packing.heads import Head, build
from packing.padded_forward import PaddedForward
from packing.self_test import existing
from tests.packing import tiny_models
from tests.packing.heads.rows import SUFFIX, encode, packed_rows, random_prompt, random_row, random_rows

SHAPES = [(17, 3), (1, 1), (40, 2), (1, 4), (5, 130), (12, 5), (13, 1), (2, 2), (90, 3), (40, 6), (3, 1)]
"""Words and labels: one word, one label, fewer words than a span may have, as many, hundreds of labels."""

KINDS: dict[str, dict[str, Any]] = {
    "span": {},
    "token": {"token_level": True},
    "bi span": {"bi_encoder": True},
    "bi token": {"bi_encoder": True, "token_level": True},
}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    **KINDS,
    "span, no LSTM": {"num_rnn_layers": 0},
    "span, two LSTM layers": {"num_rnn_layers": 2},
    "token, two LSTM layers": {"num_rnn_layers": 2, "token_level": True},
    "span, last": {"subtoken_pooling": "last"},
    "span, mean": {"subtoken_pooling": "mean"},
    "span, max": {"subtoken_pooling": "max"},
    "token, max": {"subtoken_pooling": "max", "token_level": True},
    "bi span, mean": {"subtoken_pooling": "mean", "bi_encoder": True},
    "span, labels by their text": {"embed_ent_token": False},
    "token, labels by their text": {"embed_ent_token": False, "token_level": True},
    "span, projected": {"hidden_size": 48},
    "span, projected, mean": {"hidden_size": 48, "subtoken_pooling": "mean"},
    "span, projected, max": {"hidden_size": 48, "subtoken_pooling": "max"},
    "bi span, projected": {"hidden_size": 48, "bi_encoder": True},
    "bi token, projected": {"hidden_size": 48, "bi_encoder": True, "token_level": True},
}

Library = Callable[[str], Any]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Return the library's model of a configuration, its logits' standard deviation at least 1."""

    @cache
    def by_name(name: str) -> Any:
        folder = tiny_models.build(tmp_path_factory.mktemp("head"), "bert", max_width=12, **CONFIGURATIONS[name])
        gliner = GLiNER.from_pretrained(str(folder), local_files_only=True)
        gliner.model.eval()
        with torch.no_grad():
            for parameter_name, parameter in gliner.model.named_parameters():
                if parameter.dim() == 1 and "bert_layer" not in parameter_name:
                    parameter.add_(torch.randn_like(parameter), alpha=0.3)
            last = gliner.model.scorer.out_mlp if gliner.config.span_mode == "token_level" else None
            last = (last or gliner.model.prompt_rep_layer)[3]
            deviation = float(expected(gliner, random_rows(gliner, [(30, 3)]))[0].std())
            last.weight.mul_(2 / deviation)
            last.bias.mul_(2 / deviation)
        return gliner

    return by_name


def expected(gliner: Any, rows: list[Row]) -> list[Tensor]:
    forward = PaddedForward(gliner, SUFFIX)
    return [existing(logits, forward.width) for row in rows for logits in forward.logits([row])]


def head_of(gliner: Any, dtype: torch.dtype = torch.float32) -> Head:
    labels = getattr(gliner.model.token_rep_layer, "labels_encoder", None)
    return build(gliner, dtype, None if labels is None else lambda pack: encode(labels.model, pack).to(dtype))


@torch.inference_mode()
def scored(gliner: Any, head: Head, rows: list[Row], dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Return the logits of what exists, row by row, from one pack."""
    packed, ordered = packed_rows(rows)
    hidden = encode(gliner.model.token_rep_layer.bert_layer.model, packed).to(dtype)
    layout = head.layout(packed, ordered)
    flat, shapes = head(hidden[torch.from_numpy(layout.read)], layout, ordered)
    assert flat.dtype == torch.float32
    own = flat.split_with_sizes([int(np.prod(shape)) for shape in shapes])
    logits = {i: one.view(shape) for i, one, shape in zip(packed.order, own, shapes, strict=True)}
    return [existing(logits[i], head.width) for i in range(len(rows))]


def difference(ours: list[Tensor], theirs: list[Tensor]) -> float:
    """Return the largest difference in standard deviations of the logits, which are at least 1."""
    deviation = torch.cat(theirs).std()
    assert deviation >= 1
    return float((torch.cat(ours) - torch.cat(theirs)).abs().max() / deviation)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_pack_of_ragged_rows_gives_each_the_librarys_own_logits(library: Library, name: str) -> None:
    gliner = library(name)
    rows = random_rows(gliner, SHAPES)
    assert difference(scored(gliner, head_of(gliner), rows), expected(gliner, rows)) < 1e-4


@pytest.mark.parametrize("name", KINDS)
def test_company_changes_nothing(library: Library, name: str) -> None:
    gliner = library(name)
    head = head_of(gliner)
    rows = random_rows(gliner, SHAPES)
    alone = [logits for row in rows for logits in scored(gliner, head, [row])]
    assert difference(scored(gliner, head, rows), alone) < 1e-5


@pytest.mark.parametrize("name", KINDS)
def test_no_module_of_the_librarys_model_is_kept(library: Library, name: str) -> None:
    gliner = copy.deepcopy(library(name))
    head = head_of(gliner)
    encoders = ("bert_layer", "labels_encoder")
    modules = {
        module_name: weakref.ref(module)
        for module_name, module in gliner.model.named_modules()
        if not any(encoder in module_name for encoder in encoders)
    }
    del gliner
    gc.collect()
    assert [module_name for module_name, module in modules.items() if module() is not None] == []
    assert head.width == (None if "token" in name else 12)


@pytest.mark.parametrize("name", ["span", "token", "span, two LSTM layers"])
def test_an_lstm_with_its_directions_swapped_would_be_noticed(library: Library, name: str) -> None:
    gliner = library(name)
    mutant = copy.deepcopy(gliner)
    state = gliner.model.rnn.lstm.state_dict()
    swap = {key: key.removesuffix("_reverse") if key.endswith("_reverse") else f"{key}_reverse" for key in state}
    mutant.model.rnn.lstm.load_state_dict({key: state[swap[key]] for key in state})
    rows = random_rows(gliner, SHAPES)
    assert difference(scored(gliner, head_of(mutant), rows), expected(gliner, rows)) > 1e-2


@pytest.mark.parametrize("name", ["span", "token"])
@pytest.mark.parametrize("mutant", ["words off by one", "labels off by one", "another's labels"])
def test_reading_the_wrong_token_would_be_noticed(library: Library, name: str, mutant: str) -> None:
    gliner = library(name)
    rows = random_rows(gliner, [(9, 3), (30, 3), (9, 3)])
    right = expected(gliner, rows)
    head = head_of(gliner)
    if mutant == "labels off by one":
        head._label_offset = 1
    elif mutant == "words off by one":
        head._pooling = "last"
    else:
        original = head._score.label_weights
        head._score.label_weights = lambda labels: original(labels.roll(3, 0))  # type: ignore[method-assign]
    assert difference(scored(gliner, head, rows), right) > 1e-2


@pytest.mark.parametrize("name", KINDS)
def test_bfloat16_is_near(library: Library, name: str) -> None:
    gliner = library(name)
    rows = random_rows(gliner, SHAPES)
    ours = scored(gliner, head_of(gliner, torch.bfloat16), rows, torch.bfloat16)
    assert difference(ours, expected(gliner, rows)) < 0.3


@pytest.mark.parametrize("name", ["span", "token"])
def test_small_blocks_give_the_same(library: Library, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gliner = library(name)
    head = head_of(gliner)
    rows = random_rows(gliner, SHAPES)
    whole = scored(gliner, head, rows)
    monkeypatch.setattr("packing.heads.spans.BLOCK_WORDS", {"cpu": 7})
    monkeypatch.setattr("packing.heads.tokens.BLOCK_PAIRS", {"cpu": 7})
    assert difference(scored(gliner, head, rows), whole) < 1e-5


def test_a_bi_encoders_labels_are_encoded_once(library: Library) -> None:
    gliner = library("bi span")
    random = np.random.default_rng(0)
    prompt = random_prompt(random, 4, None)
    rows = [random_row(random, words, prompt) for words in (3, 9, 5)]
    head = head_of(gliner)
    assert head.label_weights is not None
    first = scored(gliner, head, rows)
    assert head.label_weights.counts == (0, 4)
    second = scored(gliner, head, rows)
    assert head.label_weights.counts == (4, 4)
    assert difference(second, first) == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("span_mode", "markerV1"),
        ("span_mode", "anything new"),
        ("subtoken_pooling", "median"),
        ("represent_spans", True),
        ("fuse_layers", True),
        ("post_fusion_schema", "l2l-l2t-t2t"),
        ("span_encoder_config", {"model_type": "rnn"}),
        ("precomputed_prompts_mode", True),
    ],
)
def test_what_is_not_on_the_list_is_not_packed(library: Library, field: str, value: object) -> None:
    changed = copy.copy(library("span"))
    changed.config = copy.copy(changed.config)
    setattr(changed.config, field, value)
    with pytest.raises(Unpackable, match=field):
        build(changed, torch.float32)


def test_a_model_with_an_unknown_part_is_not_packed(library: Library) -> None:
    changed = copy.deepcopy(library("span"))
    changed.model.novelty = torch.nn.Linear(2, 2)
    with pytest.raises(Unpackable, match="novelty"):
        build(changed, torch.float32)

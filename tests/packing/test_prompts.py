from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor

from packing import Document, Engine
from packing.engine import _rows
from packing.heads.labels import CAPACITY
from packing.overlap import select
from packing.pack import Pack
from packing.packed_forward import PackedForward
from packing.prompts import Prompts
from tests.packing.conftest import Load
from tests.packing.planted import planted
from tests.packing.test_parity import assert_same, library_answer
from tests.packing.texts import OVERLAPS
from tests.packing.ties import differences, of_candidates, of_library

TEXT = "Angela Merkel met Tim Cook in Berlin on Monday."


def prompts_of(engine: Engine, max_tokens: int, **asked: Any) -> Prompts:
    return Prompts(engine._tokenizer, ent_token="<<ENT>>", sep_token="<<SEP>>", max_tokens=max_tokens, **asked)


def same(labels: list[str]) -> tuple[tuple[str, str], ...]:
    return tuple((label, label) for label in labels)


@pytest.mark.parametrize("name", ["bert span", "deberta span", "demo"])
def test_a_prompt_is_what_the_library_puts_before_the_text(load: Load, name: str) -> None:
    engine, gliner = load(name)
    labels = ["person", "a long label, of many words", "ORG"]
    prompt, chunks = engine._prompts(same(labels))
    assert chunks == (prompt,)
    processor = gliner.data_processor
    theirs = processor.tokenize_inputs([["x"]], [labels])["input_ids"][0].tolist()
    x, _ = engine._tokenizer.encode(["x"])
    assert [*prompt.ids, *x.tolist(), *engine._tokenizer.suffix] == theirs


def test_labels_that_would_take_more_than_half_of_the_sequence_come_in_chunks(engine: Engine) -> None:
    labels = [f"label {i}" for i in range(60)]
    whole, chunks = prompts_of(engine, 128)(same(labels))
    assert whole.labels == tuple(labels)
    assert len(chunks) > 1
    assert [label for chunk in chunks for label in chunk.labels] == labels
    assert [chunk.first for chunk in chunks] == [labels.index(chunk.labels[0]) for chunk in chunks]
    assert all(len(chunk.ids) + len(engine._tokenizer.suffix) <= 64 for chunk in chunks)


def test_a_chunk_holds_as_many_labels_as_are_set_in_the_order_asked(engine: Engine) -> None:
    labels = [f"label {i}" for i in range(60)]
    _, chunks = prompts_of(engine, 256, chunk_labels=7)(same(labels))
    assert [len(chunk.labels) for chunk in chunks] == [7] * 8 + [4]
    assert [label for chunk in chunks for label in chunk.labels] == labels


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_labels_leave_their_share_to_the_text(engine: Engine, share: float) -> None:
    most = (1 - share) * 200
    for count in range(1, 60):
        whole, chunks = prompts_of(engine, 200, text_share=share)(same([f"label {i}" for i in range(count)]))
        lengths = [len(chunk.ids) + len(engine._tokenizer.suffix) for chunk in chunks]
        assert max(lengths) <= most
        assert (chunks == (whole,)) == (len(whole.ids) + len(engine._tokenizer.suffix) <= most)


def test_a_label_set_used_again_costs_nothing(engine: Engine) -> None:
    prompts = prompts_of(engine, 512)
    assert prompts(same(["a", "b"])) is prompts(same(["a", "b"]))


def test_a_very_large_label_set_is_not_kept_in_memory(engine: Engine) -> None:
    prompts = prompts_of(engine, 512)
    for large in (same([f"{i}" for i in range(1000)]), same([f"{'x ' * 100}{i}" for i in range(100)])):
        assert prompts(large) == prompts(large)
        assert prompts(large) is not prompts(large)


@pytest.mark.parametrize("name", ["bert span", "bi-encoder span"])
def test_a_label_too_long_for_the_model_is_refused_with_both_sizes(load: Load, name: str) -> None:
    engine, _ = load(name)
    with pytest.raises(ValueError, match=r"label 2 is \d+ sub-tokens long, the model has room for \d+"):
        engine.prepare([Document(TEXT, ["person", "very " * 400 + "long"])])


@pytest.mark.parametrize("name", ["bert span", "bi-encoder span"])
def test_a_label_of_characters_the_model_cannot_read_is_refused(load: Load, name: str) -> None:
    engine, _ = load(name)
    with pytest.raises(ValueError, match="label 1 has no character that the model can read"):
        engine.prepare([Document(TEXT, ["\u200b\ufffd"])])


@pytest.mark.parametrize("label", ["<<ENT>>", "a <<ENT>> b", "<<SEP>>", "[SEP] x", "[CLS]", "[PAD]", "[MASK]"])
def test_a_special_token_in_a_label_is_read_as_its_characters(load: Load, label: str) -> None:
    engine, _ = load("bert span")
    prompt, _ = engine._prompts(same(["person", label, "location"]))
    marker = engine._tokenizer.marker("<<ENT>>")
    assert prompt.ids.count(marker[0]) == 3
    result = engine.extract([Document(TEXT, ["person", label, "location"], 0.0, "multi")])[0]
    assert {entity.label for entity in result.entities} == {"person", label, "location"}


DESCRIPTIONS = {
    "person": "the full name of a real or fictional human being, without titles such as Dr. or Chancellor",
    "organization": "a company, public authority, party, charity, sports club or university, under one name",
    "location": "a place that is found on a map: a country, region, city, street, river, island or park",
    "date": "a point or a span of time that can be put in a calendar, such as a year, a month or a weekday",
    "product": "a thing that is made and sold under a name of its own: a device, a vehicle, a drug, a book",
    "event": "a happening with a name: a conference, a festival, a war, a match, an election or a storm",
    "money": "an amount of money with its currency: a price, a fee, a fine, a budget, a salary, a share price",
    "law": "the title or number of a law, a treaty, a regulation, a directive, a standard or a ruling",
}


@pytest.mark.parametrize("name", ["bert span", "demo"])
def test_a_text_that_fits_beside_all_its_labels_is_read_with_them_at_once(load: Load, name: str) -> None:
    engine, gliner = load(name)
    pairs: tuple[tuple[str, str], ...] = ()
    for pair in DESCRIPTIONS.items():
        pairs += (pair, (f"no {pair[0]}", f"anything but {pair[1]}"))
        whole, chunks = engine._prompts(pairs)
        if len(chunks) > 1:
            break
    assert engine.info.max_tokens // 2 < len(whole.ids) < engine.info.max_tokens - 60
    descriptions = dict(pairs)
    document = Document(TEXT, descriptions, 0.1, "multi")
    (result,) = engine.extract([document])
    assert (result.windows, result.label_chunks) == (1, 1)
    assert_same(document, result, library_answer(gliner, document))
    (longer,) = engine.extract([Document(TEXT * 20, descriptions, 0.1, "multi")])
    assert longer.label_chunks == len(chunks)


@pytest.mark.parametrize("name", ["bi-encoder span", "bi-encoder token"])
def test_a_bi_encoder_reads_as_many_labels_as_come_in_bounded_packs(
    load: Load, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, gliner = load(name)
    forward = engine._forward
    assert isinstance(forward, PackedForward)
    labels = forward.head.label_weights
    assert labels is not None
    document = Document(TEXT, [f"kind {i} {'of thing ' * (i % 4)}" for i in range(600)], 0.6, "multi")
    encode, sizes = labels._encode, []

    def watched(pack: Pack) -> Tensor:
        sizes.append(len(pack.ids))
        return encode(pack)

    monkeypatch.setattr(labels, "_encode", watched)
    (result,) = engine.extract([document])
    assert_same(document, result, library_answer(gliner, document))
    assert len(sizes) > 1
    assert max(sizes) <= CAPACITY
    assert engine.extract([document]) == [result]


def test_labels_of_a_bi_encoder_that_differ_at_their_end_are_told_apart(load: Load) -> None:
    engine, _ = load("bi-encoder span")
    long = "of a word " * 40
    entities = engine.extract([Document(TEXT, {"a": f"{long}person", "b": f"{long}Berlin"}, 0.0, "multi")])[0].entities
    scores = {(e.start, e.end, e.label): e.score for e in entities}
    assert any(scores[start, end, "a"] != scores[start, end, "b"] for start, end, _ in scores)


def test_each_chunk_answers_as_the_library_does_for_its_labels(load: Load) -> None:
    engine, gliner = load("short bert span")
    labels = [f"{kind} {i}" for i in range(12) for kind in ("person", "location", "date")]
    (prepared,) = engine.prepare([Document(TEXT, labels, 0.3, "multi")])
    assert prepared.windows == 1
    assert prepared.label_chunks > 1
    words = prepared._words
    assert words is not None
    (window,) = prepared._windows
    for prompt, candidates in zip(prepared._prompts, engine._forward.candidates(_rows([prepared])), strict=True):
        answer = gliner.predict_entities(TEXT, list(prompt.labels), threshold=0.3, **OVERLAPS["multi"])
        ours = of_candidates(words, window, select(candidates, "multi"), prompt.labels)
        assert differences(prepared.document, ours, of_library(answer)) == []


def test_the_entities_of_all_chunks_are_in_the_result_with_their_own_labels(load: Load) -> None:
    engine, _ = load("short bert span")
    labels = [f"kind {i}" for i in range(40)]
    # the planted forward finds the phrase for the first label of each prompt
    (prepared,) = planted(engine, "Tim Cook").prepare([Document(TEXT, labels, overlap="multi")])
    (result,) = planted(engine, "Tim Cook").infer([prepared])
    assert result.label_chunks == prepared.label_chunks > 2
    assert [(e.text, e.label) for e in result.entities] == [
        ("Tim Cook", label) for label in sorted(prompt.labels[0] for prompt in prepared._prompts)
    ]


@pytest.mark.parametrize("name", ["bert span", "bi-encoder span"])
def test_a_lone_surrogate_in_a_label_is_read_as_a_space_and_comes_back(load: Load, name: str) -> None:
    engine, _ = load(name)
    odd, plain = (engine.extract([Document(TEXT, [label], 0.0, "multi")])[0] for label in ("a\ud800person", "a person"))
    assert {entity.label for entity in odd.entities} == {"a\ud800person"}
    assert [(e.start, e.end, e.score) for e in odd.entities] == [(e.start, e.end, e.score) for e in plain.entities]


@pytest.mark.parametrize("name", ["bert span", "deberta token", "bi-encoder span"])
def test_six_hundred_labels_are_all_asked(load: Load, name: str) -> None:
    engine, _ = load(name)
    labels = [f"kind number {i}" for i in range(600)]
    result = engine.extract([Document(TEXT, labels, 0.0, "multi")])[0]
    assert {entity.label for entity in result.entities} == set(labels)

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from packing import BadScores, Document, Engine, Overlap, TooManyEntities, WindowTooLong, decode
from packing.engine import _rows
from packing.overlap import select
from packing.packed_forward import PackedForward
from packing.padded_forward import MOST_PADDING, batches
from packing.windows import CONTEXT_WORDS
from tests.packing.conftest import Load
from tests.packing.planted import planted
from tests.packing.texts import ORDINARY, OVERLAPS, mixed_documents
from tests.packing.ties import differences, of_candidates, of_library
from tests.packing.tiny_models import CORPUS

LABELS = ["person", "location", "organization"]


@pytest.mark.parametrize("text", ["", " \n\t ", "\u200b\x00", "\ud800"])
def test_a_text_with_nothing_to_read_has_no_entities(engine: Engine, text: str) -> None:
    (prepared,) = engine.prepare([Document(text, LABELS, 0.0)])
    assert prepared.tokens == prepared.windows == 0
    assert engine.infer([prepared])[0].entities == ()


def test_no_labels_find_nothing_and_cost_nothing(engine: Engine) -> None:
    nothing: list[Sequence[str] | Mapping[str, str]] = [[], {}]
    for labels in nothing:
        (prepared,) = engine.prepare([Document("Angela Merkel", labels, 0.0)])
        assert prepared.tokens == 0
        assert engine.infer([prepared])[0].entities == ()


def test_results_come_in_the_order_of_the_documents(engine: Engine) -> None:
    documents = [Document(text, LABELS, 0.0) for text in ("", "Tim Cook", "", "Berlin")]
    results = engine.extract(documents)
    assert [bool(result.entities) for result in results] == [False, True, False, True]
    assert engine.extract([]) == []


def test_entities_come_by_start_then_the_longer_then_label(engine: Engine) -> None:
    entities = engine.extract([Document(CORPUS[0], ["b", "a", "c"], 0.0, "multi")])[0].entities
    keys = [(e.start, -e.end, e.label) for e in entities]
    assert keys == sorted(keys)
    assert len({e.label for e in entities}) == 3


def test_tokens_count_prompts_and_windows(load: Load) -> None:
    engine, gliner = load("short bert span")
    one, long_one = engine.prepare([Document(CORPUS[0], LABELS), Document(CORPUS[0] * 20, LABELS)])
    tokens = [w for w, _, _ in gliner.data_processor.words_splitter(CORPUS[0])]
    assert one.tokens == gliner.data_processor.tokenize_inputs([tokens], [LABELS])["input_ids"].shape[1]
    assert one.windows == 1
    assert long_one.windows > 1
    assert long_one.tokens > 20 * (one.tokens - 10)


@pytest.mark.parametrize("name", ["bert span", "deberta span", "deberta token", "demo"])
def test_an_entity_at_the_end_of_two_thousand_words_is_found(load: Load, name: str) -> None:
    engine, _ = load(name)
    text = "nothing to see here, " * 500 + "said Angela Merkel."
    result = planted(engine, "Angela Merkel").extract([Document(text, ["person"])])[0]
    assert [entity.text for entity in result.entities] == ["Angela Merkel"]
    assert result.entities[0].start == text.index("Angela")
    assert result.windows > 5


@pytest.mark.parametrize("name", ["short bert span", "short deberta span"])
def test_an_entity_around_a_cut_is_found_once_wherever_it_stands(load: Load, name: str) -> None:
    engine, _ = load(name)
    phrase = "Angela Merkel met Tim Cook in"  # as long as the model's longest entity
    finder = planted(engine, phrase)
    words = ["word"] * 120
    documents = [Document(" ".join([*words[:at], phrase, *words[at:]]), ["person"]) for at in range(120)]
    for document, result in zip(documents, finder.extract(documents), strict=True):
        assert result.windows > 2
        assert [entity.start for entity in result.entities] == [document.text.index("Angela")]


@pytest.mark.parametrize("name", ["short bert span", "short deberta span"])
@pytest.mark.parametrize("sentence", [3, 7, 11])
def test_an_entity_around_what_looks_like_the_end_of_a_sentence_is_found_once(
    load: Load, name: str, sentence: int
) -> None:
    engine, _ = load(name)
    phrase = "Dr. A. Merkel"  # six words to the model, as many as its longest entity has
    finder = planted(engine, "Dr . A . Merkel")
    words = ["end." if at % sentence == 0 else "word" for at in range(120)]
    documents = [Document(" ".join([*words[:at], phrase, *words[at:]]), ["person"]) for at in range(120)]
    for document, result in zip(documents, finder.extract(documents), strict=True):
        assert result.windows > 2
        assert [(entity.start, entity.text) for entity in result.entities] == [(document.text.index("Dr."), phrase)]


def test_windows_have_the_words_and_the_overlap_that_are_set(load: Load) -> None:
    engine, _ = load("bert span")
    text = "a " * 1000
    for words, overlap in ((50, 0), (100, 20), (300, 150)):
        sized = engine.with_parts(window_words=words, overlap_words=overlap)
        (prepared,) = sized.prepare([Document(text, LABELS)])
        assert {end - start for start, end in prepared._windows[:-1]} == {words}
        shared = {one.end - following.start for one, following in pairwise(prepared._windows)}
        assert shared == {min(overlap + CONTEXT_WORDS, words // 2)}


def test_a_text_that_fits_the_model_is_one_window_whatever_is_set(load: Load) -> None:
    engine, _ = load("bert span")
    document = Document("a " * 380, LABELS)
    assert engine.with_parts(window_words=50).extract([document]) == engine.extract([document])
    assert engine.prepare([document])[0].windows == 1


def test_a_megabyte_of_text_is_read_in_bounded_memory(load: Load) -> None:
    engine, _ = load("demo")
    text = "The harbour of Rossaveel was quiet. " * 29_000 + "Angela Merkel"
    assert len(text) > 1_000_000
    finder = planted(engine, "Angela Merkel")
    tracemalloc.start()
    (result,) = finder.extract([Document(text, LABELS)])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [entity.start for entity in result.entities] == [text.index("Angela")]
    assert result.windows > 1000
    assert peak < 100 * len(text)


def test_words_of_many_sub_tokens_are_read_to_the_end(load: Load) -> None:
    engine, _ = load("short bert span")
    text = "qzxj" * 20 + " " + "xqjzw9" * 2000 + " Tim Cook"
    result = planted(engine, "Tim Cook").extract([Document(text, ["person"])])[0]
    assert [entity.text for entity in result.entities] == ["Tim Cook"]


@pytest.mark.parametrize("overlap", ["flat", "nested", "multi"])
@pytest.mark.parametrize("name", ["short bert span", "short deberta span"])
def test_a_window_answers_as_the_library_does_for_its_text(load: Load, name: str, overlap: Overlap) -> None:
    engine, gliner = load(name)
    text = " ".join(CORPUS[:5])
    (prepared,) = engine.prepare([Document(text, LABELS, 0.4, overlap)])
    assert prepared.windows > 2
    words = prepared._words
    assert words is not None
    found = engine._forward.candidates(_rows([prepared]))
    for window, candidates in zip(prepared._windows, found, strict=True):
        part = text[words.starts[window.start] : words.ends[window.end - 1]]
        answer = gliner.predict_entities(part, LABELS, threshold=0.4, **OVERLAPS[overlap])
        assert answer
        ours = of_candidates(words, window, select(candidates, overlap), LABELS)
        assert differences(prepared.document, ours, of_library(answer)) == []


def test_the_demo_model_finds_people_and_places_past_the_models_limit(load: Load) -> None:
    engine, _ = load("demo")
    text = "The weather was fine that day and nothing much happened. " * 100 + "Angela Merkel met Tim Cook in Berlin."
    entities = engine.extract([Document(text, ["person", "location"])])[0].entities
    end = len(text) - len("Angela Merkel met Tim Cook in Berlin.")
    assert {"Angela Merkel", "Tim Cook", "Berlin"} <= {e.text for e in entities if e.start >= end}


def test_one_threshold_for_all_labels_is_the_same_as_a_map_of_it(engine: Engine) -> None:
    for overlap in ("flat", "nested", "multi"):
        one = Document(CORPUS[0], LABELS, 0.4, overlap)
        mapped = Document(CORPUS[0], LABELS, {"person": 0.4}, overlap, 0.4)
        assert engine.extract([one]) == engine.extract([mapped])


def test_a_threshold_of_one_silences_its_label_alone(engine: Engine) -> None:
    entities = engine.extract([Document(CORPUS[0], LABELS, {"person": 1}, "multi", 0.0)])[0].entities
    assert {entity.label for entity in entities} == {"location", "organization"}


@pytest.mark.parametrize("name", ["bert span", "bert token"])
@pytest.mark.parametrize("number", [torch.nan, torch.inf, -torch.inf])
def test_scores_that_are_no_numbers_are_an_error(
    load: Load, name: str, number: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, _ = load(name)
    forward = engine._forward
    assert isinstance(forward, PackedForward)
    encoder = forward.encoder
    monkeypatch.setattr(forward, "encoder", lambda pack, read: torch.full_like(encoder(pack, read), number))
    with pytest.raises(BadScores) as caught:
        engine.extract([Document("", LABELS), Document("Angela Merkel", LABELS)])
    assert caught.value.documents == (1,)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_tokens": 12}, r"document 1 is \d\d sub-tokens long, the model reads 12"),
        ({"max_words": 3}, r"document 1 is 9 words long, the model reads 3"),
    ],
)
def test_a_window_longer_than_the_model_reads_is_refused_never_cut(
    load: Load, limits: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, _ = load("bert span")
    prepared = engine.prepare(
        [Document("Rain.", LABELS), Document("Angela Merkel met Tim Cook in Berlin on Friday", LABELS)]
    )
    monkeypatch.setattr(engine, "info", replace(engine.info, **limits))
    with pytest.raises(WindowTooLong, match=said):
        engine.infer(prepared)


@pytest.mark.parametrize(("name", "labels"), [("bert span", None), ("bi-encoder span", (3, 3))])
def test_how_often_a_cache_knew_is_visible(load: Load, name: str, labels: tuple[int, int] | None) -> None:
    engine, _ = load(name)
    before = engine.caches()
    for _ in range(2):
        engine.extract([Document("Angela Merkel", ("first of its kind", "second", "third"))])
    after = engine.caches()
    found = {what: (hits - before[what].hits, misses - before[what].misses) for what, (hits, misses) in after.items()}
    assert found == {"label_sets": (1, 1)} | ({"labels": labels} if labels else {})


@pytest.mark.parametrize("name", ["short bert span", "bert token"])
def test_more_candidates_than_a_document_may_have_are_an_error_that_says_what_to_do(
    load: Load, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, _ = load(name)
    text = CORPUS[0] * 40
    (one,) = engine._forward.candidates(_rows(engine.prepare([Document(CORPUS[0], LABELS, 0.0)])))
    monkeypatch.setattr(decode, "MAX_CANDIDATES", len(one))
    assert len(engine.extract([Document(CORPUS[0], LABELS, 0.0)] * 2)) == 2
    (prepared,) = engine.prepare([Document(text, LABELS, 0.0)])
    assert prepared.windows > 1
    with pytest.raises(TooManyEntities, match=rf"more than {len(one):,} spans .* higher threshold or for fewer labels"):
        engine.infer([prepared])


def test_the_bound_on_candidates_counts_over_a_documents_windows(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _ = load("short bert span")
    prepared = engine.prepare([Document(" ".join(CORPUS[:5]), LABELS, 0.0)])
    found = [len(candidates) for candidates in engine._forward.candidates(_rows(prepared))]
    assert len(found) > 2
    monkeypatch.setattr(decode, "MAX_CANDIDATES", sum(found))
    engine.infer(prepared * 2)
    monkeypatch.setattr(decode, "MAX_CANDIDATES", sum(found) - 1)
    with pytest.raises(TooManyEntities):
        engine.infer(prepared)


def test_sentences_are_looked_for_only_in_a_text_of_several_windows(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Mock(return_value=[])
    monkeypatch.setattr("packing.engine.sentence_ends", looked)
    engine.prepare([Document(CORPUS[0], LABELS)])
    looked.assert_not_called()
    engine.prepare([Document(CORPUS[0] * 40, LABELS)])
    looked.assert_called_once()


def test_preparing_and_inferring_at_the_same_time_disturb_neither(load: Load) -> None:
    engine, _ = load("deberta span")
    documents = mixed_documents([*ORDINARY, " ".join(CORPUS) * 5])
    expected = engine.extract(documents)
    with ThreadPoolExecutor(4) as threads:
        for _ in range(2):
            prepared = engine.prepare(documents)
            inferring = threads.submit(engine.infer, prepared)
            preparing = [threads.submit(engine.prepare, documents) for _ in range(2)]
            assert inferring.result() == expected
            assert all(engine.infer(done.result()) == expected for done in preparing)


@given(st.lists(st.integers(1, 600), max_size=60), st.integers(64, 2048))
def test_batches_hold_every_row_once_within_the_budget_and_with_little_padding(lengths: list[int], budget: int) -> None:
    made = list(batches(lengths, budget))
    assert sorted(i for batch in made for i in batch) == list(range(len(lengths)))
    for batch in made:
        longest = max(lengths[i] for i in batch)
        assert len(batch) == 1 or len(batch) * longest <= budget
        assert min(lengths[i] for i in batch) >= (1 - MOST_PADDING) * longest

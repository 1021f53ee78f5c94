"""Each awkward case through the whole engine: alone, in company, and beside the model library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from packing import Document, Engine, Result
from packing.engine import Prepared
from packing.tokenizer import legible
from tests.packing.awkward import CASES, LABELS
from tests.packing.conftest import Load
from tests.packing.planted import planted
from tests.packing.promises import assert_promises
from tests.packing.test_parity import library_answer
from tests.packing.ties import differences, of_library, of_result

MODELS = ["bert span", "deberta token", "demo"]
DOCUMENTS = {name: case.document() for name, case in CASES.items()}

Together = Callable[[str], dict[str, Result]]


@pytest.fixture(scope="module")
def together(load: Load) -> Together:
    """Return a model's answers to all cases at once."""

    @cache
    def by_model(model: str) -> dict[str, Result]:
        return dict(zip(DOCUMENTS, load(model)[0].extract(list(DOCUMENTS.values())), strict=True))

    return by_model


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", CASES)
def test_an_awkward_case_is_answered_as_alone_and_keeps_the_promises(
    load: Load, together: Together, model: str, name: str
) -> None:
    document, in_company = DOCUMENTS[name], together(model)[name]
    assert_promises(document, in_company)
    (alone,) = load(model)[0].extract([document])
    assert (alone.windows, alone.label_chunks) == (in_company.windows, in_company.label_chunks)
    assert differences(document, of_result(alone.entities), of_result(in_company.entities)) == []


@pytest.mark.parametrize("model", MODELS)
def test_an_awkward_case_that_the_library_reads_whole_gets_the_librarys_answer(
    load: Load, together: Together, model: str
) -> None:
    engine, gliner = load(model)
    prepared = dict(zip(DOCUMENTS, engine.prepare(list(DOCUMENTS.values())), strict=True))
    different, compared, found = [], 0, 0
    for name, one in prepared.items():
        if (text := as_the_library_takes_it(engine, gliner, one)) is None:
            continue
        result = together(model)[name]
        compared += 1
        found += len(result.entities)
        read = replace(one.document, text=text)
        if differences(one.document, of_result(result.entities), of_library(library_answer(gliner, read))):
            different.append(name)
    assert different == []
    assert compared > 140
    assert found > compared


def as_the_library_takes_it(engine: Engine, gliner: Any, prepared: Prepared) -> str | None:
    """Return the text with spaces for the words that have no sub-tokens, None where the library can't be compared.

    It cuts what is longer than a window, reads special tokens in labels as such, has one threshold for all labels,
    and fails on lone surrogates.
    """
    document, words = prepared.document, prepared._words
    special = gliner.data_processor.transformer_tokenizer.get_added_vocab()
    asked = [text for _, text in document.prompts()]
    if (
        words is None
        or (prepared.windows, prepared.label_chunks) != (1, 1)
        or not isinstance(document.threshold, (int, float))
        or any(token in text for text in asked for token in special)
        or any(legible(text) != text for text in asked)
    ):
        return None
    text = legible(document.text)
    split = list(engine._split_words(text))
    counts = engine._tokenizer.encode([word for word, _, _ in split])[1].tolist()
    for (_, start, end), count in zip(split, counts, strict=True):
        if not count:
            text = text[:start] + " " * (end - start) + text[end:]
    whole = [(start, end) for (_, start, end), count in zip(split, counts, strict=True) if count]
    return text if whole == list(zip(words.starts.tolist(), words.ends.tolist(), strict=True)) else None


@pytest.mark.parametrize("model", MODELS)
def test_all_cases_asked_again_get_the_same_answers_to_the_last_bit(load: Load, together: Together, model: str) -> None:
    assert load(model)[0].extract(list(DOCUMENTS.values())) == list(together(model).values())


@pytest.mark.parametrize("size", [7, 50])
@pytest.mark.parametrize("model", MODELS)
def test_batches_of_any_size_and_order_give_the_same_answers(
    load: Load, together: Together, model: str, size: int
) -> None:
    engine, _ = load(model)
    names = sorted((name for name, case in CASES.items() if len(case.text) < 2000), key=lambda name: name[::-1])
    for at in range(0, len(names), size):
        batch = names[at : at + size]
        results = engine.extract([DOCUMENTS[name] for name in batch])
        for name, result in zip(batch, results, strict=True):
            expected = together(model)[name].entities
            assert differences(DOCUMENTS[name], of_result(result.entities), of_result(expected)) == [], name


@pytest.mark.parametrize("model", MODELS)
def test_labels_are_asked_once_each_in_the_order_given(load: Load, model: str) -> None:
    for document, prepared in zip(DOCUMENTS.values(), load(model)[0].prepare(list(DOCUMENTS.values())), strict=True):
        asked = [label for prompt in prepared._prompts for label in prompt.labels]
        assert asked == (list(dict.fromkeys(document.labels)) if prepared.windows else [])


@pytest.mark.parametrize("model", MODELS)
def test_a_phrase_between_awkward_texts_is_found_at_its_place(load: Load, model: str) -> None:
    phrase = "Angela Merkel"
    texts = {name: f"{case.text} {phrase} {case.text}" for name, case in CASES.items()}
    documents = [Document(text, LABELS) for text in texts.values()]
    results = planted(load(model)[0], phrase).extract(documents)
    wrong = {
        name: result.entities
        for (name, text), result in zip(texts.items(), results, strict=True)
        if [(e.start, e.text) for e in result.entities] != [(len(CASES[name].text) + 1, phrase)]
    }
    assert wrong == {}


def test_an_unreadable_label_is_named_by_its_place_among_the_different_ones(engine: Engine) -> None:
    with pytest.raises(ValueError, match="label 2 has no character that the model can read"):
        engine.prepare([Document("Lisbon", ["person", "person", "\u200b"])])

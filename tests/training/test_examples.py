import random

from hypothesis import given
from hypothesis import strategies as st

from training.corpora import Text, to_words
from training.examples import MAX_LABELS, MAX_WORDS, Example, annotate, make_batches, make_example, make_round
from training.labels import DEFAULT


def text(words: str, *entities: tuple[str, str], source: str = "btc") -> Text:
    marks = [{"start": words.index(e), "end": words.index(e) + len(e), "label": label} for e, label in entities]
    return to_words({"id": "x-1", "source": source, "text": words, "entities": marks, "license": "none"})


def answers(example: Example) -> set[tuple[str, str]]:
    return {(" ".join(example["tokenized_text"][start : end + 1]), label) for start, end, label in example["ner"]}


@given(st.integers(0, 500))
def test_every_answer_has_a_label_that_was_asked(seed: int) -> None:
    known = frozenset({"person", "city", "country", "song", "product", "date"})
    words = text(
        "Ann sang Imagine in Oslo , Norway on Monday", ("Ann", "person"), ("Imagine", "song"), ("Oslo", "city")
    )
    example = make_example(words, known, random.Random(seed))
    assert 1 <= len(example["ner_labels"]) <= MAX_LABELS
    assert len(set(example["ner_labels"])) == len(example["ner_labels"])
    assert {label for _, _, label in example["ner"]} <= set(example["ner_labels"])


def test_a_fine_label_is_also_asked_by_its_wider_name() -> None:
    words = text("Oslo", ("Oslo", "city"))
    seen = [make_example(words, frozenset({"city"}), random.Random(seed)) for seed in range(300)]
    names = {label for example in seen for _, label in answers(example)}
    assert {"city", "location"} <= names


def test_dates_are_marked_by_rule_but_not_inside_a_marked_entity() -> None:
    [item] = annotate([text("The 2006 World Cup began on 9 June 2006", ("2006 World Cup", "event"))])
    assert [(span.start, span.end, span.label) for span in item.text.spans] == [(1, 3, "event"), (6, 8, "date")]
    assert {"event", "date"} <= item.known


def test_a_label_with_a_doubtful_span_is_not_asked() -> None:
    [item] = annotate(
        [text("our allies met in Paris", ("our allies", "organization"), ("Paris", "location"), source="re3d/x")]
    )
    for seed in range(200):
        example = make_example(item.text, item.known, random.Random(seed))
        assert not any("rgani" in label or "ORG" in label for label in example["ner_labels"])


def test_a_round_over_the_corpora_keeps_every_limit(train_texts: list[Text]) -> None:
    rng = random.Random(1)
    examples = make_round(annotate(train_texts[::20]), rng, made=1_000)
    assert len(examples) > 1_000
    assert max(len(example["tokenized_text"]) for example in examples) <= MAX_WORDS
    for example in examples:
        assert all(0 <= start <= end < len(example["tokenized_text"]) for start, end, _ in example["ner"])
    asked = [label for example in examples for label in example["ner_labels"]]
    assert all(asked.count(label) > 100 for label in DEFAULT)
    assert sum(not example["ner"] for example in examples) > 50, "texts without entities teach silence"


def test_the_same_seed_gives_the_same_round(train_texts: list[Text]) -> None:
    texts = annotate(train_texts[::100])
    assert make_round(texts, random.Random(5), made=50) == make_round(texts, random.Random(5), made=50)
    assert make_round(texts, random.Random(5), made=50) != make_round(texts, random.Random(6), made=50)


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(0, 99))
def test_batches_hold_every_example_once_within_the_budget(lengths: list[int], seed: int) -> None:
    examples: list[Example] = [
        {"tokenized_text": ["w"] * n, "ner": [], "ner_labels": [str(i)]} for i, n in enumerate(lengths)
    ]
    batches = make_batches(examples, 60, random.Random(seed))
    assert sorted(int(e["ner_labels"][0]) for batch in batches for e in batch) == list(range(len(lengths)))
    assert all(len(batch) * max(len(e["tokenized_text"]) for e in batch) <= 60 for batch in batches)

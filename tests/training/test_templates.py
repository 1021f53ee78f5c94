import random
from pathlib import Path

import pytest

from training.fillings import MADE, lexicon
from training.templates import KIND_OF_PART, fill, join, kinds, make_texts, sentences


def marked(text_and_spans: object) -> list[tuple[str, str]]:
    from training.corpora import Text

    assert isinstance(text_and_spans, Text)
    text = text_and_spans
    return [(text.text[text.offsets[s.start][0] : text.offsets[s.end][1]], s.label) for s in text.spans]


@pytest.mark.parametrize("sentence", sentences())
def test_every_slot_of_every_sentence_can_be_filled_with_whole_words(sentence: str) -> None:
    for seed in range(20):
        text = fill(sentence, random.Random(seed))
        assert "{" not in text.text
        assert not text.broken
        assert len(text.spans) == sentence.count("{")


def test_every_kind_of_word_has_a_sentence() -> None:
    used = {slot.split("}")[0] for sentence in sentences() for slot in sentence.split("{")[1:]}
    made_of_parts = {kind for kind in lexicon() if kind.startswith("_")}
    assert kinds() - used == set()
    assert used - made_of_parts <= kinds()
    assert set(KIND_OF_PART) <= made_of_parts


def test_an_article_is_not_part_of_a_name_and_is_not_said_twice() -> None:
    for seed in range(100):
        text = fill("We flew over the {river} and {mountain}.", random.Random(seed))
        assert "the the" not in text.text
        assert not any(name.startswith("the ") for name, _ in marked(text))


def test_joined_texts_keep_their_entities() -> None:
    rng = random.Random(3)
    parts = [fill("{person} lives in {city}.", rng), fill("{date}", rng)]
    assert marked(join(parts, rng)) == marked(parts[0]) + marked(parts[1])


def test_the_default_labels_that_corpora_lack_are_well_covered() -> None:
    labels = [label for text in make_texts(1_000, random.Random(0)) for _, label in marked(text)]
    assert all(labels.count(label) > 150 for label in ("date", "product", "event"))
    assert len(set(labels)) > 60
    assert set(MADE) <= set(labels)


def test_nothing_of_the_sample_texts_stands_in_the_templates() -> None:
    samples = Path(__file__).parents[2] / "samples"
    whole = "\n".join(path.read_text(encoding="utf-8") for path in samples.glob("*.txt"))
    assert len(whole) > 10_000
    assert [s for s in sentences() if len(s.split()) > 4 and s in whole] == []

import pytest

from training.corpora import to_words
from training.evaluate import Answer, Question, choose_threshold, questions, score

ASKED = [
    Question(
        "Ann met Bob in Rome", ("location", "person"), ((0, 3, "person"), (8, 11, "person"), (15, 19, "location"))
    ),
    Question("nothing", ("location", "person"), ()),
]


def test_only_exact_words_with_the_right_label_count() -> None:
    answers = [
        [Answer(0, 3, "person", 0.9), Answer(8, 14, "person", 0.9), Answer(15, 19, "person", 0.9)],
        [Answer(0, 7, "person", 0.9)],
    ]
    found = score(ASKED, answers, 0.5)
    assert found.precision == pytest.approx(1 / 4)
    assert found.recall == pytest.approx(1 / 3)
    assert found.entities == 3


def test_answers_below_the_threshold_are_not_given() -> None:
    answers = [[Answer(0, 3, "person", 0.9), Answer(4, 7, "person", 0.4)], []]
    assert score(ASKED, answers, 0.5).precision == 1.0
    assert score(ASKED, answers, 0.3).precision == 0.5


def test_the_chosen_threshold_separates_right_from_wrong() -> None:
    right = [Answer(0, 3, "person", 0.52), Answer(8, 11, "person", 0.6), Answer(15, 19, "location", 0.7)]
    wrong = [Answer(0, 7, "person", 0.42)]
    assert choose_threshold([(ASKED, [right, wrong])]) == 0.45


def test_each_text_is_asked_the_labels_of_its_corpus() -> None:
    def text(source: str, label: str) -> dict[str, object]:
        entity = {"start": 0, "end": 3, "label": label}
        return {"id": "1", "source": source, "text": "Ann ran", "entities": [entity], "license": ""}

    texts = [
        to_words(text("crossner/ai", "researcher")),
        to_words(text("btc", "person")),
        to_words(text("btc", "miscellaneous")),
    ]
    asked = questions(texts)
    assert [question.labels for question in asked] == [("researcher",), ("person",), ("person",)]
    assert asked[2].gold == ()

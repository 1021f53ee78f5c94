from samples import Marked, Sample
from schemas.events import Entity, EntityEvent, ModelInfo, Source
from worker.corpus import Speech
from worker.demo import Tally, agreement
from worker.demo_texts import MAX_WORDS, DemoText, choose

SAMPLES = [Sample(f"post-{n:03}", "posts", "Ann met Bob. " * 10, (Marked(0, 3, "person"),)) for n in range(100)]


def speech(year: int, words: int) -> Speech:
    sentence = "The state of the union is as it was in the year before, and will be so again. "
    return Speech(year, "A. President", sentence * (words // 17))


SPEECHES = [speech(1800 + n, 1000 * (1 + n % 9)) for n in range(60)]


def test_the_choice_is_the_same_every_time_and_within_its_bounds() -> None:
    texts = choose(SAMPLES, SPEECHES)
    assert texts == choose(SAMPLES, SPEECHES)
    assert len(texts) >= 500
    assert sum(len(text.text.split()) for text in texts) <= MAX_WORDS
    assert max(len(text.text.split()) for text in texts) <= 6000
    assert len({text.id for text in texts}) == len(texts)


def test_every_sample_and_a_few_whole_speeches_are_among_them() -> None:
    texts = choose(SAMPLES, SPEECHES)
    assert {sample.id for sample in SAMPLES} <= {text.id for text in texts}
    assert sum(len(text.text.split()) > 500 for text in texts) == 3


def test_without_the_corpus_the_samples_remain() -> None:
    assert sorted(text.id for text in choose(SAMPLES, [])) == [sample.id for sample in SAMPLES]


def event(text_id: str, *spans: tuple[int, int, str]) -> EntityEvent:
    return EntityEvent(
        id="texts:0:0",
        text_id=text_id,
        source=Source(topic="texts", partition=0, offset=0, timestamp=None),
        entities=[Entity(start=start, end=end, text="x", label=label, score=0.9) for start, end, label in spans],
        offset_unit="code_points",
        model=ModelInfo(name="m", revision=None),
        windows=1,
        label_chunks=1,
    )


def tally(**marks: tuple[Marked, ...] | None) -> Tally:
    return Tally({name: DemoText(name, "Ann met Bob", marked) for name, marked in marks.items()})


def test_agreement_is_strict_in_span_and_label() -> None:
    seen = tally(a=(Marked(0, 3, "person"), Marked(8, 11, "person")), b=None)
    seen.events = {
        "a": event("a", (0, 3, "person"), (8, 11, "location"), (4, 7, "event")),
        "b": event("b", (0, 1, "x")),
    }
    assert agreement(seen) == (1 / 3, 1 / 2, 2)


def test_the_demo_is_complete_only_with_exactly_one_event_a_text() -> None:
    seen = tally(a=None, b=None)
    seen.answers.update(["a"])
    assert not seen.complete()
    seen.answers.update(["b"])
    assert seen.complete()
    seen.answers.update(["b"])
    assert not seen.complete()


def test_a_dead_letter_is_not_an_event() -> None:
    seen = tally(a=None)
    seen.dead_letters = 1
    assert seen.all_answered()
    assert not seen.complete()

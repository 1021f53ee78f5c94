"""The texts of the demo: every sample, then paragraphs and a few whole speeches, the same ones every time."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from samples import Marked, Sample
from worker.corpus import Speech, paragraphs

SEED = 7
MAX_WORDS = 35_000
MAX_SPEECH_WORDS = 6_000
SPEECHES = 3
PARAGRAPHS = 400
PARAGRAPH_WORDS = range(12, 61)


@dataclass(frozen=True, slots=True)
class DemoText:
    """One text of the demo.

    Attributes:
        marked: its entities as a person marked them; None where nobody did.
    """

    id: str
    text: str
    marked: tuple[Marked, ...] | None


def choose(samples: Sequence[Sample], speeches: Sequence[Speech]) -> list[DemoText]:
    """Return the demo's texts, at most `MAX_WORDS` words in all, in an order that mixes their lengths.

    Args:
        samples: the project's own texts, their entities marked.
        speeches: State of the Union addresses, by year; none where the corpus isn't there.
    """
    texts = [DemoText(sample.id, sample.text, sample.entities) for sample in samples]
    room = MAX_WORDS - sum(_words(text.text) for text in texts)
    for text in (*_whole(speeches), *_short(speeches)):
        if (words := _words(text.text)) <= room:
            texts.append(text)
            room -= words
    random.Random(SEED).shuffle(texts)
    return texts


def _whole(speeches: Sequence[Speech]) -> list[DemoText]:
    # The shortest ones: whole speeches show that nothing is cut, and the paragraphs want the room.
    fitting = sorted((speech for speech in speeches if _words(speech.text) <= MAX_SPEECH_WORDS), key=_length)
    return [DemoText(f"sotu-{speech.id}", speech.text, None) for speech in fitting[:SPEECHES]]


def _short(speeches: Sequence[Speech]) -> list[DemoText]:
    fitting = [
        DemoText(f"sotu-{speech.id}-{number:03}", paragraph, None)
        for speech in speeches
        for number, paragraph in enumerate(paragraphs(speech), start=1)
        if _words(paragraph) in PARAGRAPH_WORDS
    ]
    return sorted(random.Random(SEED).sample(fitting, min(PARAGRAPHS, len(fitting))), key=lambda text: text.id)


def _length(speech: Speech) -> int:
    return _words(speech.text)


def _words(text: str) -> int:
    return len(text.split())

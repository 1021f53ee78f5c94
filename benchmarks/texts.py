"""The texts measured on: a natural mix, from tweets to reports."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import samples
from worker import corpus

DATA: Final = Path(__file__).parents[2] / "shared" / "data"
"""The folder of the corpora."""

STREAM_MIX: Final = DATA / "stream_mix.jsonl"
"""One JSON object with a `text` a line; used where it is."""

LABELS: Final = ("person", "organization", "location", "date", "product")

_MORE: Final = """
event city country river mountain airport hotel restaurant museum university hospital court ministry company
bank newspaper magazine website software device vehicle aircraft ship weapon medicine disease symptom protein
gene chemical element animal plant food drink sport team athlete coach tournament award film song album band
singer actor director writer book poem painting building bridge road station border treaty law crime judge
lawyer politician party election president minister general soldier war battle religion language nationality
currency amount percentage quantity duration time address email phone account username hashtag version error
algorithm library continent island lake desert planet star festival holiday century
"""

MORE_LABELS: Final = (*LABELS, *_MORE.split())
"""A hundred labels and some; the first five are `LABELS`."""


class Pool(NamedTuple):
    """All texts there are, and where they are from."""

    source: str
    texts: list[str]


def read_pool() -> Pool:
    """Return the stream mix where it is, else this package's samples, with speeches where they were fetched."""
    if STREAM_MIX.exists():
        with STREAM_MIX.open(encoding="utf-8") as lines:
            return Pool("stream_mix.jsonl", [json.loads(line)["text"] for line in lines])
    texts = [sample.text for sample in samples.read()]
    speeches = corpus.speeches(corpus.cache_folder())
    for number, speech in enumerate(speeches):
        texts.append(speech.text if number % 8 == 0 else corpus.paragraphs(speech)[0])
    return Pool("samples and speeches" if speeches else "samples", texts)


def choose(texts: Sequence[str], count: int) -> list[str]:
    """Return as many texts, evenly spread over their order by length: any count has the pool's mix of lengths.

    They come shuffled, always alike, as a stream would bring them. Where there are too few, they repeat.
    """
    by_length = sorted(texts, key=len)
    chosen = [by_length[int((i + 0.5) * len(by_length) / count)] for i in range(count)]
    random.Random(0).shuffle(chosen)
    return chosen


def shorten(text: str, word_ends: Sequence[int], fits: Callable[[str], bool]) -> str:
    """Return the text up to the last word with which it still fits.

    Args:
        text: What to shorten.
        word_ends: Offsets after each of its words, ascending.
        fits: Whether a text fits; if one does, its beginnings do.
    """
    if fits(text):
        return text
    least, most = 0, len(word_ends) - 1  # words that fit, words that may
    while least < most:
        middle = (least + most + 1) // 2
        if fits(text[: word_ends[middle - 1]]):
            least = middle
        else:
            most = middle - 1
    return text[: word_ends[least - 1]] if least else ""

"""Measure what long texts and long label lists cost, on marked documents: `python -m benchmarks.long [--quick]`."""

from __future__ import annotations

import logging
import time
import warnings
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final

import torch
import transformers
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import library, long_documents, many_labels, recall_picture, report
from benchmarks.library import Question
from benchmarks.long_documents import LongDocument, Span, passages, strict
from benchmarks.report import Metric
from benchmarks.subject import answer
from benchmarks.texts import DATA
from packing import DEMO_MODEL, Document, Engine
from training.corpora import WORD

RESULTS: Final = Path(__file__).parent / "results" / "long.json"
THREADS: Final = 2
THRESHOLD: Final = 0.5
"""The worker's default."""

PLACES: Final = (0, 100, 200, 400, 1000, 2000, 4000, 8000)
"""First words of the parts of a text whose recall is shown apart."""

SIZES: Final = (64, 96, 128, 192, 256, 384)
"""Words of a window."""

OVERHEAD_WORDS: Final = 5000
LABELS: Final = ("person", "organization", "location", "date", "product", "event")

WINDOWS, PASSAGES, LIBRARY = "windows", "passages alone", "the library, truncating"
Found = Mapping[str, Sequence[Collection[Span]]]


def read_all(engine: Engine, gliner: Any, documents: Sequence[LongDocument], say: Callable[[str], None]) -> Found:
    """Return the entities of each document, read in each way."""
    found: dict[str, Sequence[Collection[Span]]] = {WINDOWS: list(map(answer, engine.extract(whole(documents))))}
    say("read in windows")
    found[PASSAGES] = [in_passages(engine, one, engine._window_words) for one in documents]
    say("read as passages")
    questions = [Question([one.text.text], list(one.labels), THRESHOLD) for one in documents]
    found[LIBRARY] = [library.sequential(gliner, question)[0] for question in questions]
    say("read by the library")
    return found


def whole(documents: Iterable[LongDocument]) -> list[Document]:
    """Return what is asked of whole documents."""
    return [Document(one.text.text, one.labels, THRESHOLD) for one in documents]


def in_passages(engine: Engine, document: LongDocument, most_words: int) -> list[Span]:
    """Return the entities of a document of which every passage was read alone."""
    parts = list(passages(document.text, most_words))
    results = engine.extract([Document(part.text, document.labels, THRESHOLD) for part in parts])
    return [
        (part.offset + start, part.offset + end, label)
        for part, result in zip(parts, results, strict=True)
        for start, end, label in answer(result)
    ]


def metrics(documents: Sequence[LongDocument], found: Found) -> list[Metric]:
    """Return the figures with goals, of all documents that were read."""
    held_out = [i for i, one in enumerate(documents) if one.held_out]
    filings = [i for i in held_out if documents[i].corpus == "sec_test"]

    def f1(way: str, which: Iterable[int]) -> float:
        return strict((found[way][i], documents[i].gold) for i in which)[2]

    def recall_beyond(way: str) -> float:
        return strict(
            (found[way][i], [span for span in one.gold if span[0] >= one.limit]) for i, one in enumerate(documents)
        )[1]

    return [
        Metric(
            "f1_windows_minus_passages",
            f1(WINDOWS, held_out) - f1(PASSAGES, held_out),
            "points",
            least=-0.5,
            note=f"windows {f1(WINDOWS, held_out):.1f}; {len(held_out)} documents not trained on",
        ),
        Metric(
            "f1_windows_vs_truncating",
            f1(WINDOWS, filings) / f1(LIBRARY, filings),
            "times the library's",
            least=3.0,
            note=f"{f1(WINDOWS, filings):.1f} and {f1(LIBRARY, filings):.1f}; {len(filings)} filings not trained on",
        ),
        Metric(
            "recall_past_limit_minus_before",
            recall_beyond(WINDOWS) - recall_beyond(PASSAGES),
            "points",
            least=-2.0,
            note=f"past what the model reads at once: windows {recall_beyond(WINDOWS):.1f}, before, as passages alone, "
            f"{recall_beyond(PASSAGES):.1f}, the library {recall_beyond(LIBRARY):.1f}; {len(documents)} documents",
        ),
    ]


def by_corpus(documents: Sequence[LongDocument], found: Found) -> list[dict[str, Any]]:
    """Return precision, recall and F1 of each corpus by way of reading."""
    rows = []
    for corpus in dict.fromkeys((one.corpus, one.held_out) for one in documents):
        which = [i for i, one in enumerate(documents) if (one.corpus, one.held_out) == corpus]
        row: dict[str, Any] = {
            "corpus": corpus[0],
            "trained_on": not corpus[1],
            "documents": len(which),
            "words": sum(len(documents[i].text.words) for i in which),
            "entities": sum(len(documents[i].gold) for i in which),
        }
        for way, answers in found.items():
            scores = strict((answers[i], documents[i].gold) for i in which)
            row[way] = dict(zip(("precision", "recall", "f1"), scores, strict=True))
        rows.append(row)
    return rows


def by_place(documents: Sequence[LongDocument], found: Found) -> dict[str, list[float]]:
    """Return recall in percent in each of `PLACES`, by way of reading."""
    places = [places_of(one) for one in documents]
    return {
        way: [
            strict(
                (answers, [span for span, its_place in zip(one.gold, own, strict=True) if its_place == place])
                for one, own, answers in zip(documents, places, found[way], strict=True)
            )[1]
            for place in range(len(PLACES))
        ]
        for way in found
    }


def places_of(document: LongDocument) -> list[int]:
    """Return in which of `PLACES` each marked entity starts."""
    starts = [start for start, _ in document.text.offsets]
    return [bisect_right(PLACES, bisect_right(starts, start) - 1) - 1 for start, _, _ in document.gold]


def overhead(engine: Engine, documents: Sequence[LongDocument]) -> Metric:
    """Return how many tokens are computed for one of the text, in texts of `OVERHEAD_WORDS` words."""
    pool = "\n".join(one.text.text for one in documents)
    words = [match.span() for match in WORD.finditer(pool)]
    texts = [
        pool[words[at][0] : words[at + OVERHEAD_WORDS - 1][1]]
        for at in range(0, len(words) - OVERHEAD_WORDS, OVERHEAD_WORDS)
    ]
    ratios = []
    for one in engine.prepare([Document(text, LABELS) for text in texts]):
        assert one._words is not None
        ratios.append(one.tokens / len(one._words.ids))
    return Metric(
        "window_token_overhead",
        max(ratios),
        "tokens computed per token",
        most=1.2,
        spread=(min(ratios), max(ratios)),
        note=f"the worst of {len(texts)} texts of {OVERHEAD_WORDS:,} words with {len(LABELS)} labels, prompts included",
    )


def by_size(engine: Engine, documents: Sequence[LongDocument], say: Callable[[str], None]) -> list[dict[str, float]]:
    """Return F1 and tokens by the words of a window."""
    rows = []
    gold = [one.gold for one in documents]
    for size in SIZES:
        sized = engine.with_parts(window_words=size)
        prepared = sized.prepare(whole(documents))
        windows = strict(zip(map(answer, sized.infer(prepared)), gold, strict=True))
        alone = strict(zip([in_passages(engine, one, min(size, 360)) for one in documents], gold, strict=True))
        tokens = sum(one.tokens for one in prepared)
        rows.append(
            {"words": size, "precision": windows[0], "recall": windows[1], "f1": windows[2], "passages_f1": alone[2]}
            | {"tokens": tokens}
        )
        say(f"windows of {size} words: F1 {windows[2]:.1f}, as passages {alone[2]:.1f}, {tokens:,} tokens")
    return rows


def show(console: Console, rows: Sequence[Mapping[str, Any]], places: Mapping[str, Sequence[float]]) -> None:
    """Print F1 by corpus and recall by position."""
    table = Table(box=box.SIMPLE_HEAD, title="F1, %")
    for heading in ("corpus", "documents", "words", *places):
        table.add_column(heading, justify="left" if heading == "corpus" else "right")
    for row in rows:
        name = f"{row['corpus']}{' (trained on)' if row['trained_on'] else ''}"
        scores = [f"{row[way]['f1']:.1f}" for way in places]
        table.add_row(name, str(row["documents"]), f"{row['words']:,}", *scores)
    console.print(table)
    table = Table(box=box.SIMPLE_HEAD, title="recall, %, by the word at which an entity starts")
    for heading in ("from word", *places):
        table.add_column(heading, justify="right")
    for at, first in enumerate(PLACES):
        table.add_row(f"{first:,}", *(f"{values[at]:.1f}" for values in places.values()))
    console.print(table)


def main(
    quick: Annotated[bool, typer.Option("--quick", help="The documents not trained on, and no other tables.")] = False,
    data: Annotated[Path, typer.Option(help="The folder of the corpora.")] = DATA,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the model.")] = THREADS,
) -> None:
    """Measure the bundled model on long documents: in windows, as passages, and with the library, which truncates."""
    torch.set_num_threads(threads)
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.getLogger("gliner").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    console = Console(width=None if Console().is_terminal else 160)
    start = time.perf_counter()

    def say(line: str) -> None:
        console.print(f"[dim]{time.perf_counter() - start:6.0f} s[/]  {line}", highlight=False)

    engine = Engine.load(DEMO_MODEL, device="cpu", dtype="float32")
    try:
        documents = long_documents.read(data, engine)
    except FileNotFoundError as error:
        raise typer.BadParameter(str(error)) from None
    if quick:
        documents = [one for one in documents if one.held_out]
    say(f"{len(documents)} documents of up to {max(len(one.text.words) for one in documents):,} words")
    found = read_all(engine, library.load(DEMO_MODEL, torch.float32), documents, say)
    measured = [*metrics(documents, found), overhead(engine, documents)]
    rows, places = by_corpus(documents, found), by_place(documents, found)
    show(console, rows, places)
    if not quick:
        held_out = [one for one in documents if one.held_out]
        details = {
            "corpora": rows,
            "recall_by_place": {"from_word": list(PLACES), **places},
            "window_words": by_size(engine, held_out, say),
            "labels": many_labels.measure(engine, data, 2, say),
        }
        report.write(RESULTS, report.as_json(measured, threads, details))
        longest = max(len(one.text.words) for one in documents)
        title = f"{len(documents)} documents of up to {longest:,} words, bundled model"
        names = [f"{first:,}-{last:,}" for first, last in pairwise(PLACES)] + [f"{PLACES[-1]:,} on"]
        recall_picture.draw(RESULTS.with_suffix(".svg"), names, places, title)
    report.show(measured, console)
    say(report.verdict(measured))


if __name__ == "__main__":
    typer.run(main)

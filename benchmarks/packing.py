"""Measure the packed engine against the model library: `python -m benchmarks.packing [--quick]`."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import torch
import transformers
import typer

from benchmarks import (
    company,
    encoders,
    extraction,
    growth,
    heads,
    host,
    library,
    memory,
    padding,
    picture,
    report,
    sameness,
    subject,
)
from benchmarks.sameness import Differences
from benchmarks.session import Half, Session
from benchmarks.subject import Subject

RESULTS: Final = Path(__file__).parent / "results"

THREADS: Final = 2
"""The goals are for so many cores."""

SMALL: Final = {
    "extract_fp32_vs_padded8": 7.0,
    "extract_fp32_vs_best": 2.3,
    "extract_bf16_vs_best_fp32": 6.5,
    "extract_bf16_vs_best_bf16": 4.5,
}
BASE: Final = {"extract_fp32_vs_best": 2.1}
ENCODER: Final = {"float32": 0.85, "bfloat16": 0.75}
OTHERS: Final = 1000
"""Texts that keep another one company."""


def measure_small(session: Session) -> None:
    """Measure answers, encoder, head, host, padding and company on DeBERTa-v3-small's shape."""
    small, half = session.open("small")
    exact = _answers(session, small, half, SMALL, "")
    _encoder(session, small, half, "")
    rows = subject.rows(small.engine, small.asked.texts, small.asked.labels)
    session.say("small: the head against the library's")
    session.metrics += heads.measure(small, rows, session.rounds, quick=session.quick)
    session.say("small: the host's part")
    session.metrics += host.measure(half.engine if half else small.engine, small.asked, session.rounds)
    found, session.details["padding"] = padding.measure(small, rows)
    session.metrics += found
    if not session.quick:
        _company(session, small, half, exact, "", OTHERS)


def measure_base(session: Session) -> None:
    """Measure answers, encoder and company on DeBERTa-v3-base's shape."""
    base, half = session.open("base")
    exact = _answers(session, base, half, BASE, "base_")
    _encoder(session, base, half, "base_")
    _company(session, base, half, exact, "base_", OTHERS // 5)


def measure_demo(session: Session) -> None:
    """Measure the bundled model: it is trained, so entities in half precision are judged on it."""
    demo, half = session.open("demo")
    exact = _answers(session, demo, half, {}, "demo_")
    _company(session, demo, half, exact, "demo_", OTHERS)


def measure_growth(session: Session) -> None:
    """Measure more and more texts, and labels, on the small shape."""
    small, half = session.open("small")
    session.say("small: growth in texts and in labels")
    engine = half.engine if half else small.engine
    found, session.details["growth"] = growth.measure(small, engine, session.pool, session.say)
    session.metrics += found


def measure_memory(session: Session) -> None:
    """Measure memory and starts of both shapes, and whether several processes are better than several threads."""
    for name, prefix in (("small", ""), ("base", "base_")):
        measured, half = session.open(name)
        dtypes = ["float32", "bfloat16"] if half else ["float32"]
        session.say(f"{name}: memory, in processes of their own")
        found, footprints = memory.compare(
            measured.folder, dtypes, session.threads, measured.asked, prefix, goals=name == "base"
        )
        session.metrics += found
        session.keep("memory", name, footprints)
        if name == "small":
            session.say("small: one process or several")
            found, session.details["division"] = memory.divide(
                measured.folder, dtypes[-1], session.threads, measured.asked
            )
            session.metrics += found


PARTS: Final = {
    "small": measure_small,
    "growth": measure_growth,
    "base": measure_base,
    "demo": measure_demo,
    "memory": measure_memory,
}


def _answers(
    session: Session, measured: Subject, half: Half | None, goals: Mapping[str, float], prefix: str
) -> Differences:
    """Measure whether the answers are the library's, and how soon they come."""
    name = measured.name
    session.say(f"{name}: logits against the library's, text by text")
    found, exact = sameness.measure(measured, half.engine if half else None, prefix)
    session.metrics += found
    session.keep("library", name, exact._asdict())
    session.say(f"{name}: whole answers, one round of all ways and {session.rounds} of the good ones")
    trained = prefix == "demo_"
    timed = extraction.measure(
        measured,
        half,
        session.rounds,
        goals,
        padded=name != "base",  # there it takes as long as all else together
        prefix=prefix,
        deviation=exact.deviation if trained else None,
        without=(library.SORTED,) if session.quick else (),
    )
    session.metrics += timed.metrics
    session.keep("texts_per_second", name, timed.texts_per_second)
    session.keep("seconds_by_round", name, timed.timed.seconds)
    if timed.failed:
        session.keep("library_fails", name, timed.failed)
    for way, speed in sorted(timed.texts_per_second.items(), key=lambda item: -item[1]):
        session.say(f"  {speed:7.2f} texts/s  {way}")
    return exact


def _encoder(session: Session, measured: Subject, half: Half | None, prefix: str) -> None:
    session.say(f"{measured.name}: the encoder against its products")
    rows = subject.rows(measured.engine, measured.asked.texts, measured.asked.labels)
    shape = encoders.shape(measured.gliner)
    for dtype, engine in (("fp32", measured.engine), ("bf16", half.engine if half else None)):
        if engine is not None:
            name, goal = f"{prefix}encoder_ceiling_{dtype}", ENCODER[engine.info.dtype]
            session.metrics += encoders.measure(engine, shape, rows, session.rounds, name, goal)


def _company(
    session: Session, measured: Subject, half: Half | None, exact: Differences, prefix: str, count: int
) -> None:
    session.say(f"{measured.name}: texts alone and among {count:,}")
    session.metrics += company.measure(measured, half.engine if half else None, session.pool, count, exact, prefix)


def _picture(content: Mapping[str, Any], threads: int, path: Path) -> None:
    about = content["subjects"]["small"]
    speeds = content["texts_per_second"]["small"]
    picture.draw(
        path,
        dict(sorted(speeds.items(), key=lambda item: -item[1])),
        content["padding"],
        f"{about['texts']} texts, {about['words']:,} words, {about['labels']} labels. DeBERTa-v3-small's shape, "
        f"random weights, {threads} CPU threads",
    )


def _quiet() -> None:
    """Keep what the libraries say while loading off the progress lines."""
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.getLogger("gliner").setLevel(logging.ERROR)
    warnings.simplefilter("ignore", FutureWarning)


def main(
    parts: Annotated[
        list[str] | None,
        typer.Argument(help=f"Of {', '.join(PARTS)}; all if none is named. Figures of the others stay in the file."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The main ratios alone, within a minute.")] = False,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the model.")] = THREADS,
    texts: Annotated[int, typer.Option(min=0, help="How many texts; 0: 64, and 12 of the quick measure.")] = 0,
) -> None:
    """Measure the packed engine against the model library, side by side in one run."""
    if unknown := set(parts or ()) - set(PARTS):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: the parts are {', '.join(PARTS)}")
    torch.set_num_threads(threads)
    _quiet()
    session = Session(quick, threads, texts or (12 if quick else 64))
    results = RESULTS / ("packing-quick.json" if quick else "packing.json")
    present = report.read(results) if parts else {}
    for part in parts or (["small"] if quick else PARTS):
        PARTS[part](session)
        content = report.merged(present, report.as_json(session.metrics, threads, session.details))
        report.write(results, content)  # after each part, as the next may take long and fail
    if not quick and "small" in content["subjects"]:
        _picture(content, threads, results.with_suffix(".svg"))
    report.show(session.metrics, session.console)
    session.say(f"{results.relative_to(RESULTS.parents[1])}: {report.verdict(session.metrics)}")


if __name__ == "__main__":
    typer.run(main)

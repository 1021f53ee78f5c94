"""Train the bundled demo model: `python -m training.train_demo_model --data DIR [--minutes N] [--out FOLDER]`."""

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from training.fit import Progress as Fitted

SEED = 20_261
"""Seeds the new weights, the windows, the labels asked and the order of the batches."""

BATCH_WORDS = 800
"""Words of a batch, padding counted."""

PLAIN_LINE_SECONDS = 30.0
"""Time between two lines of progress where the screen is no terminal."""


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line. Exits with code 2 and one line where it is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m training.train_demo_model", description="Train the demo model and write its folder."
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora, a .jsonl file each")
    parser.add_argument("--minutes", type=float, default=46.0, help="time of training (default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, default=Path("packing/demo_model"), help="the model's folder (default: %(default)s)"
    )
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (default: %(default)s)")
    parser.add_argument("--checkpoint", type=Path, help="file to save the state to and to go on from")
    parser.add_argument(
        "--evaluate-only", action="store_true", help="score the model in --out again and write its card anew"
    )
    parsed = parser.parse_args(arguments)
    if not parsed.data.is_dir():
        parser.error(f"--data {parsed.data} is no folder: name the one that holds the corpora's .jsonl files")
    if parsed.minutes <= 0:
        parser.error(f"--minutes {parsed.minutes:g} must be above 0")
    if parsed.evaluate_only and not (parsed.out / "metrics.json").is_file():
        parser.error(f"--evaluate-only: {parsed.out} holds no metrics.json: train the model first")
    return parsed


@contextmanager
def progress(console: Console, minutes: float) -> Iterator[Callable[["Fitted"], None]]:
    """Show the progress of training: a bar on a terminal, else a line now and then."""
    if console.is_terminal:
        columns = (TextColumn("training"), BarColumn(), TextColumn("{task.fields[says]}"), TimeRemainingColumn())
        with Progress(*columns, console=console) as bar:
            task = bar.add_task("training", total=minutes * 60, says="")
            yield lambda now: bar.update(task, completed=now.seconds, says=f"step {now.step}, loss {now.loss:.1f}")
        return
    last = time.monotonic()

    def say(now: "Fitted") -> None:
        nonlocal last
        if time.monotonic() - last >= PLAIN_LINE_SECONDS:
            last = time.monotonic()
            speed = now.examples / now.seconds
            console.print(
                f"{now.seconds / 60:.1f} of {minutes:g} min, step {now.step}, {now.examples} examples,"
                f" {speed:.1f} a second, loss {now.loss:.1f}",
                soft_wrap=True,
            )

    yield say


def main(arguments: list[str] | None = None) -> int:
    """Train, save, score, write the card. Gives the exit code."""
    args = parse_arguments(arguments)
    # Waiting threads that spin steal the time of those they wait for; read once, when torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch

    from training import corpora, fit, model, report
    from training.examples import TEMPLATE_TEXTS, Example, annotate, make_batches, make_round
    from training.model_card import Run, from_json

    console = Console()
    torch.set_num_threads(args.threads)
    fit.keep_freed_memory()
    torch.manual_seed(SEED)
    try:
        read = [text for file in corpora.read_split(args.data, "train").values() for text in file]
    except FileNotFoundError as error:
        console.print(f"error: {error}", soft_wrap=True, markup=False)
        return 2
    if args.evaluate_only:
        run = from_json(json.loads((args.out / "metrics.json").read_text(encoding="utf-8"))).run
    else:
        texts = annotate(read)

        def batches(rng: random.Random) -> list[list[Example]]:
            return make_batches(make_round(texts, rng), BATCH_WORDS, rng)

        new = model.build()
        with progress(console, args.minutes) as show:
            done = fit.fit(new, batches, args.minutes, SEED, show, args.checkpoint)
        model.save(new, args.out)
        run = Run(args.minutes, done.step, done.examples, SEED, args.threads, TEMPLATE_TEXTS)
    report.write(args.out, args.data, run, read, lambda line: console.print(line, soft_wrap=True, markup=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())

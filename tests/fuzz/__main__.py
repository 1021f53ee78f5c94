"""Look for records that break a promise: `python -m tests.fuzz SECONDS`, or `--replay FILE` for one that did."""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import ExitStack, nullcontext, redirect_stderr
from io import StringIO
from pathlib import Path
from random import Random
from typing import NoReturn

PROGRESS_S = 15
SLOWEST_S = 60
LONGEST = 1500
FOUND = Path(tempfile.gettempdir()) / "glistream-fuzz"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("seconds", type=float, nargs="?", default=300, help="how long")
    parser.add_argument("--corpus", type=Path, help="a folder in which inputs that reach new code are kept")
    parser.add_argument("--found", type=Path, default=FOUND, help="a folder for what breaks a promise")
    parser.add_argument("--runs", type=int, default=sys.maxsize, help="the most executions")
    parser.add_argument("--seed", type=int, default=0, help="of the fuzzer's random numbers; 0: another each time")
    parser.add_argument("--mutant", help="a fault to put in, by its name in mutants.py")
    parser.add_argument("--replay", type=Path, help="run one input alone, without a fuzzer")
    return parser.parse_args()


def main() -> None:
    """Run until the time is over, or until something breaks a promise: then exit with 1."""
    asked = arguments()
    cleanup = ExitStack()
    folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="glistream-fuzz-")))
    if asked.replay:
        from tests.fuzz.records import Target

        with cleanup:
            say(", ".join(Target(folder).check(asked.replay.read_bytes())))
        return
    import atheris
    import torch

    torch.set_num_threads(1)
    instrumented = atheris.instrument_imports(include=["schemas", "worker", "packing"], enable_loader_override=False)
    with redirect_stderr(StringIO()), instrumented:  # a line for each module, and the libraries' progress bars
        from tests.fuzz.mutants import HIDDEN, MUTANTS
        from tests.fuzz.mutations import change
        from tests.fuzz.records import Target, tokens
        from tests.fuzz.seeds import seeds

        target = Target(folder / "models")
    cleanup.enter_context((MUTANTS | HIDDEN)[asked.mutant]() if asked.mutant else nullcontext())
    corpus = asked.corpus or folder / "corpus"
    planted, dictionary = folder / "seeds", folder / "tokens"
    for made in (corpus, planted, asked.found):
        made.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(target)):
        (planted / f"{number:03}").write_bytes(seed)
    dictionary.write_text("".join(f'"{_escaped(token)}"\n' for token in tokens()))

    executions, kinds = 0, Counter[str]()
    started = told = time.monotonic()

    def summary() -> str:
        seconds = time.monotonic() - started
        outcomes = ", ".join(f"{kind} {number:,}" for kind, number in sorted(kinds.items()))
        return f"{executions:,} executions in {seconds:.0f} s, {executions / seconds:.0f}/s; outcomes: {outcomes}"

    def end(code: int) -> NoReturn:
        say(summary())
        cleanup.close()
        os._exit(code)  # libFuzzer would take any exception for a finding

    def run(data: bytes) -> None:
        nonlocal executions, told
        try:
            kinds.update(target.check(data))
        except Exception:
            executions += 1
            file = asked.found / f"{hashlib.sha256(data).hexdigest()[:16]}"
            file.write_bytes(data)
            say(traceback.format_exc())
            say(f"input: {data!r}\nkept in {file}; again: python -m tests.fuzz --replay {file}")
            end(1)
        executions += 1
        now = time.monotonic()
        if now - started >= asked.seconds or executions >= asked.runs:
            end(0)
        if now - told >= PROGRESS_S:
            told = now
            say(f"{summary()}; {len(list(corpus.iterdir()))} inputs reach new code")

    def mutate(data: bytes, longest: int, seed: int) -> bytes:
        random = Random(seed)
        changed = change(data, random) if random.random() < 0.5 else None
        mutated: bytes = atheris.Mutate(data, longest) if changed is None else changed
        return mutated[:longest]

    options = {
        "artifact_prefix": f"{asked.found}/",  # for what Python doesn't see: a hang, a fault in native code
        "dict": dictionary,
        "len_control": 0,
        "max_len": LONGEST,
        "rss_limit_mb": 0,
        "seed": asked.seed,
        "timeout": SLOWEST_S,
        "verbosity": 0,
    }
    flags = [f"-{name}={value}" for name, value in options.items()]
    atheris.Setup([sys.argv[0], *flags, str(corpus), str(planted)], run, custom_mutator=mutate)
    atheris.Fuzz()


def _escaped(token: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in token)


if __name__ == "__main__":
    main()

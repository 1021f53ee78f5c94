"""Run seeds: `python -m tests.simulation SEED` prints the steps of one, `FIRST LAST` says which of many fail."""

import sys
import time
from collections import Counter

from tests.simulation.simulate import quiet, run


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


def main(arguments: list[str]) -> int:
    """Return 1 where a promise is broken."""
    if len(arguments) == 1:
        with quiet():
            run(int(arguments[0]), say)
        return 0
    first, last = (int(argument) for argument in arguments)
    started = time.perf_counter()
    failed: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    steps = 0
    with quiet():
        for seed in range(first, last):
            try:
                simulation = run(seed)
            except Exception as error:
                say(f"{seed}: {type(error).__name__}: {error}"[:400])
                failed[str(error).partition(":")[0]] += 1
            else:
                steps += simulation.steps
                kinds += simulation.ledger.kinds
    say(f"{last - first} seeds in {time.perf_counter() - started:.1f} s, {steps} steps, {dict(kinds)}")
    say(f"failed: {dict(failed)}" if failed else "no promise was broken")
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

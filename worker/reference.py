"""The README's tables, made from what they are about: the settings, and which models are packed, how fast it is.

`python -m worker.reference` writes each between its two marks; with `--check` it says whether they are in step.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic.fields import FieldInfo

from packing.encoders import PACKED
from packing.heads.supported import FIELDS
from worker.config import Settings
from worker.flags import choices, shown

README = Path(__file__).parent.parent / "README.md"
RESULTS = README.parent / "benchmarks" / "results"

SHAPES: Final = ("small", "base")
METHODS: Final = {
    "sequential": "one by one",
    "padded 8": "batches of 8 as they come",
    "sorted 8": "batches of 8, sorted by length",
    "its packing": "its own packing, sorted by length",
}


CORPORA: Final = {
    "sec_test": "contracts (SEC filings)",
    "sec_train": "contracts (SEC filings)",
    "wikigold": "encyclopedia pages (wikigold)",
    "gum_sa_all": "biographies and travel guides (GUM)",
    "gum_train": "news, interviews and papers (GUM)",
}


def settings_table() -> str:
    """Return the settings as a Markdown table: name, default, what it may be, what it does."""
    rows = ["| setting | default | values | what it does |", "|---|---|---|---|"]
    for name, field in Settings.model_fields.items():
        rows.append(f"| `{name}` | `{shown(field.default)}` | {_values(field)} | {field.description} |")
    return "\n".join(rows)


def packed_table() -> str:
    """Return what is packed as a Markdown table: each field of a model's configuration, the values, what it says."""
    rows = ["| field of the configuration | packed | what it says |", "|---|---|---|"]
    kinds = ", ".join(f"`{kind}`" for kind in PACKED)
    rows.append(f"| `model_type` of the encoder | {kinds} | the encoder's family |")
    for field in FIELDS:
        # what is no value of its own is the field left out
        values = dict.fromkeys(json.dumps(value) for value in field.packed or () if value not in (None, ""))
        packed = ", ".join(f"`{value}`" for value in values) or ("any" if field.packed is None else "not set")
        rows.append(f"| `{field.name}` | {packed} | {field.meaning} |")
    return "\n".join(rows)


def speed_table() -> str:
    """Return what `make bench-packing` found as Markdown: texts a second by method, model and dtype."""
    found = json.loads((RESULTS / "packing.json").read_text())
    speeds = found["texts_per_second"]
    columns = [(model, dtype) for model in SHAPES for dtype in ("float32", "bfloat16")]
    methods = dict.fromkeys(way.rpartition(", ")[0] for model in SHAPES for way in speeds[model])
    rows = [
        "| texts a second | " + " | ".join(f"{model}, {dtype}" for model, dtype in columns) + " |",
        "|---|" + "---:|" * len(columns),
    ]
    for method in sorted(methods, key=lambda method: -speeds["small"].get(f"{method}, float32", 0)):
        cells = [speeds[model].get(f"{method}, {dtype}") for model, dtype in columns]
        name = method if method == "Glistream" else f"the library, {METHODS[method]}"
        rows.append(f"| {name} | " + " | ".join("" if cell is None else f"{cell:.1f}" for cell in cells) + " |")
    machine, versions = found["machine"], found["versions"]
    rows.append("")
    rows.append(
        f"{machine['processor']}, {machine['threads']} threads; torch {versions['torch']}, gliner {versions['gliner']}."
    )
    return "\n".join(rows)


def long_table() -> str:
    """Return what `make bench-long` found of long documents as Markdown: F1 by corpus and way of reading."""
    found = json.loads((RESULTS / "long.json").read_text())
    ways = [way for way in found["recall_by_place"] if way != "from_word"]
    rows = ["| F1, % | documents | words | " + " | ".join(ways) + " |", "|---|---:|---:|" + "---:|" * len(ways)]
    for row in found["corpora"]:
        scores = " | ".join(f"{row[way]['f1']:.1f}" for way in ways)
        name = CORPORA[row["corpus"]] + (", trained on" if row["trained_on"] else "")
        rows.append(f"| {name} | {row['documents']} | {row['words']:,} | {scores} |")
    sizes = found["window_words"]
    rows += ["", "| words of a window | " + " | ".join(str(row["words"]) for row in sizes) + " |"]
    rows.append("|---|" + "---:|" * len(sizes))
    rows.append("| F1 of those not trained on, % | " + " | ".join(f"{row['f1']:.1f}" for row in sizes) + " |")
    rows.append("| tokens computed | " + " | ".join(f"{row['tokens']:,}" for row in sizes) + " |")
    return "\n".join(rows)


def labels_table() -> str:
    """Return what `make bench-long` found of long label lists as Markdown: F1 by labels and labels at once."""
    found = json.loads((RESULTS / "long.json").read_text())["labels"]
    f1 = {(row["labels"], row["at_once"]): row["f1"] for row in found}
    counts = sorted({labels for labels, _ in f1})
    sizes = sorted({at_once for _, at_once in f1}, reverse=True)
    rows = ["| F1, % | " + " | ".join(f"{size} at once" for size in sizes) + " |", "|---|" + "---:|" * len(sizes)]
    for count in counts:
        cells = [f"{f1[count, size]:.1f}" if (count, size) in f1 else "" for size in sizes]
        rows.append(f"| {count} labels | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def delivery_table() -> str:
    """Return what `make test-delivery` found as Markdown: each kind of fault, how often, and what it cost."""
    found = json.loads((RESULTS / "delivery.json").read_text())
    kinds: dict[str, list[dict[str, Any]]] = {}
    for name, row in found["faults"].items():
        kinds.setdefault(_kind(name), []).append(row)
    rows = ["| fault | times | lost | doubled | out of order | longest recovery |", "|---|---:|---:|---:|---:|---:|"]
    for kind, parts in sorted(kinds.items(), key=lambda kind: -sum(row["tried"] for row in kind[1])):
        sums = " | ".join(
            f"{sum(row[count] for row in parts):,}" for count in ("tried", "lost", "doubled", "out_of_order")
        )
        recoveries = [row["recovery_s"] for row in parts if row["recovery_s"] is not None]
        rows.append(f"| {kind} | {sums} | {f'{max(recoveries):.1f} s' if recoveries else ''} |")
    versions = found["versions"]
    rows.append("")
    rows.append(
        f"{found['kills']} workers killed; Kafka {versions['kafka']}, confluent-kafka {versions['confluent-kafka']}, "
        f"{found['machine']['cores']} cores, {found['seconds'] / 60:.0f} minutes."
    )
    return "\n".join(rows)


def _kind(fault: str) -> str:
    """Return the row of the README's table to which a fault belongs: all steps are one, and all calls."""
    if re.fullmatch(r"SIGKILL [a-z]+_[a-z_]+|SIGKILL tokenised", fault):
        return "SIGKILL at each step of a micro-batch"
    return fault.partition(":")[0]


TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "settings": settings_table,
    "packed": packed_table,
    "speed": speed_table,
    "long": long_table,
    "labels": labels_table,
    "delivery": delivery_table,
}


def _values(field: FieldInfo) -> str:
    bounds = {
        limit: value
        for part in field.metadata
        for limit in ("ge", "le")
        if (value := getattr(part, limit, None)) is not None
    }
    return f"{bounds['ge']:,} to {bounds['le']:,}" if bounds else choices(field).replace("|", ", ").lower()


def written(readme: str) -> str:
    """Return the README with the tables as they should be.

    Raises:
        ValueError: the README lacks a mark.
    """
    for name, table in TABLES.items():
        first, last = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        head, begin, rest = readme.partition(first)
        _, end, tail = rest.partition(last)
        if not (begin and end):
            raise ValueError(f"the README lacks {first} or {last}")
        readme = f"{head}{first}\n{table()}\n{last}{tail}"
    return readme


def main(arguments: Sequence[str]) -> int:
    """Write the tables, or with `--check` compare them; returns the exit code."""
    present = README.read_text()
    wanted = written(present)
    if "--check" in arguments:
        if present != wanted:
            print("README.md is out of step with the code: run `make generate`")  # noqa: T201
        return int(present != wanted)
    README.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

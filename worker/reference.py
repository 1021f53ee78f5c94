"""The README's table of settings, made from the settings class.

`python -m worker.reference` writes it between its two marks; with `--check` it says whether it is in step.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic.fields import FieldInfo

from worker.config import Settings
from worker.flags import choices, shown

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- settings: begin -->", "<!-- settings: end -->"


def table() -> str:
    """Return the settings as a Markdown table: name, default, what it may be, what it does."""
    rows = ["| setting | default | values | what it does |", "|---|---|---|---|"]
    for name, field in Settings.model_fields.items():
        rows.append(f"| `{name}` | `{shown(field.default)}` | {_values(field)} | {field.description} |")
    return "\n".join(rows)


def _values(field: FieldInfo) -> str:
    bounds = {
        limit: value
        for part in field.metadata
        for limit in ("ge", "le")
        if (value := getattr(part, limit, None)) is not None
    }
    return f"{bounds['ge']:,} to {bounds['le']:,}" if bounds else choices(field).replace("|", ", ").lower()


def written(readme: str) -> str:
    """Return the README with the table as it should be.

    Raises:
        ValueError: the README lacks the marks.
    """
    head, begin, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the README lacks {BEGIN} or {END}")
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


def main(arguments: Sequence[str]) -> int:
    """Write the table, or with `--check` compare it; returns the exit code."""
    present = README.read_text()
    wanted = written(present)
    if "--check" in arguments:
        if present != wanted:
            print("README.md is out of step with the settings: run `make generate`")  # noqa: T201
        return int(present != wanted)
    README.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

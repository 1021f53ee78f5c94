"""Write the JSON Schemas and the AsyncAPI document: `python -m schemas.export`.

`--check` writes nothing and exits 1 where a committed file is not what would be written.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from schemas import asyncapi
from schemas.events import DeadLetter, EntityEvent, TextEvent
from schemas.json_schemas import standalone

GENERATED = Path(__file__).parent / "generated"

_DOCUMENTS: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "text-event": ("text-event.schema.json", lambda: standalone(TextEvent)),
    "entity-event": ("entity-event.schema.json", lambda: standalone(EntityEvent)),
    "dead-letter": ("dead-letter.schema.json", lambda: standalone(DeadLetter)),
    "asyncapi": ("asyncapi.json", asyncapi.document),
}

NAMES = tuple(_DOCUMENTS)
"""The names that `text` knows."""


def text(name: str) -> str:
    """Return one document as it is written to its file, newline at the end.

    Args:
        name: one of `NAMES`.

    Raises:
        KeyError: there is no document of that name.
    """
    _, build = _DOCUMENTS[name]
    return json.dumps(build(), indent=2, ensure_ascii=False) + "\n"


def out_of_step(folder: Path = GENERATED) -> list[Path]:
    """List the files in `folder` that are missing or not what would be written."""
    expected = {folder / file: text(name) for name, (file, _) in _DOCUMENTS.items()}
    return [
        path for path, content in expected.items() if not path.is_file() or path.read_text(encoding="utf-8") != content
    ]


def main(arguments: Sequence[str] | None = None, folder: Path = GENERATED) -> int:
    """Write or check the files in `folder`; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m schemas.export", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if a file is out of step")
    if parser.parse_args(arguments).check:
        stale = out_of_step(folder)
        for path in stale:
            sys.stderr.write(f"{path.name} is out of step with the models: run `python -m schemas.export`\n")
        return 1 if stale else 0
    for name, (file, _) in _DOCUMENTS.items():
        (folder / file).write_text(text(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A picture as SVG, the same bytes for the same figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
from matplotlib.figure import Figure  # after the choice of backend


@contextmanager
def svg(path: Path, width: float, height: float) -> Iterator[Figure]:
    """Yield a figure of so many inches, and write it when the block is through."""
    with mpl.rc_context({"svg.hashsalt": "glistream", "font.size": 9, "svg.fonttype": "none"}):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None})

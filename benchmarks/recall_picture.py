"""One picture of long documents: how much is found, by the position in the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.svg import svg

_STYLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "windows": {"color": "#0369a1", "marker": "o", "linewidth": 2},
    "passages alone": {"color": "#7dd3fc", "marker": "s", "linestyle": "--"},
    "the library, truncating": {"color": "#94a3b8", "marker": "x"},
}


def draw(path: Path, places: Sequence[str], recall: Mapping[str, Sequence[float]], title: str) -> None:
    """Write the picture as SVG.

    Args:
        path: Where to.
        places: Parts of the text, from its start on.
        recall: By way of reading, the share of each part's entities that is found, in percent.
        title: What was measured on what.
    """
    with svg(path, 7.2, 3.4) as figure:
        axes = figure.subplots()
        axes.set_title(title, fontsize=10)
        for way, values in recall.items():
            axes.plot(range(len(places)), values, label=way, **_STYLES[way])
        axes.set_xticks(range(len(places)), places)
        axes.set_xlabel("word of the text")
        axes.set_ylabel("entities found, %")
        axes.set_ylim(0, 100)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)

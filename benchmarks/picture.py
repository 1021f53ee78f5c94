"""One picture of the results: texts a second, and the share of padding, by method."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from matplotlib.axes import Axes

from benchmarks.svg import svg

_OURS: Final = "#0369a1"
_THEIRS: Final = "#94a3b8"
_SECOND: Final = {_OURS: "#7dd3fc", _THEIRS: "#d3dae3"}


def draw(path: Path, throughput: Mapping[str, float], padding: Mapping[str, Mapping[str, float]], title: str) -> None:
    """Write the picture as SVG.

    Args:
        path: Where to.
        throughput: Texts a second by method; ours start with `Glistream`.
        padding: By method the shares `linear` and `attention`, in [0, 1].
        title: What was measured on what.
    """
    height = 0.32 * max(len(throughput), 2 * len(padding)) + 1.4
    with svg(path, 9.6, height) as figure:
        speed, share = figure.subplots(1, 2)
        figure.suptitle(title, fontsize=10)
        _bars(speed, {name: (value,) for name, value in throughput.items()}, "texts a second", "{:.1f}")
        both = {name: (100 * shares["linear"], 100 * shares["attention"]) for name, shares in padding.items()}
        _bars(share, both, "padding in linear layers (dark) and in attention (light), %", "{:.1f}")
        share.set_xlim(0, 100)


def _bars(axes: Axes, values: Mapping[str, tuple[float, ...]], label: str, shown: str) -> None:
    names = list(values)
    count = max(len(value) for value in values.values())
    height = 0.8 / count
    for number in range(count):
        places = [at + (number - (count - 1) / 2) * height for at in range(len(names))]
        colours = [_OURS if name.startswith("Glistream") else _THEIRS for name in names]
        bars: Any = axes.barh(
            places,
            [values[name][number] for name in names],
            height=height * 0.92,
            color=colours if number == 0 else [_SECOND[colour] for colour in colours],
        )
        axes.bar_label(bars, labels=[shown.format(values[name][number]) for name in names], padding=3, fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.margins(x=0.15)
    axes.spines[["top", "right"]].set_visible(False)

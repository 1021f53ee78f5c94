"""How much of the work is on padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from benchmarks import library
from benchmarks.report import Metric
from benchmarks.subject import Subject
from packing.forward import Row
from packing.pack import ROUNDING, Pack


class Padding(NamedTuple):
    """Shares of the work that are for no text.

    Attributes:
        linear: Of the rows in the encoder's linear layers.
        attention: Of the scores in its attention.
    """

    linear: float
    attention: float


ATTENTION: Final = 0.03


def measure(measured: Subject, rows: Sequence[Row]) -> tuple[list[Metric], dict[str, dict[str, float]]]:
    """Return ours as metrics, and that of all ways as shares by way."""
    forward: Any = measured.engine._forward
    packs = list(forward.packs(rows))
    by_row = {row: length for pack in packs for row, length in zip(pack.order, pack.lengths, strict=True)}
    lengths = [by_row[row] for row in range(len(rows))]
    ours = of_packs(packs)
    order = library.by_length(measured.asked.texts)
    metrics = [
        Metric(
            "padding_linear",
            ours.linear,
            "of the rows",
            most=(ROUNDING - 1) * len(packs) / sum(len(pack.ids) for pack in packs),
            note=f"packs' totals are rounded up to {ROUNDING}; more than that isn't allowed",
        ),
        Metric("padding_attention", ours.attention, "of the scores", most=ATTENTION),
    ]
    shares = {way: of_library(way, lengths, order)._asdict() for way in library.WAYS}
    return metrics, {"Glistream": ours._asdict()} | shares


def of_packs(packs: Sequence[Pack]) -> Padding:
    """Return ours: the rounding of each pack's total in the linear layers, and scores that no segment asks for."""
    lengths = [length for pack in packs for length in pack.lengths]
    rows = sum(len(pack.ids) for pack in packs)
    scores = sum(count * length**2 for pack in packs for _, count, length in pack.groups)
    return _padding(lengths, rows, scores)


def of_library(way: str, lengths: Sequence[int], order: Sequence[int], batch: int = library.BATCH) -> Padding:
    """Return that of one of the library's ways.

    Args:
        way: A key of `library.WAYS`.
        lengths: Sub-tokens of each text's sequence.
        order: The texts by length, as `library.by_length` gives them.
        batch: Texts in a batch.
    """
    if way == "sequential":
        batch = 1
    ordered = [lengths[i] for i in order] if way in ("sorted 8", "its packing") else list(lengths)
    rows = scores = 0
    for at in range(0, len(ordered), batch):
        members = ordered[at : at + batch]
        count, longest = library.packed_shape(members) if way == "its packing" else (len(members), max(members))
        rows += count * longest
        scores += count * longest**2
    return _padding(lengths, rows, scores)


def _padding(lengths: Sequence[int], rows: int, scores: int) -> Padding:
    return Padding(1 - sum(lengths) / rows, 1 - sum(length**2 for length in lengths) / scores)

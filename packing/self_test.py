"""At a start: which way of running the model is fast and gives the library's own answers, here and now."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor

from packing.encoders.unpackable import Unpackable
from packing.errors import ModelError
from packing.forward import LogitForward, Row
from packing.packed_forward import PackedForward
from packing.padded_forward import PaddedForward
from packing.precision import Precision

LABELS: Final = ("person", "organization", "location", "date")
_PROSE: Final = (
    "The committee met on Thursday in Lisbon. Dr. Amara Okafor of the Harbour Institute presented the figures for 2019 "
    "and asked the members from Denmark, Peru and New Zealand to check them before the end of March. "
)
TEXTS: Final = (
    "Lisbon",
    "Ms. Okafor (born 4 May 1971) chairs Harbour Institute's board; e-mail: board@harbour.example!",
    _PROSE,
    "Rain.",
    _PROSE * 2,
    _PROSE * 6,
    "On Friday the 3rd they flew from Wellington to Lima with KLM.",
)
"""Texts of very different lengths, from one word to some 220: short and long ways through the attention are taken."""

EXACT: Final = 1e-4
"""Largest difference from the library's logits in float32, in their standard deviations. Where the library differs
from itself by more than a tenth of that, between a batch and a text alone, ten times its own difference is allowed."""

ROUNDED: Final = 0.5
ROUNDED_RMS: Final = 0.1
"""Largest difference in half precision, and its root mean square, in standard deviations of the logits."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Choice:
    """The way chosen.

    Attributes:
        forward: The model, ready.
        backend: See `ModelInfo.backend`.
        dtype: Of its weights.
        why: Why this one, in a line.
        steps: Why not the ones before it, a line each.
    """

    forward: LogitForward
    backend: str
    dtype: torch.dtype
    why: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """The library's own answers, float32.

    Attributes:
        logits: Of all spans that exist, row by row, each row alone, `[N]`.
        deviation: Their standard deviation.
        noise: The largest difference from them when the library reads rows in batches.
        width: See `LogitForward.width`.
    """

    logits: Tensor
    deviation: float
    noise: float
    width: int | None


def choose(gliner: Any, rows: Sequence[Row], precisions: Sequence[Precision], suffix: tuple[int, ...]) -> Choice:
    """Return the first way that passes: packed in each dtype, then the library's own padded forward in each.

    Each step down is logged as a warning.

    Args:
        gliner: The library's object in float32. What is returned may hold its weights, or copies.
        rows: What to compare, see `TEXTS`.
        precisions: The dtypes to try, float32 last.
        suffix: Ids that end every sequence.

    Raises:
        ModelError: Not even the library's own forward in float32 gives finite scores.
    """
    library = PaddedForward(gliner, suffix)
    reference = refer(library, rows)
    steps: list[str] = []
    for backend, precision, build in _ways(gliner, precisions, suffix, library):
        name = f"{backend} {str(precision.dtype).removeprefix('torch.')}"
        try:
            forward = build()
            passed, found = examine(forward.logits(rows), reference, precision.dtype)
        except Unpackable as reason:
            passed, found = False, str(reason)
        except Exception as error:  # whatever a backend does wrong, the next one may do right
            passed, found = False, f"{type(error).__name__}: {error}"
        if passed:
            if backend == "packed" and forward.padding:
                backend = "packed heads"
                steps.append(f"the encoder reads padded batches: {forward.padding}")
                _log.warning("The model is packed in part: %s", steps[-1])
            return Choice(forward, backend, precision.dtype, f"{precision.why}; self-test: {found}", tuple(steps))
        steps.append(f"{name} isn't used: {found}")
        _log.warning("The model's self-test steps down: %s", steps[-1])
    raise ModelError("the model's scores are no numbers, also in the library's own forward in float32")


def refer(library: LogitForward, rows: Sequence[Row]) -> Reference:
    """Run the library on each row alone, and for its own noise on the shorter half of them together."""
    alone = [logits for row in rows for logits in library.logits([row])]
    shorter = sorted(range(len(rows)), key=lambda i: len(rows[i].ids))[: (len(rows) + 1) // 2]
    together = library.logits([rows[i] for i in shorter])
    by_itself = _values([alone[i] for i in shorter], library.width)
    values = _values(alone, library.width)
    noise = float((by_itself - _values(together, library.width)).abs().max())
    return Reference(values, float(values.std()), noise, library.width)


def examine(logits: Sequence[Tensor], reference: Reference, dtype: torch.dtype) -> tuple[bool, str]:
    """Return whether logits are the reference's, as far as the dtype can be, and what was found."""
    difference = _values(logits, reference.width) - reference.logits
    if not difference.isfinite().all():
        return False, "scores are no numbers"
    deviation = reference.deviation
    largest = float(difference.abs().max())
    found = f"logits within {largest / deviation:.1g} standard deviations of the library's in float32"
    if dtype == torch.float32:
        return largest <= max(EXACT * deviation, 10 * reference.noise), found
    rms = float(difference.square().mean().sqrt())
    return largest <= ROUNDED * deviation and rms <= ROUNDED_RMS * deviation, found


def existing(logits: Tensor, width: int | None) -> Tensor:
    """Return the logits of what exists, `[N]`: without the spans that end past the last word.

    `logits` are as `LogitForward.logits` gives them, `width` is `LogitForward.width`.
    """
    if width is None:
        return logits.flatten()
    words, widths, _ = logits.shape
    last = torch.arange(words)[:, None] + torch.arange(widths)
    return logits[(last < words).to(logits.device)].flatten()


def _values(logits: Sequence[Tensor], width: int | None) -> Tensor:
    return torch.cat([existing(one, width) for one in logits])


def _ways(
    gliner: Any, precisions: Sequence[Precision], suffix: tuple[int, ...], library: PaddedForward
) -> Iterator[tuple[str, Precision, Callable[[], LogitForward]]]:
    def padded(dtype: torch.dtype) -> LogitForward:
        if dtype == torch.float32:
            return library
        halved = copy.copy(gliner)
        halved.model = copy.deepcopy(gliner.model).to(dtype)
        return PaddedForward(halved, suffix)

    for precision in precisions:
        yield "packed", precision, partial(PackedForward, gliner, suffix, precision.dtype)
    for precision in precisions:
        yield "padded", precision, partial(padded, precision.dtype)

"""Hidden states of a pack -> logits of its segments."""

from __future__ import annotations

from packing.heads.head import Head, Shape, build

__all__ = ["Head", "Shape", "build"]

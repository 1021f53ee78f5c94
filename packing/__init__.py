"""Find entities in texts with a GLiNER model: `Engine.load(model).extract(documents)`.

Importing this package is cheap: torch is imported when a model is loaded.
"""

from pathlib import Path
from typing import Final

from packing.documents import Document, Entity, Overlap, Result
from packing.engine import Engine, ModelInfo, Prepared
from packing.errors import BadScores, ModelError, TooManyEntities, WindowTooLong

DEMO_MODEL: Final = Path(__file__).parent / "demo_model"
"""The folder of the small model that comes with the package."""

__all__ = [
    "DEMO_MODEL",
    "BadScores",
    "Document",
    "Engine",
    "Entity",
    "ModelError",
    "ModelInfo",
    "Overlap",
    "Prepared",
    "Result",
    "TooManyEntities",
    "WindowTooLong",
]

"""Where the corpora are, for tests that read them."""

from pathlib import Path

import pytest

from tests.corpora import corpora
from training.corpora import Text, read_split


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the corpora, which are other people's texts and not part of the repository."""
    return corpora()


@pytest.fixture(scope="session")
def train_texts(data: Path) -> list[Text]:
    return [text for texts in read_split(data, "train").values() for text in texts]


@pytest.fixture(scope="session")
def held_out_texts(data: Path) -> list[Text]:
    return [text for texts in read_split(data, "test").values() for text in texts]

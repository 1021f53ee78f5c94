"""Where the corpora are, for tests that read them."""

from pathlib import Path

import pytest

from training.corpora import Text, read_split

DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the corpora, which are other people's texts and not part of the repository."""
    if not DATA.is_dir():
        pytest.skip("the corpora aren't here: they belong into ../shared/data beside the repository")
    return DATA


@pytest.fixture(scope="session")
def train_texts(data: Path) -> list[Text]:
    return [text for texts in read_split(data, "train").values() for text in texts]


@pytest.fixture(scope="session")
def held_out_texts(data: Path) -> list[Text]:
    return [text for texts in read_split(data, "test").values() for text in texts]

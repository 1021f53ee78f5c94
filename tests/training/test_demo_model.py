"""The folder that is shipped, loaded as anyone would."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from training.model_card import folder_bytes, from_json, write_card

FOLDER = Path(__file__).parents[2] / "packing" / "demo_model"

LOAD = """
import json, sys
from gliner import GLiNER
model = GLiNER.from_pretrained(sys.argv[1], local_files_only=True)
metrics = json.load(open(sys.argv[1] + "/metrics.json"))
labels = ["person", "organization", "location", "date", "product", "event"]
found = [model.predict_entities(text, labels, threshold=metrics["threshold"]) for text in sys.argv[2:]]
print(json.dumps({
    "found": found,
    "dtypes": sorted({str(weight.dtype) for weight in model.parameters()}),
    "limit": model.data_processor.transformer_tokenizer.model_max_length,
}))
"""

TEXTS = (
    "Tim Cook met Angela Merkel in Berlin.",
    "The meeting was on 3 March 2021 and lasted an hour.",
    "It is not clear what to do about this.",
)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What a fresh process finds, without any hub, started in an empty folder."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path_factory.mktemp("hub"))}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(FOLDER), *TEXTS],
        cwd=tmp_path_factory.mktemp("empty"),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


def pairs(loaded: dict[str, object], index: int) -> set[tuple[str, str]]:
    found = loaded["found"]
    assert isinstance(found, list)
    return {(entity["text"], entity["label"]) for entity in found[index]}


def test_it_finds_people_and_places_in_a_fresh_process_without_a_hub(loaded: dict[str, object]) -> None:
    assert {("Tim Cook", "person"), ("Angela Merkel", "person"), ("Berlin", "location")} <= pairs(loaded, 0)


def test_it_finds_a_date(loaded: dict[str, object]) -> None:
    assert ("3 March 2021", "date") in pairs(loaded, 1)


def test_it_finds_nothing_where_nothing_is(loaded: dict[str, object]) -> None:
    assert pairs(loaded, 2) == set()


def test_it_computes_in_float32_and_knows_its_limit(loaded: dict[str, object]) -> None:
    assert loaded["dtypes"] == ["torch.float32"]
    assert loaded["limit"] == 512


def test_the_folder_is_at_most_48_megabytes() -> None:
    assert 30_000_000 < folder_bytes(FOLDER) <= 48_000_000


def test_its_tokenizer_file_cuts_no_text() -> None:
    tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    assert len(tokenizer.encode("berlin " * 900).ids) == 902


def test_no_file_of_the_folder_names_a_path_of_the_machine_it_was_made_on() -> None:
    for file in FOLDER.glob("*.json"):
        content = file.read_text(encoding="utf-8")
        assert re.findall(r'"(?:/|[A-Z]:\\\\)[^"\s]+/[^"]*"', content) == [], file.name
        assert "/tmp" not in content, file.name


def test_the_card_is_the_one_its_metrics_give() -> None:
    raw = json.loads((FOLDER / "metrics.json").read_text(encoding="utf-8"))
    assert (FOLDER / "README.md").read_text(encoding="utf-8") == write_card(from_json(raw))


def test_the_card_names_the_licence_and_source_of_every_corpus() -> None:
    raw = json.loads((FOLDER / "metrics.json").read_text(encoding="utf-8"))
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert len(raw["corpora"]) == 9
    for use in raw["corpora"]:
        assert use["source"] in card
        assert all(licence and licence in card for licence in use["licences"])

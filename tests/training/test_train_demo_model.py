from pathlib import Path

import pytest

from training.train_demo_model import main, parse_arguments


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--data", "no/such/folder"], "no/such/folder"),
        (["--data", ".", "--minutes", "0"], "--minutes 0"),
        (["--data", ".", "--evaluate-only", "--out", "empty"], "metrics.json"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_code:
        parse_arguments(arguments)
    assert exit_code.value.code == 2
    assert named in capsys.readouterr().err


def test_a_data_folder_without_the_corpora_names_the_missing_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data", str(tmp_path)]) == 2
    assert "wnut17_test.jsonl is not in the data folder" in capsys.readouterr().out

import json
import logging as stdlib_logging

import pytest
import structlog

from worker import logging

LOUD = "Ann lives in Oslo"


@pytest.fixture(autouse=True)
def _as_it_was() -> object:
    root = stdlib_logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    stdlib_logging.captureWarnings(False)
    structlog.reset_defaults()


def test_a_library_that_brought_its_own_handler_speaks_in_our_form(capsys: pytest.CaptureFixture[str]) -> None:
    library = stdlib_logging.getLogger("transformers")
    logging.configure("json", "info")
    library.addHandler(stdlib_logging.StreamHandler())
    library.propagate = False
    logging.adopt_libraries()
    library.warning("slow")
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["event"] == "slow"


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_librarys_traceback_shows_no_local_variable(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    logging.configure(form, "info")  # type: ignore[arg-type]
    secret = LOUD
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        stdlib_logging.getLogger("transformers").error("failed", exc_info=True)
    said = capsys.readouterr().err
    assert "broken" in said
    assert secret not in said


def test_a_line_is_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    logging.configure("json", "info")
    structlog.get_logger().info("published", records=3, seconds=0.123456)
    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["records"], line["seconds"], line["level"]) == ("published", 3, 0.1235, "info")


def test_what_is_below_the_level_is_not_said(capsys: pytest.CaptureFixture[str]) -> None:
    logging.configure("json", "warning")
    structlog.get_logger().info("published")
    assert capsys.readouterr().err == ""

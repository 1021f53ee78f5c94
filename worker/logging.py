"""The log: structured lines on standard error, our own and those of the libraries in one form."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Literal

import structlog

LIBRARIES = ("librdkafka", "transformers", "huggingface_hub", "gliner", "httpx", "urllib3", "filelock")


def configure(log_format: Literal["auto", "console", "json"], log_level: str) -> None:
    """Set up logging for the process.

    Args:
        log_format: `json` gives one JSON object a line; `auto` means `console` where standard error is a terminal.
        log_level: the least level shown; libraries speak from `warning` on, and Python's warnings
            not at all, unless it is `debug`.
    """
    level = logging.getLevelNamesMapping()[log_level.upper()]
    as_json = log_format == "json" or (log_format == "auto" and not sys.stderr.isatty())
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        _round_seconds,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    # Local variables hold texts and secrets: a traceback shows none.
    tracebacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    renderers: list[structlog.types.Processor] = (
        [structlog.processors.ExceptionRenderer(tracebacks), structlog.processors.JSONRenderer()]
        if as_json
        else [
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
        ]
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    logging.captureWarnings(True)
    adopt_libraries()
    quiet = dict.fromkeys(LIBRARIES, logging.WARNING) | {"py.warnings": logging.ERROR}
    for name, least in quiet.items():
        logging.getLogger(name).setLevel(logging.DEBUG if level == logging.DEBUG else least)


def adopt_libraries() -> None:
    """Make libraries that brought a handler of their own speak through ours; again after one was imported."""
    for name in LIBRARIES:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True


def _round_seconds(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key, value in event.items():
        if isinstance(value, float):
            event[key] = round(value, 4)
    return event

"""The command `glistream`."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from confluent_kafka import KafkaException
from rich.console import Console

import schemas.export
from packing import ModelError
from worker import dlq, logging
from worker.clients import said
from worker.config import ConfigError, LogLevel, Settings
from worker.consumer import ConsumerError
from worker.delivery import UndeliverableError
from worker.flags import with_settings
from worker.forward import EngineError
from worker.loop import FORWARDS
from worker.publisher import PublishError
from worker.starts import OffsetsGoneError
from worker.topics import BrokerUnreachableError

EXIT_FAILED, EXIT_CONFIG, EXIT_UNREACHABLE = 1, 2, 3

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
models = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Models: `fetch` one for where no hub is.")
app.add_typer(models, name="model")
app.add_typer(dlq.app, name="dlq")
KAFKA = ("bootstrap_servers", "kafka_properties", "log_format", "log_level")
READING = ("input_topic", "input_format", "output_topic", "group_id", "consumer_properties")
MODEL = (
    "model",
    "revision",
    "device",
    "dtype",
    "threads",
    "labels",
    "threshold",
    "overlap",
    "offset_unit",
    "window_words",
    "window_overlap",
    "text_share",
    "chunk_labels",
)
BATCH = (
    "max_record_bytes",
    "max_labels",
    "max_meta_depth",
    "max_windows",
    "batch_tokens",
    "max_latency_ms",
    "idle_ms",
    "buffer_records",
    "buffer_bytes",
)


def main() -> None:
    """Run the command; errors a person can mend are one line on standard error and an exit code."""
    code = _exit_code()
    sys.stdout.flush()
    sys.stderr.flush()
    if any(thread.name == FORWARDS for thread in threading.enumerate()):
        # A forward that was not waited for still runs: ending the interpreter under it would abort the process.
        os._exit(code)
    raise SystemExit(code)


def _exit_code() -> int:
    try:
        app()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else EXIT_FAILED
    except (ConfigError, ModelError) as error:
        return _told(EXIT_CONFIG, error)
    except BrokerUnreachableError as error:
        return _told(EXIT_UNREACHABLE, error)
    except (ConsumerError, OffsetsGoneError, PublishError, UndeliverableError, EngineError) as error:
        return _told(EXIT_FAILED, error)
    except KafkaException as error:
        return _told(EXIT_FAILED, f"Kafka: {said(error)}")
    return 0


@app.command()
@with_settings()
def run(settings: Settings) -> None:
    """Run the worker: texts in, entity events out, until SIGTERM."""
    from worker.processes import run_processes
    from worker.run import run_worker

    logging.configure(settings.log_format, settings.log_level)
    if settings.processes > 1:
        raise typer.Exit(run_processes(settings))
    run_worker(settings)


@app.command()
def demo(
    kafka: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="A real broker, instead of the embedded one.")
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where `make corpus` put the speeches, if not in the cache.")
    ] = None,
    log_level: Annotated[LogLevel, typer.Option(help="Least level logged.")] = "error",
) -> None:
    """Stream at least 500 real texts through the worker and show what it finds. Needs no Kafka, hub or GPU."""
    from worker.demo import show

    logging.configure("console", log_level)
    raise typer.Exit(show(Console(), bootstrap_servers=kafka, corpus=corpus))


@app.command()
@with_settings(*KAFKA, "producer_properties", "input_topic")
def produce(
    settings: Settings,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Text events, a JSON object a line; - for standard input.")
    ],
    key_field: Annotated[str | None, typer.Option(metavar="NAME", help="Field that becomes the record's key.")] = None,
) -> None:
    """Produce a file of text events to the input topic."""
    from worker.produce import produce_lines

    logging.configure(settings.log_format, settings.log_level)
    console = Console(stderr=True)
    with _opened(file) as source:
        counts = produce_lines(source, settings, topic=settings.input_topic, key_field=key_field, console=console)
    console.print(
        f"{counts['produced']} records produced to {settings.input_topic}, {counts['failed']} failed, "
        f"{counts['blank']} blank lines passed over"
    )
    raise typer.Exit(EXIT_FAILED if counts["failed"] else 0)


@app.command()
@with_settings(*KAFKA, *READING)
def tail(
    settings: Settings,
    from_start: Annotated[bool, typer.Option("--from-start", help="Begin with the oldest event.")] = False,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop at the present end of the topic.")] = False,
    max_events: Annotated[int | None, typer.Option("--max", min=1, metavar="N", help="Stop after N events.")] = None,
) -> None:
    """Show entity events as they come, highlighted in their texts."""
    from worker.run import stop_on_signals
    from worker.tail import tail_events

    logging.configure(settings.log_format, settings.log_level)
    tail_events(
        settings,
        from_start=from_start,
        until_end=until_end,
        max_events=max_events,
        console=Console(),
        stop=stop_on_signals(),
    )


@app.command()
@with_settings("input_format", *MODEL, *BATCH, "log_format", "log_level")
def pipe(settings: Settings) -> None:
    """Answer each line of standard input with one line on standard output. Needs no Kafka."""
    from worker.pipe import pipe as answer_lines
    from worker.run import load_engine

    logging.configure(settings.log_format, settings.log_level)
    # Standard output carries JSON alone: what a library prints goes where the log goes.
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    engine, model = load_engine(settings)
    try:
        answer_lines(sys.stdin.fileno(), sink, engine, model, settings)
    except BrokenPipeError:
        # Whoever read the answers has gone; what is still buffered has nowhere to go.
        os._exit(EXIT_FAILED)


@app.command()
def schema(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(schemas.export.NAMES)}.")],
) -> None:
    """Print a JSON Schema, or the AsyncAPI document of the three topics."""
    if name not in schemas.export.NAMES:
        raise ConfigError(f"schema {name!r}: there is no such schema, only {', '.join(schemas.export.NAMES)}")
    sys.stdout.write(schemas.export.text(name))


@app.command()
@with_settings()
def doctor(settings: Settings) -> None:
    """Say what the worker would find: broker, topics, group, model, device; and what is wrong."""
    from worker.doctor import examine

    logging.configure(settings.log_format, "error")
    console = Console(soft_wrap=True)
    faults = 0
    for finding in examine(settings):
        faults += finding.wrong
        console.print(f"{finding.mark:5}  {finding.what}: {finding.found}", markup=False, highlight=False)
    raise typer.Exit(EXIT_FAILED if faults else 0)


@models.command()
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The model's name on the hub.")],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="Folder to make; not there yet, or empty.")],
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit on the hub.")] = None,
) -> None:
    """Make a folder of a model on the hub, with all that it takes to be loaded offline; and load it to prove that."""
    from packing.fetch import HubUnreachable
    from packing.fetch import fetch as fetch_model

    logging.configure("auto", "error")
    # What was written so far is removed on the way out.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        made = fetch_model(name, to, revision)
    except HubUnreachable as error:
        raise typer.Exit(_told(EXIT_UNREACHABLE, error)) from None
    console = Console(soft_wrap=True)
    lines = [f"{name} at {made.commit} is in {made.folder}: {made.info.architecture}, content {made.info.content_hash}"]
    for line in [*lines, *(f"added: {what}" for what in made.added)]:
        console.print(line, markup=False, highlight=False)


def _opened(file: str) -> BinaryIO:
    if file == "-":
        return sys.stdin.buffer
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None


def _told(code: int, reason: object) -> int:
    sys.stderr.write(f"glistream: {reason}\n")
    return code

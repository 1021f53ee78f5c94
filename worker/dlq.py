"""The commands `glistream dlq`: dead letters listed, shown, sent back."""

import sys
from collections.abc import Callable
from typing import Annotated, Literal

import typer
from rich.console import Console

from worker import logging
from worker.config import ConfigError, Settings
from worker.dead_letters import ALL, parse_choice, parse_place
from worker.flags import with_settings

CLIENT = ("bootstrap_servers", "kafka_properties", "consumer_properties", "log_format", "log_level")
READING = (*CLIENT, "dead_letter_topic", "group_id")
SENDING = (*READING, "input_topic", "producer_properties", "transactional_id_prefix", "transaction_timeout_ms")

STAGE = Annotated[str | None, typer.Option(metavar="STAGE", help="Those that failed there: decode, infer, ...")]
EXCEPTION = Annotated[str | None, typer.Option(metavar="NAME", help="Those that failed with this exception.")]
SOURCE = Annotated[
    str | None, typer.Option(metavar="TOPIC[:PARTITION[:OFFSET]]", help="Those whose record came from there.")
]
SINCE = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Those whose record has this event time or a later one; ISO 8601, UTC if unsaid."
    ),
]

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Dead letters: `list`, `show`, `replay`.")


@app.command("list")
@with_settings(*READING)
def list_(
    settings: Settings,
    stage: STAGE = None,
    exception: EXCEPTION = None,
    source: SOURCE = None,
    since: SINCE = None,
    max_letters: Annotated[int | None, typer.Option("--max", min=1, metavar="N", help="List N at most.")] = None,
    format: Annotated[  # noqa: A002 (the option's name)
        Literal["table", "json"], typer.Option(help="Columns, or a JSON object a line.")
    ] = "table",
    summary: Annotated[
        bool, typer.Option("--summary", help="Only how many there are, by stage and exception.")
    ] = False,
) -> None:
    """List the dead letters that are there now, and count them by stage and exception. Shows no text of a document."""
    from worker.letter_list import list_letters

    choice = parse_choice(stage=stage, exception=exception, source=source, since=since)
    logging.configure(settings.log_format, settings.log_level)
    list_letters(
        settings,
        choice,
        max_letters=max_letters,
        as_json=format == "json",
        summary_only=summary,
        console=Console(),
        notes=Console(stderr=True),
    )


@app.command()
@with_settings(*READING)
def show(
    settings: Settings,
    place: Annotated[str, typer.Argument(metavar="PARTITION:OFFSET", help="Where it stands in the dead-letter topic.")],
    raw: Annotated[bool, typer.Option("--raw", help="The bytes of its value and nothing else.")] = False,
) -> None:
    """Show all of one dead letter, its text too."""
    from worker.letter_list import raw_value, show_letter

    found = parse_place(place)
    logging.configure(settings.log_format, settings.log_level)
    if raw:
        sys.stdout.buffer.write(raw_value(settings, found))
    else:
        show_letter(settings, found, console=Console())


@app.command()
@with_settings(*SENDING)
def replay(
    settings: Settings,
    stage: STAGE = None,
    exception: EXCEPTION = None,
    source: SOURCE = None,
    since: SINCE = None,
    letter: Annotated[
        list[str] | None, typer.Option(metavar="PARTITION:OFFSET", help="This one; may be given several times.")
    ] = None,
    to: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Where to send them, instead of the input topic.")
    ] = None,
    max_letters: Annotated[int | None, typer.Option("--max", min=1, metavar="N", help="Send N at most.")] = None,
    max_replays: Annotated[
        int, typer.Option(min=1, metavar="N", help="Leave alone what was replayed N times already.")
    ] = 3,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be sent, and send nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Send picked letters without asking.")] = False,
) -> None:
    """Send dead letters back to the topic they came from, as they were, with why they failed in other headers.

    A plain replay looks at each dead letter once: it goes on where the last one to the same topic ended, and may be
    killed at any moment and run again without losing or doubling a record. What it could not send or left alone is
    behind it then, and can be picked.

    A replay that picks letters, by --letter or by --stage, --exception, --source or --since, sends all of them or none,
    and keeps no note of it: run twice, it sends them twice, and a plain replay later sends them too.
    """
    from worker.replay import replay as send_back
    from worker.replay_plan import Order, StoppedError
    from worker.run import stop_on_signals

    choice = parse_choice(stage=stage, exception=exception, source=source, since=since)
    places = [parse_place(place) for place in letter or ()]
    if places and choice != ALL:
        raise ConfigError("--letter: can't be given together with --stage, --exception, --source or --since")
    logging.configure(settings.log_format, settings.log_level)
    order = Order(choice, places, to, max_letters, max_replays, dry_run)
    console = Console()
    try:
        counts = send_back(settings, order, console=console, confirm=_asked(yes=yes), stop=stop_on_signals())
    except StoppedError:
        end = "nothing was sent" if order.picks else "what was sent is committed; run it again to go on"
        sys.stderr.write(f"glistream: stopped: {end}\n")
        raise typer.Exit(1) from None
    raise typer.Exit(1 if counts["failed"] else 0)


def _asked(*, yes: bool) -> Callable[[int, str], None]:
    def confirm(count: int, topic: str) -> None:
        if yes:
            return
        if not sys.stdin.isatty():
            raise ConfigError(
                f"nothing was sent: {count} dead letters are picked, and a replay of picked ones is not remembered: "
                "run twice it sends them twice; give --yes"
            )
        typer.confirm(
            f"Send {count} dead letters to {topic}? It is not remembered: twice sends them twice.", abort=True
        )

    return confirm

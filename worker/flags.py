"""The flags of the command line that stand for settings, made from the settings class itself."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from worker.config import ENV_PREFIX, ConfigError, Settings, load

CONFIG_FILE = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="TOML file with settings.", rich_help_panel="Settings"),
]


def with_settings(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a `--config` option and one for each setting named (all where none is).

    The command's first parameter, `settings`, gets what file, environment and flags give together.
    """
    chosen = names or tuple(Settings.model_fields)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(*, config: Path | None, **given: Any) -> None:
            flags = {name: _parse(name, given.pop(name)) for name in chosen if given.get(name) not in (None, [])}
            command(load(config, flags), **{name: value for name, value in given.items() if name not in chosen})

        own = [parameter for name, parameter in inspect.signature(command).parameters.items() if name != "settings"]
        options = [_option(name, Settings.model_fields[name]) for name in chosen]
        config = inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=CONFIG_FILE)
        keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        run.__signature__ = inspect.Signature([*keyword, config, *options])  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*keyword, config, *options)}
        return run

    return decorate


def choices(field: FieldInfo) -> str:
    """Return what a setting may be, in a few words: its choices, or its kind of value."""
    kind = field.annotation
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    if kind is bool:
        return "true|false"
    if kind in (int, float):
        return str(getattr(kind, "__name__", kind)).upper()
    return "NAME=VALUE" if _is_map(field) else "TEXT"


def _option(name: str, field: FieldInfo) -> inspect.Parameter:
    flag = "--" + name.replace("_", "-")
    note = f"{field.description} [env: {ENV_PREFIX}{name.upper()}; default: {shown(field.default)}]"
    if field.annotation is bool:
        kind: Any = bool | None
        option = typer.Option(f"{flag}/--no-{flag[2:]}", help=note, rich_help_panel="Settings", show_default=False)
    else:
        kind = list[str] | None if _is_map(field) else str | None
        option = typer.Option(flag, metavar=choices(field), help=note, rich_help_panel="Settings", show_default=False)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option])


def _parse(name: str, value: Any) -> Any:
    if not _is_map(Settings.model_fields[name]):
        return value
    pairs = [pair.partition("=") for pair in value]
    for key, equals, _ in pairs:
        if not (key and equals):
            raise ConfigError(f"--{name.replace('_', '-')}: expected NAME=VALUE")
    return {key: text for key, _, text in pairs}


def _is_map(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is dict


def shown(default: object) -> str:
    """Return a default as a person writes it."""
    if isinstance(default, bool):
        return str(default).lower()
    if default is None or default == {}:
        return "none"
    return ",".join(default) if isinstance(default, tuple) else str(default)

"""Entities as a person reads them: highlighted in their text."""

from collections.abc import Sequence

from rich.text import Text

from schemas.events import Entity

STYLES = ("bold cyan", "bold magenta", "bold green", "bold yellow", "bold blue", "bold red")


def highlighted(text: str, entities: Sequence[Entity], *, width: int | None = None) -> Text:
    """Return a text on one line with each entity in the colour of its label, the label behind it.

    Args:
        text: the text that was read.
        entities: in the order of the text, offsets in code points; one inside another is left out.
        width: cut the line to so many columns.
    """
    line = Text(no_wrap=True, overflow="ellipsis", end="")
    place = 0
    for entity in entities:
        if entity.start < place:
            continue
        line.append(printable(text[place : entity.start]))
        line.append("[").append(printable(text[entity.start : entity.end]), style=_style(entity.label))
        line.append(f"|{printable(entity.label)}]", style="dim")
        place = entity.end
    line.append(printable(text[place:]))
    if width is not None:
        line.truncate(width, overflow="ellipsis")
    return line


def _style(label: str) -> str:
    return STYLES[sum(label.encode("utf-8", "surrogatepass")) % len(STYLES)]


def printable(text: str) -> str:
    """Return a text without what would act on a terminal (control characters) or can't be printed (surrogates)."""
    shown = "".join(character if character.isprintable() else " " for character in text)
    return shown.encode("utf-8", "replace").decode()

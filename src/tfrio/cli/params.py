"""Options of several commands, and what their text becomes: pairs, lists, name=value settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "NUMBERS",
    "PAIR",
    "REGION",
    "as_mapping",
    "names",
    "not_standard_output",
    "number_or_text",
    "overwrite_option",
    "readable",
    "setting",
    "skip_bad_option",
    "utf8_option",
]

overwrite_option = click.option("--overwrite", is_flag=True, help="Replace what exists.")
skip_bad_option = click.option("--skip-bad", is_flag=True, help="Leave damaged records out.")
utf8_option = click.option(
    "--utf8",
    type=click.Choice(["strict", "surrogateescape"]),
    default="strict",
    help="surrogateescape also accepts feature names that are not UTF-8.",
)


class _Pair(click.ParamType):  # type: ignore[type-arg]  # generic only in new releases
    """Two whole numbers (x, y): ``256``, ``256,128`` or ``256x128``."""

    name = "X,Y"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return two integers; click shows the error of anything else."""
        if isinstance(value, tuple):
            return value
        parts = str(value).replace("x", ",").split(",")
        try:
            numbers = tuple(int(part) for part in parts)
        except ValueError:
            numbers = ()
        if len(numbers) not in (1, 2):
            self.fail(f"{value!r} is not a pair of whole numbers such as 256,128", param, ctx)
        return numbers * (3 - len(numbers))


class _Numbers(click.ParamType):  # type: ignore[type-arg]
    """Numbers separated by commas."""

    name = "N,N,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a tuple of floats; click shows the error of anything else."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(float(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers such as 1,2.5,3", param, ctx)


class _Region(click.ParamType):  # type: ignore[type-arg]
    """A box as four numbers, or the name of a GeoJSON file."""

    name = "N,N,N,N|FILE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return four floats, or what the GeoJSON file holds."""
        if not isinstance(value, str):
            return value
        if value.lower().endswith((".json", ".geojson")):
            try:
                return json.loads(Path(value).read_bytes())
            except (OSError, ValueError) as error:
                self.fail(f"{value}: no GeoJSON that can be read ({error})", param, ctx)
        return NUMBERS.convert(value, param, ctx)


_STDIN = "/dev/stdin"
PAIR = _Pair()
NUMBERS = _Numbers()
REGION = _Region()


def readable(
    _context: click.Context, _parameter: click.Parameter, paths: str | tuple[str, ...]
) -> str | tuple[str, ...]:
    """Let ``-`` stand for standard input; what needs its input twice refuses it by itself."""
    if "-" in paths and not Path(_STDIN).exists():
        raise click.UsageError("this system has no name for standard input; save it to a file")
    if isinstance(paths, str):
        return _STDIN if paths == "-" else paths
    return tuple(_STDIN if path == "-" else path for path in paths)


def not_standard_output(
    _context: click.Context, parameter: click.Parameter, path: str | None
) -> str | None:
    """Refuse ``-`` as a place to write to: a file must be whole before it bears its name."""
    if path == "-":
        raise click.UsageError(
            f"{parameter.human_readable_name} is a file, not standard output; name one. A file "
            "that is called '-' is ./-"
        )
    return path


def names(text: str | None) -> list[str] | None:
    """Split names at commas; None stays None."""
    return text.split(",") if text else None


def setting(flag: str, text: str) -> Callable[..., Any]:
    """Make an option that is given once for each name: ``--type id=int32 --type name=string``.

    Args:
        flag: The option.
        text: Its help.

    Returns:
        The decorator; the command gets a tuple of texts for ``as_mapping``.
    """
    return click.option(flag, multiple=True, metavar="NAME=VALUE", help=text)


def number_or_text(text: str) -> float | str:
    """Return the number that a text is, whole numbers as such; other text as it is."""
    for made in (int, float):
        try:
            return made(text)
        except ValueError:
            continue
    return text


def as_mapping(
    settings: tuple[str, ...], value: Callable[[str], Any] = str
) -> dict[str, Any] | None:
    """Turn ``NAME=VALUE`` texts into a dict.

    Args:
        settings: The texts.
        value: What makes a value of its text; a ValueError of it is told as wrong use.

    Returns:
        The dict, None where nothing was given.

    Raises:
        click.UsageError: A text has no ``=``, or its value is none.
    """
    found = {}
    for text in settings:
        name, equals, rest = text.partition("=")
        try:
            found[name] = value(rest)
        except ValueError as error:
            raise click.UsageError(f"{text!r}: {error}") from error
        if not equals or not name:
            raise click.UsageError(f"{text!r} is not NAME=VALUE")
    return found or None

"""`tfrio head`: show the first records."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import click
import numpy as np

from tfrio.cli.fills import agreed, named, shown_fills
from tfrio.cli.output import json_option, say
from tfrio.cli.params import readable, skip_bad_option, utf8_option
from tfrio.cli.values import describe, plain, preview

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tfrio.examples.infer import Utf8

Errors: TypeAlias = Literal["raise", "skip"]

__all__ = ["head_command"]


@click.command("head", short_help="Show the first records.")
@click.argument("paths", nargs=-1, required=True, callback=readable)
@click.option(
    "-n",
    "--number",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="How many records to show.",
)
@click.option("-k", "--keys", help="Show only these features, separated by commas.")
@click.option("--strict", is_flag=True, help="Leave with 1 when a feature asked for is absent.")
@click.option("--raw", is_flag=True, help="Show payloads as they are, whatever they hold.")
@skip_bad_option
@utf8_option
@json_option
def head_command(
    paths: tuple[str, ...],
    number: int,
    keys: str | None,
    *,
    strict: bool,
    raw: bool,
    skip_bad: bool,
    utf8: Utf8,
    as_json: bool,
) -> None:
    """Show the first records of PATHS (files, folders, globs, - for standard input).

    With --json each record is one line; bytes that are not text are {"base64": ...}.

    \b
    Examples:
      tfrio head train.tfrecord
      tfrio head -n 1 -k label,id 'shards/*.gz'
      tfrio head --json -n 100 train.tfrecord.gz > rows.jsonl
      tfrio head --raw other-messages.tfrecord
    """
    from tfrio.records.shards import expand

    files = expand(paths)  # all of them, though the first may hold records enough
    fills = [] if as_json or raw else shown_fills(files)
    fill, filled = agreed(fills), False
    asked = keys.split(",") if keys else None
    missing, record = False, -1
    errors: Errors = "skip" if skip_bad else "raise"
    rows = _payloads(files, errors) if raw else _rows(files, errors, utf8)
    for record, row in enumerate(islice(rows, number)):
        shown = {name: row.get(name) for name in asked} if asked else row
        missing |= any(value is None for value in shown.values())
        if as_json:
            _print_json(shown)
        else:
            filled |= _print_record(record, shown, fill)
    if record < 0 < number and not as_json:
        click.echo("no records")
    if filled:
        say(
            f"fill: {named(fills, fill)} stands for masked pixels and margins beyond the raster",
            style="yellow",
        )
    if missing and strict:
        raise SystemExit(1)


def _rows(paths: list[str], errors: Errors, utf8: Utf8) -> Iterator[dict[str, Any]]:
    from tfrio.examples.decode import read
    from tfrio.examples.layout import shown_name

    rows = read(paths, errors=errors, utf8=utf8)
    return ({shown_name(name): value for name, value in row.items()} for row in rows)


def _payloads(paths: list[str], errors: Errors) -> Iterator[dict[str, Any]]:
    """Yield payloads as rows of one value."""
    from tfrio.records.reader import read_records

    return ({"payload": payload} for payload in read_records(paths, errors=errors))


def _print_json(row: dict[str, Any]) -> None:
    import msgspec

    click.echo(msgspec.json.encode({name: plain(value) for name, value in row.items()}))


def _print_record(record: int, row: dict[str, Any], fill: Mapping[str, float]) -> bool:
    """Show a record; return whether some of its values only fill masked pixels."""
    filled = 0
    say(f"record {record}", style="bold")
    width = max((len(name) for name in row), default=0)
    for name, value in row.items():
        if value is None:
            say(f"  {name + ':':<{width + 1}} absent", style="yellow")
        else:
            here = _count_fill(value, fill.get(name))
            note = f" ({here:,} are fill)" if here else ""
            filled += here
            say(f"  {name + ':':<{width + 1}} {describe(value):<18} {preview(value)}{note}")
    if not row:
        say("  no features")
    return filled > 0


def _count_fill(value: Any, fill: float | None) -> int:
    """Return how many numbers of a value only fill masked pixels."""
    if fill is None or not isinstance(value, np.ndarray):
        return 0
    from tfrio.examples.tally import is_fill

    return int(is_fill(value, fill).sum())

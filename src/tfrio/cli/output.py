"""What every command prints with: tables, JSON, progress on a terminal, errors as one line."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec

from tfrio.errors import many

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console
    from rich.table import Table

__all__ = [
    "as_json",
    "console",
    "emit_json",
    "fail",
    "human_bytes",
    "json_option",
    "new_table",
    "plural",
    "progress",
]

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, for programs to read."
)


def console() -> Console:
    """Return a console that writes to the present standard output, with no wrapping in a pipe."""
    from rich.console import Console

    plain = not sys.stdout.isatty()
    return Console(
        highlight=False, soft_wrap=plain, width=200 if plain else None, emoji=False, markup=False
    )


def new_table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Make a quiet table.

    Args:
        *columns: The headings.
        right: Which of them hold numbers and stand right-aligned.

    Returns:
        The table, without rows.
    """
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def as_json(value: Any) -> str:
    """Encode a report (dataclasses, structs, arrays, paths) as one JSON document."""
    encoded = msgspec.json.encode(value, enc_hook=_plain)
    return msgspec.json.format(encoded, indent=2).decode()


def emit_json(value: Any) -> None:
    """Print a report as JSON on standard output."""
    click.echo(as_json(value))


def _plain(value: Any) -> Any:
    """Turn what msgspec does not know into what it does."""
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return value.tolist()
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    return str(value)


def fail(message: str, code: int) -> None:
    """Print one line on standard error and leave.

    Args:
        message: What is wrong, where, and what to do next.
        code: 1 for a data problem, 2 for wrong use.
    """
    click.echo(f"tfrio: {' '.join(message.split())}", err=True)
    raise SystemExit(code)


def plural(count: int, noun: str) -> str:
    """Write a count with its noun.

    Example:
        ``plural(1, "record")`` is ``"1 record"``, ``plural(1200, "record")`` ``"1,200 records"``.
    """
    return f"{count:,} {many(count, noun)}"


def human_bytes(count: int) -> str:
    """Write a number of bytes for people: 1,234 B, 1.2 MiB."""
    if count < 10_000:
        return f"{count:,} B"
    size = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:.1f} TiB"


@contextmanager
def progress(what: str, unit: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a progress bar on a terminal; elsewhere stay silent.

    Args:
        what: What is going on, as shown before the bar.
        unit: What is counted.

    Yields:
        A function to call with (done, total), or None where nobody watches.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    count: tuple[ProgressColumn, ...] = (MofNCompleteColumn(), TextColumn(unit))
    if unit == "bytes":
        count = (DownloadColumn(), TransferSpeedColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), *count, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        # 0 in all: not known, so the bar moves without an end
        yield lambda done, total: bar.update(task, completed=done, total=total or None)

"""What every command prints with: tables, JSON, progress on a terminal, errors as one line."""

from __future__ import annotations

import sys
import textwrap
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec

from tfrio.errors import many

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

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
    "say",
    "show",
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


def say(text: str | Text, *, style: str = "") -> None:
    """Print text on standard output; lines break between words, never within a path or number.

    Args:
        text: What to print; rich text has its lines already.
        style: Colour and weight, on a terminal.
    """
    out = console()
    if isinstance(text, str) and sys.stdout.isatty():
        text = "\n".join(_folded(line, out.width) for line in text.split("\n"))
    out.print(text, style=style, overflow="ignore", crop=False)


def _folded(line: str, width: int) -> str:
    """Break a line at spaces; what follows an indented beginning is indented further."""
    lead = " " * (len(line) - len(line.lstrip()))
    return textwrap.fill(
        line,
        width,
        subsequent_indent=f"{lead}  " if lead else "",
        break_long_words=False,
        break_on_hyphens=False,
    )


def show(table: Table) -> None:
    """Print a table on standard output, in a form that fits the terminal.

    Too wide a table loses its columns without a value first; if that is not enough, each row is
    printed as a few lines, its first cell as their title. A cell is never cut or broken.

    Args:
        table: What ``new_table`` made; its first column names the rows.
    """
    out = console()
    if not sys.stdout.isatty():
        out.width = _needed(out, table)
    elif _needed(out, table) > out.width:
        table = _without_empty(table)
        if _needed(out, table) > out.width:
            say(_blocks(table, out.width))
            return
    out.print(table, crop=False)


def _needed(out: Console, table: Table) -> int:
    """Return the columns of a terminal that a table takes when nothing is cut."""
    from rich.measure import Measurement

    unlimited = out.options.update(width=1_000_000)
    return max(Measurement.get(out, unlimited, table).maximum, 1)


def _without_empty(table: Table) -> Table:
    """Return a table without the columns in which no row has a value."""
    kept = [column for column in table.columns if any(column.cells)]
    names = [str(column.header) for column in kept]
    right = (name for name, column in zip(names, kept, strict=True) if column.justify == "right")
    fewer = new_table(*names, right=tuple(right))
    for row in zip(*(column.cells for column in kept), strict=True):
        fewer.add_row(*row)
    return fewer


def _blocks(table: Table, width: int) -> Text:
    """Write each row as its first cell and, below, as many of the others a line as there is room.

    Args:
        table: A table of text.
        width: Columns of the terminal.

    Returns:
        The lines.
    """
    from rich.text import Text

    heads = [str(column.header) for column in table.columns]
    text = Text()
    for title, *cells in zip(*(column.cells for column in table.columns), strict=True):
        text.append(f"{title}\n", style="bold")
        pairs = (
            f"{head} {cell}".strip() for head, cell in zip(heads[1:], cells, strict=True) if cell
        )
        text.append("".join(f"  {line}\n" for line in _packed(pairs, width - 2)))
    text.rstrip()
    return text


def _packed(parts: Iterable[str], width: int) -> list[str]:
    """Put parts into as few lines as they need, in order, none of them broken."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) + 3 <= width:
            lines[-1] += f"   {part}"
        else:
            lines.append(part)
    return lines


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

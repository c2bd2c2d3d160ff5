"""Commands on features: stats, and schema infer / check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from tfrio.cli.fills import agreed, named, shown_fills, told
from tfrio.cli.output import emit_json, json_option, new_table, progress, say, show
from tfrio.cli.params import (
    names,
    not_standard_output,
    overwrite_option,
    readable,
    skip_bad_option,
    utf8_option,
)

if TYPE_CHECKING:
    from tfrio.examples.infer import Utf8
    from tfrio.examples.stats import Statistics
    from tfrio.examples.tally import FeatureStats
    from tfrio.geo.fills import ExportFill

__all__ = ["schema_command", "stats_command"]


@click.command("stats", short_help="Count what each feature holds.")
@click.argument("paths", nargs=-1, required=True, callback=readable)
@click.option("-k", "--keys", help="Only these features, separated by commas.")
@click.option(
    "--no-fill",
    is_flag=True,
    help="Leave out values that fill masked pixels, as the manifest of the export names them.",
)
@skip_bad_option
@utf8_option
@json_option
def stats_command(
    paths: tuple[str, ...],
    *,
    keys: str | None,
    no_fill: bool,
    skip_bad: bool,
    utf8: Utf8,
    as_json: bool,
) -> None:
    """Count what each feature of PATHS (files, folders, globs) holds, over every record.

    For numbers: smallest, largest, mean and standard deviation; for bytes: those of the lengths,
    and which image formats they are.

    \b
    Examples:
      tfrio stats train.tfrecord
      tfrio stats --no-fill export/
      tfrio stats --json -k label,image shards/
    """
    from tfrio.examples.stats import stats
    from tfrio.records.shards import expand

    files = expand(paths)
    left_out, fills = told(files) if no_fill else ({}, shown_fills(files))
    errors: Literal["skip", "raise"] = "skip" if skip_bad else "raise"
    with progress("counting", "bytes") as update:
        found = stats(
            files,
            features=names(keys),
            fill=left_out,
            errors=errors,
            utf8=utf8,
            progress=update,
        )
    if as_json:
        emit_json(found.to_dict())
        return
    _tell_stats(found)
    if fills:
        _tell_fills(found, fills, left_out=no_fill)


def _tell_stats(found: Statistics) -> None:
    say(found.headline)
    say("")
    head, *rows = found.table()
    table = new_table(*head, right=tuple(head[3:]))
    for row in rows:
        table.add_row(*row)
    show(table)
    if any("bytes" in feature.kinds for feature in found.features.values()):
        say("of bytes: min to std of their lengths", style="dim")


def _tell_fills(found: Statistics, fills: list[ExportFill], *, left_out: bool) -> None:
    """Say which values are no pixels, and whether they are among the numbers above."""
    here = {feature.name: feature for feature in found.features.values()}
    values = {name: value for name, value in agreed(fills).items() if name in here}
    if left_out:
        same = sorted({name for fill in fills for name in fill.shared} & set(values))
        also = f"; real pixels of that value in {', '.join(same)}, too" if same else ""
        text = f"left out as the fill of masked pixels: {named(fills, values)}{also}"
    else:
        values = {n: v for n, v in values.items() if _spans(here[n], v)}
        text = (
            f"masked pixels hold {named(fills, values)}, and are counted like the others; "
            "--no-fill leaves them out"
        )
    if values:
        say(f"\n{text}", style="yellow")


def _spans(feature: FeatureStats, value: float) -> bool:
    low, high = feature.minimum, feature.maximum
    return low is not None and high is not None and low <= value <= high


@click.group("schema", short_help="Learn a schema (schema infer), check files (schema check).")
def schema_command() -> None:
    """Learn the schema of files, or check files against one."""


@schema_command.command("infer", short_help="Learn the schema of files.")
@click.argument("paths", nargs=-1, required=True, callback=readable)
@click.option(
    "-o", "--out", callback=not_standard_output, help="Write the schema to this JSON file."
)
@click.option("--sample", type=int, help="Look at so many records only; default: all.")
@click.option("--scalars", is_flag=True, help="Features with one value are bare numbers.")
@utf8_option
@overwrite_option
@json_option
def infer_command(
    paths: tuple[str, ...],
    *,
    out: str | None,
    sample: int | None,
    scalars: bool,
    utf8: Utf8,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Learn the narrowest schema that every record of PATHS (files, folders, globs) fits.

    \b
    Example:
      tfrio schema infer shards/ -o schema.json
    """
    from tfrio.examples.infer import infer_schema
    from tfrio.examples.schema_files import save_schema
    from tfrio.examples.schema_json import schema_to_json
    from tfrio.storage import refuse_existing

    refuse_existing(out, overwrite=overwrite)
    schema = infer_schema(paths, sample=sample, scalars=scalars, utf8=utf8)
    if out is not None:
        save_schema(schema, out)
    click.echo(schema_to_json(schema) if as_json else repr(schema))


@schema_command.command("check", short_help="Check files against a schema.")
@click.argument("schema")
@click.argument("paths", nargs=-1, required=True, callback=readable)
@click.option("--sample", type=int, help="Look at so many records only; default: all.")
@utf8_option
@json_option
def check_command(
    schema: str, paths: tuple[str, ...], *, sample: int | None, utf8: Utf8, as_json: bool
) -> None:
    """Check PATHS (files, folders, globs) against SCHEMA: our JSON, a TFX text or features.json.

    Leaves with 1 where a record does not fit.

    \b
    Example:
      tfrio schema check schema.json shards/
    """
    from tfrio.examples.check import check_schema
    from tfrio.examples.schema_files import load_schema

    found = check_schema(paths, load_schema(schema), sample=sample, utf8=utf8)
    if as_json:
        emit_json(found.to_dict())
    else:
        click.echo(str(found))
    if not found.ok:
        raise SystemExit(1)

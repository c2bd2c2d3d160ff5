"""`tfrio import image` and `tfrio import table`: TFRecord back to maps and tables."""

from __future__ import annotations

from typing import Any

import click

from tfrio.cli.output import emit_json, json_option
from tfrio.cli.params import as_mapping, names, setting

__all__ = ["import_command"]


@click.group("import", short_help="Bring TFRecord back to maps and tables.")
def import_command() -> None:
    """Bring TFRecord back: predictions to GeoTIFF, tables to GeoParquet, GeoJSON or CSV."""


@import_command.command("table", short_help="Write TFRecord as a table.")
@click.argument("paths", nargs=-1, required=True)
@click.argument("out")
@click.option("--columns", help="Columns to write, in this order, separated by commas.")
@click.option("--xy", default="auto", metavar="X,Y", help="Columns with the points, or 'none'.")
@click.option("--crs", default="EPSG:4326", show_default=True, help="CRS of the points.")
@setting("--type", "Arrow type of a column, such as int32, float64 or string.")
@setting("--shape", "Array shape of a column, such as 3,4.")
@setting("--date", "Date format of a column: a strptime format, iso, s or ms.")
@json_option
def table_command(paths: tuple[str, ...], out: str, *, as_json: bool, **options: Any) -> None:
    """Write PATHS (files, folders, globs) as one table OUT.

    The ending of OUT chooses the format: .parquet (GeoParquet where there are points), .arrow,
    .geojson or .csv.

    \b
    Examples:
      tfrio import table out/samples.tfrecord.gz samples.parquet
      tfrio import table 'shards/*' all.csv --columns id,class --type class=int32
    """
    from tfrio.tables.load import import_table

    report = import_table(
        paths,
        out,
        columns=options["columns"],
        xy=_xy(options["xy"]),
        crs=options["crs"],
        types=as_mapping(options["type"]),
        shapes=as_mapping(options["shape"], _shape),
        dates=as_mapping(options["date"]),
    )
    if as_json:
        emit_json(report.as_dict())
    else:
        click.echo(str(report))


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _xy(text: str) -> Any:
    """Read the names of the points' columns."""
    if text in ("auto", "none"):
        return None if text == "none" else "auto"
    pair = names(text) or []
    if len(pair) != 2:
        raise click.UsageError("--xy takes two names such as longitude,latitude, or none")
    return pair[0], pair[1]

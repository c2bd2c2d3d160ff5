"""`tfrio import image` and `tfrio import table`: TFRecord back to maps and tables."""

from __future__ import annotations

from typing import Any

import click

from tfrio.cli.output import emit_json, json_option, progress
from tfrio.cli.params import (
    PAIR,
    as_mapping,
    names,
    not_standard_output,
    overwrite_option,
    readable,
    setting,
)

__all__ = ["import_command"]


@click.group("import", short_help="Put predictions on the map (import image), write tables.")
def import_command() -> None:
    """Bring TFRecord back: predictions to GeoTIFF, tables to GeoParquet, GeoJSON or CSV."""


@import_command.command("image", short_help="Put predictions back on the map.")
@click.argument("predictions", nargs=-1, required=True, callback=readable)
@click.argument("out", callback=not_standard_output)
@click.option("--mixer", help="Mixer, manifest, prefix or folder of the export; default: beside.")
@click.option("--bands", help="Features to place, in this order, separated by commas.")
@click.option("--kernel", type=PAIR, help="Kernel of padded predictions; default: the export's.")
@click.option("--depth", type=int, help="Planes a patch, where the lengths do not tell.")
@click.option("--cells", type=PAIR, help="Cells a patch of predictions coarser than the pixels.")
@click.option("--layout", type=click.Choice(["chw", "hwc"]), default="chw", show_default=True)
@click.option("--index", default="auto", help="Feature with each patch's index, or 'none'.")
@click.option("--partial", is_flag=True, help="Place what there is; the rest becomes nodata.")
@click.option("--first-patch", type=int, help="Number of the first record among the exported.")
@click.option("--blend", type=click.Choice(["crop", "mean", "hann"]), default="crop")
@click.option("--argmax", is_flag=True, help="The bands are scores: write the largest's number.")
@click.option("--dtype", help="Type of the raster, such as uint8 or float32.")
@click.option("--nodata", type=float, help="Nodata value of the raster.")
@click.option("--mask", type=click.Choice(["any", "all", "off"]), default="any")
@click.option("--crs", help="CRS in place of the one the mixer names.")
@click.option("--keep-orientation", is_flag=True, help="Leave a south-up grid as it is.")
@click.option("--whole", is_flag=True, help="Write the source's whole grid, dropped edges too.")
@setting("--class-name", "Name of a class, such as 1=Water.")
@setting("--color", "Colour of a class, such as 1=#3a74c4.")
@click.option("--compress", type=click.Choice(["deflate", "zstd", "lzw", "none"]))
@click.option("--cog", is_flag=True, help="Write a Cloud Optimized GeoTIFF.")
@click.option("--workers", type=int, default=1, help="Threads that compress.")
@click.option("--inputs", help="Shards of the export, to compare with; default: if beside.")
@click.option(
    "--check",
    type=click.Choice(["error", "warn", "off"]),
    default="error",
    show_default=True,
    help="Where predictions fit their inputs better turned, flipped or in another order.",
)
@click.option("--quicklook", metavar="PNG", help="Also write a small picture of the map.")
@overwrite_option
@json_option
def image_command(predictions: tuple[str, ...], out: str, *, as_json: bool, **options: Any) -> None:
    """Write PREDICTIONS (files, folders, globs; one record a patch) as the GeoTIFF OUT.

    Number, order and lengths of the records are checked before anything is placed; after an
    error there is no file.

    \b
    Examples:
      tfrio import image 'pred-*.tfrecord.gz' map.tif --mixer out/scene-mixer.json
      tfrio import image pred/ map.tif --mixer out/scene --bands class --dtype uint8 --nodata 0
    """
    from tfrio.geo.assemble import import_image

    with progress("placing", "patches") as update:
        report = import_image(predictions, out, **_image_options(options), progress=update)
    if as_json:
        emit_json(report.as_dict())
    else:
        click.echo(str(report))


def _image_options(options: dict[str, Any]) -> dict[str, Any]:
    """Translate the command's options to those of ``import_image``."""
    given = dict(options)
    given["bands"] = names(given["bands"])
    given["index"] = None if given["index"] == "none" else given["index"]
    given["orientation"] = "keep" if given.pop("keep_orientation") else "north-up"
    given["extent"] = "source" if given.pop("whole") else "covered"
    given["class_names"] = _by_class(given.pop("class_name"))
    given["colors"] = _by_class(given.pop("color"))
    given["compress"] = given["compress"] or "deflate"
    given["quicklook"] = given["quicklook"] or False
    return given


def _by_class(settings: tuple[str, ...]) -> dict[int, str] | None:
    """Read texts by the number of a class."""
    found = as_mapping(settings)
    if found is None:
        return None
    if not all(number.isdecimal() for number in found):
        raise click.UsageError("classes are given by number, such as 1=Water")
    return {int(number): text for number, text in found.items()}


@import_command.command("table", short_help="Write TFRecord as a table.")
@click.argument("paths", nargs=-1, required=True, callback=readable)
@click.argument("out", callback=not_standard_output)
@click.option("--columns", help="Columns to write, in this order, separated by commas.")
@click.option("--xy", default="auto", metavar="X,Y", help="Columns with the points, or 'none'.")
@click.option("--crs", default="EPSG:4326", show_default=True, help="CRS of the points.")
@setting("--type", "Arrow type of a column, such as int32, float64 or string.")
@setting("--shape", "Array shape of a column, such as 3,4.")
@setting("--date", "Date format of a column: a strptime format, iso, s or ms.")
@overwrite_option
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
        overwrite=options["overwrite"],
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

"""`tfrio export image` and `tfrio export table`: rasters and tables to TFRecord."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfrio.cli.output import emit_json, json_option, progress
from tfrio.cli.params import (
    NUMBERS,
    PAIR,
    REGION,
    as_mapping,
    names,
    not_standard_output,
    number_or_text,
    overwrite_option,
    setting,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfrio.geo.labels import Labels
    from tfrio.geo.points import PatchesAt, Split
    from tfrio.geo.report import ExportReport

__all__ = ["export_command"]

_LABELS = ("attribute", "name", "dtype", "background", "nodata", "crs")
_RESAMPLING = ("nearest", "bilinear", "cubic", "average", "mode", "max", "min", "med")


@click.group("export", short_help="Write rasters (export image) and tables (export table).")
def export_command() -> None:
    """Write rasters and tables as TFRecord, the way Earth Engine does."""


@export_command.command("image", short_help="Cut rasters into patches.")
@click.argument("sources", nargs=-1, required=True)
@click.argument("prefix", callback=not_standard_output)
@click.option("--patch", type=PAIR, required=True, help="Patch in pixels, without margin.")
@click.option("--kernel", type=PAIR, default="1,1", help="Margin of neighbours: half on each side.")
@click.option(
    "--bands",
    help="Bands to take: names or numbers from 1, separated by commas; new=old renames, "
    "ndvi=3:15 makes one array band of bands 3 to 15.",
)
@click.option("--source-crs", help="CRS of a source that does not tell its own.")
@click.option(
    "--dtype",
    type=click.Choice(["float", "native"]),
    default="float",
    show_default=True,
    help="float: all numbers as float32. native: bytes, int64 or float by the band's type.",
)
@click.option("--max-file-size", type=int, default=1 << 30, help="Bytes of a shard, unpacked.")
@click.option("--default-value", type=float, help="Value of masked pixels; default: nodata or 0.")
@click.option("--masked-threshold", type=float, default=1.0, help="Drop patches masked beyond it.")
@click.option("--sequence-data", is_flag=True, help="One SequenceExample a pixel.")
@click.option("--collapse-bands", is_flag=True, help="All bands as one tensor.")
@setting("--tensor-depth", "Depth of an array band's tensor.")
@click.option("--edge", type=click.Choice(["drop", "pad", "shift"]), default="drop")
@click.option("--stride", type=PAIR, help="Step from patch to patch; default: the patch.")
@click.option(
    "--region", type=REGION, help="Part to export: left,bottom,right,top or a GeoJSON file."
)
@click.option("--region-crs", default="EPSG:4326", show_default=True)
@click.option("--crs", help="CRS of the grid; default: that of the source.")
@click.option("--scale", type=float, help="Metres a pixel.")
@click.option("--crs-transform", type=NUMBERS, help="Six terms a,b,c,d,e,f.")
@click.option("--dimensions", type=PAIR, help="Pixels of the whole grid.")
@click.option("--resampling", type=click.Choice(_RESAMPLING), default="nearest")
@click.option("--mask-outside", is_flag=True, help="Mask pixels outside the region.")
@click.option("--mask-band", help="Band that masks the others where it is 0; not exported.")
@click.option("--drop-masked", is_flag=True, help="Leave out masked steps of array bands.")
@click.option("--labels", metavar="FILE", help="Vector features to burn as a label band.")
@click.option("--labels-attribute", help="Property with the value to burn; default: burn 1.")
@click.option("--labels-name", default="label", show_default=True, help="Name of the label band.")
@click.option("--labels-dtype", default="uint8", show_default=True)
@click.option("--labels-background", type=float, default=0, help="Value where no feature lies.")
@click.option("--labels-nodata", type=float, help="Value of the label band that means no data.")
@click.option("--labels-crs", help="CRS of the labels; default: what their file says.")
@click.option("--all-touched", is_flag=True, help="Burn each pixel that a label touches.")
@click.option("--at", metavar="FILE", help="Take patches at these points or polygons only.")
@click.option("--at-crs", help="CRS of the points; default: what their file says.")
@click.option("--validation", type=float, help="Share of blocks for a PREFIX-validation.")
@click.option("--split-block", type=PAIR, help="Block of the split in pixels; default: 8 patches.")
@click.option("--split-seed", type=int, default=0, help="Another number divides otherwise.")
@click.option("--patch-index", help="Write each patch's index as this feature.")
@click.option("--no-masks", is_flag=True, help="Do not note masked pixels in the manifest.")
@click.option("--statistics", is_flag=True, help="Count, min, max, mean, std of each band.")
@click.option("--uncompressed", is_flag=True, help="Write plain files, not gzip.")
@click.option("--naming", type=click.Choice(["drive", "gcs"]), default="drive")
@overwrite_option
@click.option("--workers", type=int, help="Threads or processes; default: one a core.")
@click.option("--processes", is_flag=True, help="Work in processes instead of threads.")
@click.option("--dask", metavar="ADDRESS", help="Work on this Dask scheduler.")
@json_option
def image_command(
    sources: tuple[str, ...],
    prefix: str,
    *,
    as_json: bool,
    **options: Any,
) -> None:
    """Cut SOURCES (GeoTIFF, VRT, NetCDF, URL ...) into patches named PREFIX-00000.tfrecord.gz.

    Several sources are stacked. Beside the shards lie PREFIX-mixer.json, as Earth Engine writes
    it, and PREFIX-manifest.json with what a mixer cannot say. An interrupted export goes on where
    it stopped when the same command is given again.

    \b
    Examples:
      tfrio export image scene.tif out/scene --patch 256,256
      tfrio export image scene.tif out/scene --patch 256,128 --kernel 33,17 --dtype native
      tfrio export image s2.tif dem.tif out/both --patch 128 --crs EPSG:32633 --scale 10
      tfrio export image s2.tif out/train --patch 64 --labels fields.gpkg --validation 0.2
    """
    from tfrio.geo.export import export_image

    with progress("exporting", "records") as update:
        report: ExportReport = export_image(
            sources[0] if len(sources) == 1 else list(sources),
            prefix,
            progress=_two(update),
            **_image_options(options),
        )
    if as_json:
        emit_json(report.as_dict())
    else:
        click.echo(f"{report}\n{_files(report)}")


def _two(
    update: Callable[[int, int], None] | None,
) -> Callable[[int, int, int], None] | None:
    """Leave out the bytes, which the bar has no room for."""
    return None if update is None else lambda done, total, _bytes: update(done, total)


def _image_options(options: dict[str, Any]) -> dict[str, Any]:
    """Translate the command's options to those of ``export_image``."""
    given = dict(options)
    dask, processes = given.pop("dask"), given.pop("processes")
    given["bands"] = _bands(given["bands"])
    given["keep_masks"] = not given.pop("no_masks")
    given |= {"labels": _labels(given), "at": _at(given), "split": _split(given)}
    given["compressed"] = not given.pop("uncompressed")
    given["executor"] = dask or ("processes" if processes else "threads")
    given["tensor_depths"] = as_mapping(given.pop("tensor_depth"), int)
    return given


def _bands(text: str | None) -> list[str | int] | dict[str, str | int] | None:
    """Read band names and numbers; with a new name among them, all get names."""
    found = names(text)
    if found is None or not any("=" in name for name in found):
        return None if found is None else [_number(name) for name in found]
    pairs = [name.rpartition("=") for name in found]
    named = [new or (f"b{old}" if old.isdecimal() else old) for new, _, old in pairs]
    if len(set(named)) < len(named):
        raise click.UsageError(
            f"--bands {text} gives one name to two bands; give each its own: first=1,second=1"
        )
    return {new: _number(old) for new, (_, _, old) in zip(named, pairs, strict=True)}


def _number(name: str) -> str | int:
    return int(name) if name.isdecimal() else name


def _labels(given: dict[str, Any]) -> Labels | None:
    """Make the label band of its options, which are taken out."""
    about = {name: given.pop(f"labels_{name}") for name in _LABELS}
    where, touched = given.pop("labels"), given.pop("all_touched")
    if where is None:
        return None
    from tfrio.geo.labels import Labels

    return Labels(where=where, all_touched=touched, **about)


def _at(given: dict[str, Any]) -> PatchesAt | None:
    where, crs = given.pop("at"), given.pop("at_crs")
    if where is None:
        return None
    from tfrio.geo.points import PatchesAt

    return PatchesAt(where=where, crs=crs)


def _split(given: dict[str, Any]) -> Split | None:
    share, block, seed = (given.pop(n) for n in ("validation", "split_block", "split_seed"))
    if share is None:
        return None
    from tfrio.geo.points import Split
    from tfrio.types import XY

    return Split(validation=share, block=XY.of(block) if block else None, seed=seed)


def _files(report: ExportReport) -> str:
    """Say where the files lie."""
    last = f" to {Path(report.shards[-1]).name}" if len(report.shards) > 1 else ""
    beside = [Path(path).name for path in (report.mixer, report.manifest) if path]
    line = f"{report.shards[0]}{last}, {', '.join(beside)}" if report.shards else beside[-1]
    return line if report.validation is None else f"{line}\n{_files(report.validation)}"


def _fill(texts: tuple[str, ...]) -> float | str | dict[str, float | str] | None:
    """Return what takes the place of nulls: one value for all columns, or one by column."""
    if len(texts) == 1 and "=" not in texts[0]:
        return number_or_text(texts[0])
    return as_mapping(texts, number_or_text)


@export_command.command("table", short_help="Write a table as one TFRecord file.")
@click.argument("source")
@click.argument("prefix", callback=not_standard_output)
@click.option("--selectors", help="Columns to write, separated by commas.")
@click.option("--xy", metavar="X,Y", help="Write points under these two names.")
@click.option("--crs", help="CRS of the geometry where the file does not name it.")
@click.option(
    "--dtype",
    type=click.Choice(["float", "native"]),
    default="float",
    show_default=True,
    help="float: numbers as float32, as Earth Engine does. native: whole numbers as int64.",
)
@setting("--type", "Kind of a column: float, int64 or bytes.")
@click.option(
    "--fill",
    multiple=True,
    metavar="[NAME=]VALUE",
    help="In place of nulls, of one column or of all: a number in columns of numbers, text in "
    "those of text. Default: the key is left out.",
)
@click.option("--strict", is_flag=True, help="Fail where float32 changes a whole number.")
@click.option("--layer", help="Layer of a GeoPackage.")
@click.option("--encoding", help="Text encoding of a CSV file.")
@overwrite_option
@json_option
def table_command(
    source: str,
    prefix: str,
    *,
    as_json: bool,
    **options: Any,
) -> None:
    """Write SOURCE (CSV, GeoJSON, Parquet, GeoPackage ...) as PREFIX.tfrecord.gz.

    Numbers become float32 lists of length 1, text becomes bytes, a null leaves its key out.

    \b
    Examples:
      tfrio export table samples.csv out/samples
      tfrio export table plots.geojson out/plots --xy longitude,latitude --selectors class,ndvi
    """
    from tfrio.tables.export import export_table

    xy = names(options.pop("xy"))
    if xy is not None and len(xy) != 2:
        raise click.UsageError("--xy takes two names, such as longitude,latitude")
    report = export_table(
        source,
        prefix,
        xy=(xy[0], xy[1]) if xy else None,
        types=as_mapping(options.pop("type")),
        fill=_fill(options.pop("fill")),
        **options,
    )
    if as_json:
        emit_json(report.as_dict())
    else:
        click.echo(str(report))

"""`tfrio convert` and `tfrio extract`: TFRecord to other forms and back, images out of records."""

from __future__ import annotations

import os
from typing import Literal

import click

from tfrio.cli.output import emit_json, json_option, progress
from tfrio.cli.params import names, not_standard_output, overwrite_option, readable

__all__ = ["convert_command", "extract_command"]


@click.command("convert", short_help="Convert to Parquet, Arrow or npz and back, exactly.")
@click.argument("sources", nargs=-1, required=True, callback=readable)
@click.argument("out", callback=not_standard_output)
@click.option(
    "-k", "--keys", "features", help="Features to take, in this order, separated by commas."
)
@click.option("--level", type=int, help="Level of gzip: 1 (fast) to 9 (small).")
@click.option("--strict", is_flag=True, help="Refuse numbers that float32 changes noticeably.")
@click.option(
    "--unmangle",
    metavar="NAMES",
    help="Restore bytes that were stored as text (UTF-8, base64, printed), in these features.",
)
@overwrite_option
@json_option
def convert_command(
    sources: tuple[str, ...],
    out: str,
    *,
    features: str | None,
    level: int | None,
    strict: bool,
    unmangle: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Convert SOURCES to OUT, by the endings of their names, exactly and a batch at a time.

    Between TFRecord and .parquet, .arrow or .npz; from TFRecord to TFRecord only the compression
    changes. Absent features are nulls, lists stay lists, bytes stay bytes.

    \b
    Examples:
      tfrio convert 'shards/*.gz' all.parquet
      tfrio convert all.parquet again.tfrecord.gz
      tfrio convert plain.tfrecord packed.tfrecord.gz --level 9
      tfrio convert --unmangle image/encoded spoiled.tfrecord restored.tfrecord
    """
    from tfrio.compression import DEFAULT_LEVEL
    from tfrio.storage import is_stream
    from tfrio.tables.transcode import convert

    with progress("converting", "records") as update:
        report = convert(
            sources[0] if len(sources) == 1 else list(sources),
            out,
            features=names(features),
            level=DEFAULT_LEVEL if level is None else level,
            strict=strict,
            unmangle=names(unmangle) or (),
            overwrite=overwrite,
            progress=update,
        )
    if as_json:
        emit_json(report.as_dict())
    else:
        click.echo(str(report), err=is_stream(out))


@click.command("extract", short_help="Write the images of records as files.")
@click.argument("paths", nargs=-1, required=True, callback=readable)
@click.argument("out", callback=not_standard_output)
@click.option("--image", required=True, help="Feature with the image, encoded or raw.")
@click.option("--shape", help="Height,width or height,width,channels of raw images.")
@click.option("--layout", type=click.Choice(["hwc", "chw"]), default="hwc", show_default=True)
@click.option("--mask", help="Feature with a mask to tint raw images by.")
@click.option("--records", metavar="FIRST:STOP", help="Only these records, counted from 0.")
@click.option(
    "--geotiff",
    metavar="EXPORT",
    help="Write GeoTIFFs in their places: mixer, manifest or prefix of the export.",
)
@overwrite_option
@json_option
def extract_command(
    paths: tuple[str, ...],
    out: str,
    *,
    image: str,
    shape: str | None,
    layout: Literal["hwc", "chw"],
    mask: str | None,
    records: str | None,
    geotiff: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write the image of each record of PATHS to OUT, a folder or a .zip file.

    Encoded images are written as they are, raw ones as PNG. With --geotiff the patches of an export
    become GeoTIFFs in a folder, and --records counts patches.

    \b
    Examples:
      tfrio extract train.tfrecord images/ --image image/encoded
      tfrio extract scene-00000.tfrecord.gz b4.zip --image B4 --shape 64,104 --records 0:5
      tfrio extract 'out/scene-*.tfrecord.gz' b4/ --image B4 --geotiff out/scene-mixer.json
    """
    from tfrio.tables.extract import ExtractReport, extract_images

    span = _range(records) if records else None
    if geotiff:
        from tfrio.geo.assemble_extract import extract_patches

        if out.lower().endswith(".zip") or mask or shape:
            raise click.UsageError("--geotiff writes to a folder, without --mask and --shape")
        patches = range(*span) if span else None
        files = extract_patches(
            geotiff, out, records=paths, patches=patches, bands=[image], overwrite=overwrite
        )
        report = ExtractReport(out, tuple(os.path.basename(file) for file in files))  # noqa: PTH119
    else:
        report = extract_images(
            paths,
            out,
            image=image,
            shape=_whole_numbers(shape, ",", "--shape") if shape else None,
            layout=layout,
            mask=mask,
            records=span,
            overwrite=overwrite,
        )
    if as_json:
        emit_json(report.as_dict())
    else:
        click.echo(str(report))


def _range(text: str) -> tuple[int, int]:
    first, stop = _whole_numbers(text, ":", "--records", count=2)
    return first, stop


def _whole_numbers(text: str, between: str, option: str, count: int | None = None) -> list[int]:
    parts = text.split(between)
    if not all(part.isdecimal() for part in parts) or (count and len(parts) != count):
        raise click.UsageError(f"{option} takes whole numbers with '{between}' between them")
    return [int(part) for part in parts]

"""`tfrio upload-manifest`: what `earthengine upload image` needs to know, without any network."""

from __future__ import annotations

from typing import Any

import click

from tfrio.cli.output import emit_json, json_option
from tfrio.cli.params import NUMBERS, as_mapping, names, overwrite_option, setting
from tfrio.cli.wording import spoken

__all__ = ["upload_manifest_command"]


@click.command("upload-manifest", short_help="Write manifests for an upload to Earth Engine.")
@click.argument("folder")
@click.option("--assets", required=True, help="Where assets go: projects/PROJECT/assets/FOLDER.")
@click.option("--uri", required=True, help="gs:// folder that the files are copied to.")
@click.option("--out", help="Folder for the JSON files; default: FOLDER.")
@click.option("--mixer", help="Mixer in FOLDER for all predictions that have none of their own.")
@click.option("--bands", help="New band names, separated by commas.")
@click.option(
    "--pyramiding",
    type=click.Choice(["MEAN", "MODE", "SAMPLE", "MIN", "MAX", "MEDIAN"]),
    default="MEAN",
    show_default=True,
    help="How pixels are summed up; MODE for classes.",
)
@click.option("--nodata", type=NUMBERS, help="Value that means missing in every band, or several.")
@click.option("--last-band-alpha", is_flag=True, help="The last band is the mask.")
@setting("--property", "Property of the assets.")
@click.option("--start-time", help="Begin of the time the assets show, ISO 8601.")
@click.option("--end-time", help="Its end.")
@overwrite_option
@json_option
def upload_manifest_command(folder: str, *, as_json: bool, **options: Any) -> None:
    """Write a manifest for each set of predictions in FOLDER, for `earthengine upload image`.

    No network is used. Leaves with 1 where a set cannot be uploaded: no mixer, a missing shard.

    \b
    Example:
      tfrio upload-manifest pred/ --assets projects/me/assets/maps --uri gs://my-bucket/pred
    """
    from tfrio.geo.assemble_upload import upload_manifests

    options["bands"] = names(options["bands"])
    options["properties"] = as_mapping(options.pop("property"), _number)
    plan = upload_manifests(folder, **options)
    if as_json:
        emit_json(plan.as_dict())
    else:
        click.echo(spoken(str(plan), upload_manifest_command, []))
    if plan.problems:
        raise SystemExit(1)


def _number(text: str) -> float | str:
    """Return a number where a text is one; properties are compared as what they are."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text

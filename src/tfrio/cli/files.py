"""Commands on whole files: count, index, repair, split, merge, filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tfrio.cli.output import (
    emit_json,
    human_bytes,
    json_option,
    new_table,
    plural,
    progress,
    show,
)
from tfrio.cli.params import not_standard_output, overwrite_option, readable
from tfrio.errors import GeoError, listed, many, warn_user

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfrio.examples.repair import RepairReport
    from tfrio.examples.reshard import CopyReport
    from tfrio.records.index import RecordIndex

__all__ = [
    "count_command",
    "filter_command",
    "index_command",
    "merge_command",
    "repair_command",
    "split_command",
]


def _damage_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what happens to damaged records."""
    skip = click.option("--skip-bad", is_flag=True, help="Leave damaged records out.")
    most = click.option("--max-bad", type=int, help="Most damaged records to leave out.")
    return skip(most(command))


def _packing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how the output is compressed."""
    kinds = click.Choice(["none", "gzip", "zlib"])
    kind = click.option("--compression", type=kinds, help="Default: by the name of the output.")
    return kind(command)


@click.command("count", short_help="Count records, file by file.")
@click.argument("paths", nargs=-1, required=True, callback=readable)
@click.option("--split", help="Only shards of this split, such as train.")
@click.option("--verify", is_flag=True, help="Check payload checksums too.")
@json_option
def count_command(
    paths: tuple[str, ...], *, split: str | None, verify: bool, as_json: bool
) -> None:
    """Count the records of PATHS (files, folders, globs, - for standard input), whatever they hold.

    \b
    Examples:
      tfrio count shards/
      tfrio count --json 'train-*.tfrecord.gz'
    """
    from tfrio.records.counting import count

    report = count(paths, split=split, verify=verify)
    if as_json:
        emit_json([file.to_dict() for file in report.files])
        return
    table = new_table("file", "records", "bytes", right=("records", "bytes"))
    for file in report.files:
        table.add_row(file.path, f"{file.records:,}", f"{file.bytes:,}")
    if len(report.files) > 1:
        table.add_row("total", f"{report.records:,}", f"{report.bytes:,}")
    show(table)


@click.command("index", short_help="Make indexes for random access.")
@click.argument("paths", nargs=-1, required=True, callback=readable)
@click.option("--text", is_flag=True, help="Write 'offset size' lines to FILE.index, for others.")
@click.option(
    "--out", callback=not_standard_output, help="Where to write the index of a single file."
)
@click.option("--allow-partial", is_flag=True, help="Leave damaged records out of the index.")
@overwrite_option
@json_option
def index_command(
    paths: tuple[str, ...],
    *,
    text: bool,
    out: str | None,
    allow_partial: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Make an index for each of PATHS (files, folders, globs), every record checked.

    tfrio makes indexes by itself when they are needed; this makes them beforehand, and anew. --text
    writes the text form that tfrecord2idx and DALI use, for plain files only.

    \b
    Examples:
      tfrio index shards/
      tfrio index --text train.tfrecord --out train.idx
    """
    from tfrio.records.index import build_index
    from tfrio.records.meter import Meter
    from tfrio.records.shards import expand
    from tfrio.storage import refuse_existing, refuse_stream

    files = expand(paths)
    if out is not None and len(files) > 1:
        raise click.UsageError(f"--out names one index, and there are {len(files)} files")
    made: list[dict[str, Any]] = []
    with progress("indexing", "bytes") as update:
        meter = Meter.of(files, update)
        for file in files:
            refuse_stream(file, "an index")
            named = out or (f"{file}.index" if text else None)
            refuse_existing(named, overwrite=overwrite)
            index = build_index(file, allow_partial=allow_partial, advanced=meter.add)
            place = _save_index(index, file, named, text=text)
            made.append(
                {"path": file, "index": place, "records": index.count, "partial": index.partial}
            )
    if as_json:
        emit_json(made)
    else:
        for row in made:
            click.echo(f"{row['path']}: {plural(row['records'], 'record')} -> {row['index']}")
            if row["partial"]:
                click.echo(
                    f"tfrio: warning: {row['path']}: damaged records are left out of its index; "
                    "`tfrio verify` tells which",
                    err=True,
                )


def _save_index(index: RecordIndex, file: str, out: str | None, *, text: bool) -> str:
    """Write an index in the form asked for; return where."""
    from tfrio.records.sidecar import save_index
    from tfrio.records.textindex import write_text_index

    if text:
        return str(write_text_index(index, out or f"{file}.index"))
    return str(save_index(index, file, out=out))


@click.command("repair", short_help="Save every whole record of a damaged file.")
@click.argument("path", callback=readable)
@click.argument("out", callback=not_standard_output)
@_packing_options
@overwrite_option
@json_option
def repair_command(
    path: str, out: str, *, compression: str | None, overwrite: bool, as_json: bool
) -> None:
    """Write every whole record of the damaged file PATH to the new file OUT.

    PATH is never touched, unless OUT is PATH itself and --overwrite is given. What was dropped is
    told, with its place; of a shard of an image export also which patches are lost. Leaves with
    1, and without OUT, where no record could be kept.

    \b
    Example:
      tfrio repair damaged.tfrecord.gz saved.tfrecord.gz
    """
    from tfrio.examples.repair import repair

    with progress("repairing", "bytes") as update:
        report = repair(path, out, compression=compression, overwrite=overwrite, progress=update)
    if as_json:
        emit_json(report.to_dict())
    else:
        click.echo(report.text)
        _tell_lost(report)
    if not report.clean and not report.kept:
        raise SystemExit(1)


def _tell_lost(report: RepairReport) -> None:
    """Name the patches that are lost with a shard's records, and what to do about them."""
    from tfrio.geo.lost import lost_with

    try:
        found = None if report.clean else lost_with(report)
    except GeoError as error:  # the file is saved all the same
        warn_user(str(error))
        return
    if found is None or not found[1]:
        return
    manifest, patches = found
    click.echo(
        f"lost with it: {many(len(patches), 'patch')} {listed(patches, most=20)} of the export "
        f"({manifest}). The "
        "new file cannot take the shard's place: export again and take that shard, or leave the "
        "damaged one and skip (docs: Mending damage)"
    )


@click.command("split", short_help="Write records to several shards.")
@click.argument("paths", nargs=-1, required=True, callback=readable)
@click.argument("prefix", callback=not_standard_output)
@click.option("--shards", type=int, help="Number of files, named PREFIX-00000-of-00004.tfrecord.")
@click.option("--max-records", type=int, help="Most records in a file.")
@click.option("--max-bytes", type=int, help="Most uncompressed bytes in a file.")
@_packing_options
@_damage_options
@json_option
def split_command(
    paths: tuple[str, ...],
    prefix: str,
    *,
    shards: int | None,
    max_records: int | None,
    max_bytes: int | None,
    compression: str | None,
    skip_bad: bool,
    max_bad: int | None,
    as_json: bool,
) -> None:
    """Write the records of PATHS (files, folders, globs), in order, to shards named PREFIX-...

    Payloads stay as they are, byte for byte. PREFIX-shards.json lists the finished shards; an
    interrupted run goes on where it stopped when the same command is given again.

    \b
    Examples:
      tfrio split big.tfrecord out/train --shards 16
      tfrio split big.tfrecord out/train --max-bytes 100000000 --compression gzip
    """
    from tfrio.examples.reshard import reshard

    with progress("splitting", "bytes") as update:
        report = reshard(
            paths,
            prefix,
            shards=shards,
            max_records=max_records,
            max_bytes=max_bytes,
            compression=compression,
            errors="skip" if skip_bad else "raise",
            max_bad=max_bad,
            progress=update,
        )
    _tell_copy(report, as_json=as_json)


@click.command("merge", short_help="Write the records of many files to one.")
@click.argument("paths", nargs=-1, required=True, callback=readable)
@click.argument("out", callback=not_standard_output)
@_packing_options
@_damage_options
@overwrite_option
@json_option
def merge_command(
    paths: tuple[str, ...],
    out: str,
    *,
    compression: str | None,
    skip_bad: bool,
    max_bad: int | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write the records of PATHS (files, folders, globs), in order, to the one file OUT.

    Payloads stay as they are, byte for byte. A name ending in .gz means gzip.

    \b
    Example:
      tfrio merge 'shards/train-*' train.tfrecord.gz
    """
    from tfrio.examples.reshard import merge

    with progress("merging", "bytes") as update:
        report = merge(
            paths,
            out,
            compression=compression,
            errors="skip" if skip_bad else "raise",
            max_bad=max_bad,
            overwrite=overwrite,
            progress=update,
        )
    _tell_copy(report, as_json=as_json)


@click.command("filter", short_help="Write the records for which a condition holds.")
@click.argument("where")
@click.argument("paths", nargs=-1, required=True, callback=readable)
@click.argument("out", callback=not_standard_output)
@_packing_options
@overwrite_option
@json_option
def filter_command(
    where: str,
    paths: tuple[str, ...],
    out: str,
    *,
    compression: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write those records of PATHS (files, folders, globs) to OUT for which WHERE holds.

    WHERE is an expression over the features: `id != 20`, `len(x) > 3 and name in ['a', 'b']`,
    `row['image/class'] == 7`. A feature that is absent is None. Payloads stay as they are.

    \b
    Example:
      tfrio filter "label == 3" shards/ threes.tfrecord.gz
    """
    from tfrio.examples.where import filter_examples

    with progress("filtering", "bytes") as update:
        report = filter_examples(
            paths,
            out,
            where=where,
            compression=compression,
            overwrite=overwrite,
            progress=update,
        )
    _tell_copy(report, as_json=as_json)


def _tell_copy(report: CopyReport, *, as_json: bool) -> None:
    if as_json:
        emit_json(report.to_dict())
        return
    for row in report.files:
        size = f", {human_bytes(row.bytes)}" if row.digest else ""  # a pipe has neither
        click.echo(f"{row.path}: {plural(row.records, 'record')}{size}", err=not row.digest)
    if report.left_out:
        click.echo(f"{plural(report.left_out, 'record')} left out")
    if report.resumed:
        click.echo(f"{plural(report.resumed, 'shard')} finished by an earlier run")
    if report.damages.skipped_records:
        click.echo(f"{plural(report.damages.skipped_records, 'damaged record')} left out")

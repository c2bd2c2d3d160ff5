"""`tfrio info` and `tfrio verify`: what files hold, and whether they are whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrio.cli.output import (
    emit_json,
    human_bytes,
    json_option,
    new_table,
    plural,
    progress,
    say,
    show,
)
from tfrio.cli.params import readable
from tfrio.errors import listed

if TYPE_CHECKING:
    from tfrio.records.verify import VerifyReport
    from tfrio.survey import ExportInfo, FeatureInfo, InfoReport

__all__ = ["info_command", "verify_command"]

_CONTENTS = {
    "example": "tf.train.Example",
    "sequence": "tf.train.SequenceExample",
    "other": "payload is not tf.train.Example; see it with `tfrio head --raw`",
    "empty": "no sound record",
}

_ADVICE = ". Run `tfrio verify`"  # is running


@click.command("info", short_help="Say what files hold: records, features, damage.")
@click.argument("paths", nargs=-1, required=True, callback=readable)
@click.option(
    "--schema",
    metavar="FILE",
    help="Also say how they fit this schema; leaves with 1 if they do not.",
)
@json_option
def info_command(paths: tuple[str, ...], *, schema: str | None, as_json: bool) -> None:
    """Say what PATHS (files, folders, globs, - for standard input) hold. No schema is needed.

    Every record is checked; the features are those of the first 1,000 records of each file.
    Leaves with 1 when a file is damaged or no TFRecord.

    \b
    Examples:
      tfrio info train.tfrecord
      tfrio info export/
      tfrio info --json 'shards/*.gz'
      tfrio info --schema schema.json train.tfrecord
    """
    from tfrio.examples.schema_files import load_schema
    from tfrio.survey import info

    wanted = None if schema is None else load_schema(schema)
    with progress("checking", "bytes") as update:
        report = info(paths, schema=wanted, progress=update)
    if as_json:
        emit_json(report.to_dict())
    else:
        _tell_info(report)
    misfit = report.schema is not None and not report.schema.ok
    if misfit or any(f.kind in ("damage", "problem") for f in report.checks.findings):
        raise SystemExit(1)


def _tell_info(report: InfoReport) -> None:
    checks = report.checks
    packed = ", ".join(map(_packing, report.compressions)) or "unreadable"
    say(
        f"{plural(len(checks.files), 'file')}, {plural(report.records, 'record')}, "
        f"{human_bytes(checks.bytes)} ({packed}): {_content(report)}"
    )
    if len(report.contents) > 1:
        _tell_mixture(report)
    if report.features:
        say("")
        _tell_features(report.features, report.sampled)
    for export in report.exports:
        say("")
        _tell_export(export)
    for note in report.notes:
        say("")
        say(note, style="yellow")
    if report.schema is not None:
        say("")
        say(str(report.schema), style="" if report.schema.ok else "red")
    say("")
    _tell_findings(checks)


def _content(report: InfoReport) -> str:
    if len(report.contents) > 1:
        return "files of different messages"
    return _CONTENTS[report.content]


def _tell_mixture(report: InfoReport) -> None:
    """Say which files hold which messages."""
    records = {file.path: file.records for file in report.checks.files}
    for content, paths in report.contents.items():
        counts = f"{plural(sum(map(records.__getitem__, paths)), 'record')} in "
        say(
            f"{_CONTENTS[content]}: {counts}{plural(len(paths), 'file')}: {listed(paths)}",
            style="yellow",
        )


def _packing(compression: str | None, members: int = 1) -> str:
    if compression == "gzip" and members > 1:
        return plural(members, "gzip member")
    return "plain" if compression == "none" else compression or "unreadable"


def _tell_features(features: tuple[FeatureInfo, ...], sampled: int) -> None:
    from tfrio.examples.layout import shown_name

    table = new_table("feature", "kind", "values", "present", right=("present",))
    for feature in features:
        kind = " or ".join(feature.kinds) or "no kind"
        table.add_row(
            shown_name(feature.name),
            f"steps of {kind}" if feature.list else kind,
            _lengths(feature),
            "always" if not feature.absent else f"{feature.present:,} of {sampled:,}",
        )
    show(table)


def _lengths(feature: FeatureInfo) -> str:
    if feature.lengths is None:
        return "none"
    text = _span(feature.lengths)
    if feature.shape is not None:
        axes = ("any" if axis < 0 else f"{axis:,}" for axis in feature.shape)
        text = f"{text} ({' x '.join(axes)})"
    return f"{text}, steps {_span(feature.steps)}" if feature.steps else text


def _span(pair: tuple[int, int]) -> str:
    low, high = pair
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _tell_export(export: ExportInfo) -> None:
    kernel = "kernel not told" if export.kernel is None else f"kernel {_pair(export.kernel)}"
    bands = f", bands {', '.join(export.bands)}" if export.bands else ""
    say(
        f"image export {export.prefix}: {plural(export.patches, 'patch')} of "
        f"{_pair(export.patch)} ({export.columns} a row, {plural(export.rows, 'row')}), "
        f"{kernel}, {export.crs}{bands}"
    )


def _pair(pair: tuple[int, int]) -> str:
    return f"{pair[0]}x{pair[1]}"


def _tell_findings(report: VerifyReport) -> None:
    for finding in report.findings:
        say(finding.message.partition(_ADVICE)[0], style="red")
    for note in report.notes:
        say(note, style="yellow")
    if report.ok:
        if not report.empty:  # as to which nobody can say that nothing is missing
            say("every checksum is right, nothing is missing", style="green")
        return
    say(plural(len(report.findings), "finding"), style="bold red")
    if any(finding.kind == "damage" for finding in report.findings):
        say("`tfrio repair` writes a new file with every whole record")


@click.command("verify", short_help="Check every byte, and that no shard is missing.")
@click.argument("paths", nargs=-1, required=True, callback=readable)
@click.option("--digest", is_flag=True, help="Also print the SHA-256 of each file.")
@click.option("--split", help="Only shards of this split, such as train.")
@click.option("-v", "--verbose", is_flag=True, help="Also tell which files were left out, and why.")
@json_option
def verify_command(
    paths: tuple[str, ...], *, digest: bool, split: str | None, verbose: bool, as_json: bool
) -> None:
    """Check every record of PATHS (files, folders, globs, - for standard input).

    Leaves with 0 when all is well and with 1 on any finding: a wrong checksum, missing bytes, a
    missing or extra shard, a number of records that the mixer or dataset_info.json contradicts.

    \b
    Examples:
      tfrio verify train.tfrecord.gz
      tfrio verify export/
      tfrio verify --json --digest 'shards/*' > report.json
    """
    from tfrio.records.verify import verify

    with progress("checking", "bytes") as update:
        report = verify(paths, split=split, digest=digest, progress=update)
    if as_json:
        emit_json(report.to_dict())
    else:
        _tell_verify(report, digest=digest, verbose=verbose)
    if not report.ok:
        raise SystemExit(1)


def _tell_verify(report: VerifyReport, *, digest: bool, verbose: bool) -> None:
    columns = ("file", "records", "bad", "bytes", "compression", *(["sha256"] if digest else []))
    table = new_table(*columns, right=("records", "bad", "bytes"))
    for file in report.files:
        row = [
            file.path,
            f"{file.records:,}",
            f"{file.bad:,}" if file.bad else "",
            f"{file.bytes:,}" if file.bytes is not None else "",
            _packing(file.compression, file.members),
        ]
        table.add_row(*row, *([file.digest or ""] if digest else []))
    show(table)
    for ignored in report.ignored if verbose else ():
        say(f"left out: {ignored.path}: {ignored.reason}")
    say(
        f"{plural(report.records, 'sound record')} in {plural(len(report.files), 'file')}, "
        f"{human_bytes(report.bytes)}"
    )
    _tell_findings(report)

"""The manifest of a table: what Earth Engine's table records forget, as one JSON file beside them.

Records hold float32 lists and bytes. ``PREFIX-manifest.json`` keeps the shape of arrays, the
source's types, where the points are and in which CRS.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Final, Literal

import msgspec

from tfrio import storage
from tfrio.errors import SchemaError
from tfrio.examples.schema import Feature, Schema

__all__ = ["FORMAT", "ColumnRow", "TableManifest", "beside", "read_manifest", "write_manifest"]

FORMAT: Final = "tfrio-table/1"
_SUFFIXES = (".tfrecord.gz", ".tfrecords.gz", ".tfrecord", ".tfrecords")
_LARGEST = 1 << 28


class ColumnRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One column.

    Args:
        name: Name of the feature.
        kind: Kind it is stored as.
        form: What the source held: ``"int"``, ``"text"`` ...
        dtype: The source's own name of the type, where it has one.
        shape: Shape of each row's array, ``[]`` for one value, None where rows differ.
        nulls: Rows without a value.
    """

    name: str
    kind: Literal["bytes", "float", "int64"]
    form: str
    dtype: str = ""
    shape: list[int] | None = []
    nulls: int = 0


class TableManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an exported table holds.

    Args:
        format: Version of this format.
        source: Name of the source.
        file: Name of the TFRecord file, without folder.
        rows: Records in it.
        columns: Columns, in the source's order.
        xy: Names of the columns with the points' x and y.
        crs: CRS of the points.
    """

    format: Literal["tfrio-table/1"] = FORMAT
    source: str = ""
    file: str
    rows: int
    columns: list[ColumnRow]
    xy: tuple[str, str] | None = None
    crs: str | None = None

    def schema(self) -> Schema:
        """Return the schema that gives single values as scalars and arrays in their shapes."""
        return Schema(
            {
                column.name: Feature(
                    column.kind,
                    shape=None if column.shape is None else tuple(column.shape),
                    required=column.nulls == 0,
                )
                for column in self.columns
            }
        )


def prefix_of(path: str) -> str:
    """Return a path without the ending of a TFRecord file."""
    for suffix in _SUFFIXES:
        if path.lower().endswith(suffix):
            return path[: -len(suffix)]
    return path


def beside(path: str) -> str:
    """Return where the manifest of a TFRecord file would be."""
    return f"{prefix_of(path)}-manifest.json"


def read_manifest(path: str) -> TableManifest:
    """Read the manifest of a table.

    Args:
        path: The file ``PREFIX-manifest.json``.

    Returns:
        The manifest.

    Raises:
        SchemaError: The file is another kind of file.
    """
    with closing(storage.open_read(path)) as reader:
        data = reader.read_at(0, _LARGEST)
    try:
        return msgspec.json.decode(data, type=TableManifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SchemaError(
            f"{path}: not the manifest of a table ({error}). Give the file PREFIX-manifest.json "
            "that was written with the table, or move this one away",
            path=path,
        ) from error


def find_manifest(path: str) -> TableManifest | None:
    """Read the manifest beside a local TFRecord file, None where there is none for this file."""
    place = Path(beside(path))
    if "://" in path or not place.is_file():
        return None
    manifest = read_manifest(str(place))
    return manifest if manifest.file == Path(path).name else None


def write_manifest(path: str, manifest: TableManifest) -> None:
    """Write a manifest, under its final name only when whole."""
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    with storage.atomic_write(path) as file:
        file.write(text + b"\n")

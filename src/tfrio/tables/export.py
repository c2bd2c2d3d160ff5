"""A table to one gzip TFRecord file, as Earth Engine's Export.table writes it.

Every number becomes a list of one float32, text becomes bytes, a null leaves its key out, arrays
are flattened row by row. The manifest beside the file keeps what this loses.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio import storage
from tfrio.errors import EncodeError, GeoError, UsageError, many, warn_user
from tfrio.examples.columns import Batch, Ragged
from tfrio.examples.writer import Writer
from tfrio.tables.cells import Cells, changed, filled, stored
from tfrio.tables.fields import Field, Kind, Numbers, apply_types, select, xy_names
from tfrio.tables.manifest import (
    ColumnRow,
    TableManifest,
    beside,
    prefix_of,
    write_manifest,
)
from tfrio.tables.points import DEFAULT_CRS, lonlat
from tfrio.tables.sources import open_table
from tfrio.types import mapping_like, path_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from tfrio.tables.sources import Chunk, TableData, TableSource
    from tfrio.types import PathLike

__all__ = ["TableExportReport", "export_table"]

_ROWS = 16_384


@dataclass(frozen=True, slots=True)
class TableExportReport:
    """What an export of a table wrote.

    Args:
        path: The TFRecord file.
        manifest: The manifest beside it.
        rows: Records written.
        columns: Feature names, in the order of the source.
        nulls: Rows without a value, by column that has some.
        rounded: Whole numbers that float32 changed, by column that has some.
        xy_error: Largest distance in metres by which float32 moved a point, None without points.
        size: Bytes of the file.
    """

    path: str
    manifest: str
    rows: int
    columns: tuple[str, ...]
    nulls: Mapping[str, int]
    rounded: Mapping[str, int]
    xy_error: float | None
    size: int

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the report as a few lines."""
        columns = len(self.columns)
        lines = [
            f"{self.rows:,} {many(self.rows, 'row')}, {columns} {many(columns, 'column')} -> "
            f"{self.path} ({self.size:,} bytes)"
        ]
        if self.nulls:
            some = ", ".join(f"{name} {count:,}" for name, count in self.nulls.items())
            lines.append(f"null, left out: {some}")
        if self.xy_error is not None:
            lines.append(f"points moved by at most {self.xy_error:.2f} m (float32)")
        return "\n".join(lines)


def export_table(
    source: TableData,
    prefix: PathLike,
    *,
    selectors: str | Iterable[str] | None = None,
    xy: tuple[str, str] | None = None,
    crs: str | None = None,
    dtype: Numbers = "float",
    types: Mapping[str, Kind] | None = None,
    fill: float | str | bytes | Mapping[str, float | str | bytes] | None = None,
    strict: bool = False,
    layer: str | None = None,
    encoding: str | None = None,
    overwrite: bool = False,
) -> TableExportReport:
    """Write a table as one gzip TFRecord file, one record a row.

    Args:
        source: A file (CSV, GeoJSON, Parquet, GeoParquet, Arrow, GeoPackage, Shapefile ...), a
            data frame with the Arrow interface, or mappings, one a row.
        prefix: Path without ending; ``.tfrecord.gz`` is added.
        selectors: Columns to write, a list or one comma-separated string; None writes all.
        xy: Names of two columns to write the points' longitude and latitude under. Without it
            the geometry is dropped, with a warning, because TFRecord tables have none.
        crs: CRS of the source's geometry where the source does not name it.
        dtype: ``"float"`` stores every number as float32, as Earth Engine does; ``"native"``
            stores whole numbers as int64.
        types: Kind by column: ``"float"``, ``"int64"`` or ``"bytes"`` (the number's text).
        fill: Value in place of nulls, for all columns or by column; None leaves the key out.
        strict: Raise where a whole number does not survive float32; otherwise warn.
        layer: Layer of a GeoPackage or other file with several.
        encoding: Text encoding of a CSV file, UTF-8 by default.
        overwrite: Allow the file to exist.

    Returns:
        What was written.

    Raises:
        UsageError: A column asked for does not exist.
        SchemaError: A column mixes numbers and text.
        EncodeError: A number does not fit, or (strict) changes.
        GeoError: A geometry is no point, or its CRS is not known.
        FileExistsError: The file exists and ``overwrite`` is not set.
    """
    path = f"{prefix_of(path_text(prefix))}.tfrecord.gz"
    storage.refuse_existing(path, overwrite=overwrite)
    xy = None if xy is None else xy_names(xy)
    if types is not None:
        mapping_like(types, "types", "{'id': 'int64'}")
    asked = frozenset(name for name, kind in (types or {}).items() if kind == "bytes")
    table = open_table(source, layer=layer, encoding=encoding, text=asked)
    fields = apply_types(select(table.fields, selectors), types)
    job = _Export(table, fields, xy=xy, crs=crs or table.crs, dtype=dtype, strict=strict, fill=fill)
    if not storage.is_remote(path):
        storage.local_path(path).parent.mkdir(parents=True, exist_ok=True)
    with Writer(path) as writer:
        for batch in job.batches():
            writer.write_batch(batch)
        job.warn()
    manifest = TableManifest(
        source=Path(table.path).name,
        file=Path(path).name,
        rows=job.rows,
        columns=job.columns(),
        xy=xy,
        crs=DEFAULT_CRS if xy else None,
    )
    write_manifest(beside(path), manifest)
    return TableExportReport(
        path=path,
        manifest=beside(path),
        rows=job.rows,
        columns=tuple(row.name for row in manifest.columns),
        nulls={row.name: row.nulls for row in manifest.columns if row.nulls},
        rounded=job.rounded,
        xy_error=job.xy_error if xy else None,
        size=Path(path).stat().st_size,
    )


class _Export:
    """What one export gathers while rows pass."""

    def __init__(
        self,
        table: TableSource,
        fields: list[Field],
        *,
        xy: tuple[str, str] | None,
        crs: str | None,
        dtype: Numbers,
        strict: bool,
        fill: float | str | bytes | Mapping[str, float | str | bytes] | None,
    ) -> None:
        self._table = table
        self._fields = fields
        self._kinds = {field.name: field.stored(dtype) for field in fields}
        self._xy = xy
        self._crs = crs
        self._strict = strict
        self._fill = _fills(fields, fill)
        self._shapes: dict[str, tuple[int, ...] | None] = {}
        self._nulls = dict.fromkeys((*self._kinds, *(xy or ())), 0)
        self.rounded: dict[str, int] = {}
        self.xy_error = 0.0
        self.rows = 0
        self._check()

    def _check(self) -> None:
        if self._xy is None:
            return
        if not self._table.geometry:
            raise UsageError(_no_geometry(self._table, self._xy))
        taken = [name for name in self._xy if name in self._kinds]
        if taken:
            raise UsageError(
                f"{self._table.path} has a column '{taken[0]}' already. Choose other names for "
                "xy=, or leave that column out with selectors="
            )

    def batches(self) -> Iterator[Batch]:
        """Yield what to write."""
        for chunk in self._table.chunks(self._fields, _ROWS, points=self._xy is not None):
            columns: dict[str, Any] = {}
            present: dict[str, NDArray[np.bool_]] = {}
            for field in self._fields:
                columns[field.name], present[field.name] = self._column(field, chunk)
            if self._xy is not None:
                self._points(chunk, columns, present)
            self.rows += chunk.rows
            yield Batch(columns, present=present, rows=chunk.rows)

    def _column(self, field: Field, chunk: Chunk) -> tuple[Ragged, NDArray[np.bool_]]:
        name, kind = field.name, self._kinds[field.name]
        cells = chunk.cells[name]
        self._nulls[name] += int((~cells.present).sum())
        if name in self._fill:
            cells = filled(cells, self._fill[name])
        self._see_shape(name, cells)
        where = f"{self._table.path}, rows from {chunk.first}"
        values = stored(cells, kind, name=name, where=where)
        self._see_changes(name, cells, kind, chunk.first)
        return Ragged(values, cells.offsets), cells.present

    def _see_shape(self, name: str, cells: Cells) -> None:
        if cells.present.any():
            shape = cells.shape()
            self._shapes[name] = shape if self._shapes.get(name, shape) == shape else None

    def _see_changes(self, name: str, cells: Cells, kind: Kind, first: int) -> None:
        lost = changed(cells.values, kind)
        if not lost.any():
            return
        spot = int(lost.argmax())
        if self._strict:
            raise EncodeError(
                f"{self._table.path}, row {first + cells.row_of(spot)}: float32 changes "
                f"{cells.values[spot]!s} of column '{name}'. Store it with "
                f"types={{'{name}': 'int64'}} or dtype='native'",
                record=first + cells.row_of(spot),
                feature=name,
            )
        self.rounded[name] = self.rounded.get(name, 0) + int(lost.sum())

    def _points(
        self, chunk: Chunk, columns: dict[str, Any], present: dict[str, NDArray[np.bool_]]
    ) -> None:
        odd = next((i for i, p in enumerate(chunk.points) if isinstance(p, str)), None)
        if odd is not None:
            raise GeoError(
                f"{self._table.path}, row {chunk.first + odd}: the geometry is "
                f"{chunk.points[odd]}, and xy= needs points. Take centroids first, or drop xy= to "
                "write the columns alone",
                path=self._table.path,
                record=chunk.first + odd,
            )
        points = [point for point in chunk.points if not isinstance(point, str)]
        x, y, known = lonlat(points, self._crs, path=self._table.path, to=DEFAULT_CRS)
        offsets = np.concatenate(([0], np.cumsum(known)))
        self.xy_error = max(self.xy_error, _moved(x[known], y[known]))
        for name, values in zip(self._xy or (), (x, y), strict=True):
            columns[name] = Ragged(values[known].astype(np.float32), offsets)
            present[name] = known
            self._nulls[name] += int((~known).sum())

    def warn(self) -> None:
        """Warn about what was lost, while nothing bears its final name yet."""
        if self._table.geometry and self._xy is None:
            warn_user(
                f"{self._table.path}: geometry dropped, because TFRecord tables have none. Pass "
                'xy=("longitude", "latitude") to keep points as two columns'
            )
        for name, count in self.rounded.items():
            warn_user(
                f"{self._table.path}: float32 changed {count:,} whole numbers of column '{name}'. "
                f"Store them exactly with types={{'{name}': 'int64'}} or dtype='native'"
            )

    def columns(self) -> list[ColumnRow]:
        """Return what the manifest says of each column."""
        rows = [
            ColumnRow(
                name=field.name,
                kind=self._kinds[field.name],
                form=field.form,
                dtype=field.dtype,
                shape=_listed(self._shapes.get(field.name, ())),
                nulls=0 if field.name in self._fill else self._nulls[field.name],
            )
            for field in self._fields
        ]
        places = [
            ColumnRow(name=name, kind="float", form="float", nulls=self._nulls[name])
            for name in self._xy or ()
        ]
        return rows + places


def _listed(shape: tuple[int, ...] | None) -> list[int] | None:
    return None if shape is None else list(shape)


def _fills(
    fields: list[Field], fill: float | str | bytes | Mapping[str, float | str | bytes] | None
) -> dict[str, float | str | bytes]:
    """Return the fill value by column, checked against what the columns hold."""
    if fill is None:
        return {}
    if isinstance(fill, float | int | str | bytes):
        text = isinstance(fill, str | bytes)
        fits = [f for f in fields if (f.stored("float") == "bytes") == text]
        return {field.name: fill for field in fits}
    known = {field.name: field for field in fields}
    for name, value in mapping_like(fill, "fill", "{'ndvi': 0}, or one value").items():
        if name not in known:
            raise UsageError(f"fill: no column '{name}'; there are {', '.join(known)}")
        if (known[name].stored("float") == "bytes") != isinstance(value, str | bytes):
            raise UsageError(f"fill: {value!r} does not fit column '{name}' ({known[name].form})")
    return dict(fill)


def _moved(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return the largest move in metres when degrees become float32 (111,320 m a degree)."""
    if not len(x):
        return 0.0
    east = np.abs(x - x.astype(np.float32)) * np.cos(np.radians(y))
    north = np.abs(y - y.astype(np.float32))
    return float(np.hypot(east, north).max() * 111_320)


def _no_geometry(table: TableSource, xy: tuple[str, str]) -> str:
    """Say what to do where points are asked for of a table that has none."""
    names = {field.name for field in table.fields}
    what = f"{table.path}: xy= needs a geometry, and there is none. "
    if names.issuperset(xy):
        return f"{what}Leave xy= out: the columns '{xy[0]}' and '{xy[1]}' are written as they are"
    return (
        f"{what}Leave xy= out: coordinates that are columns are written like any other. Or give a "
        "table with points: GeoJSON, GeoParquet or GeoPackage"
    )

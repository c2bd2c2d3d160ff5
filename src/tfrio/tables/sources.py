"""Open a table, whatever its format, as fields and chunks of cells."""

from __future__ import annotations

import csv
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from tfrio.errors import SchemaError, TfrioError, UsageError, require
from tfrio.tables.arrow import rows_of
from tfrio.tables.arrow_in import cells_of_arrow, field_of_arrow
from tfrio.tables.cells import Cells, cells_of_values
from tfrio.tables.fields import Field, Profile
from tfrio.tables.points import DEFAULT_CRS, point_of_wkb
from tfrio.tables.rows import CsvRows, GeoJsonRows, text_file
from tfrio.tables.rows_arrow import arrow_csv
from tfrio.types import mapping_like, path_text

if TYPE_CHECKING:
    from tfrio.tables.rows import Row
    from tfrio.tables.rows_arrow import ArrowCsv
    from tfrio.types import PathLike

__all__ = [
    "ARROW",
    "PARQUET",
    "Chunk",
    "Point",
    "TableData",
    "TableSource",
    "open_ipc",
    "open_parquet",
    "open_table",
]

# (x, y) of a point, the name of a geometry that is none, or None for null.
Point: TypeAlias = "tuple[float, float] | str | None"
TableData: TypeAlias = "PathLike | Iterable[Mapping[str, object]] | Any"

_GEOJSON = (".geojson", ".json", ".geojsonl", ".geojsons", ".ndjson", ".jsonl")
PARQUET = (".parquet", ".geoparquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows of a table.

    Args:
        first: Number of the first row.
        rows: Number of rows.
        cells: Cells of each column asked for.
        points: Geometry of each row, where asked for.
    """

    first: int
    rows: int
    cells: dict[str, Cells]
    points: list[Point]


class TableSource(Protocol):
    """What export needs of a table."""

    path: str
    fields: list[Field]
    geometry: bool
    crs: str | None

    def chunks(self, fields: Sequence[Field], rows: int, *, points: bool) -> Iterator[Chunk]:
        """Yield the columns asked for, so many rows at a time."""
        ...


def open_table(
    source: TableData,
    *,
    layer: str | None = None,
    encoding: str | None = None,
    text: frozenset[str] = frozenset(),
) -> TableSource:
    """Open a table.

    Args:
        source: A file (CSV, GeoJSON, Parquet, GeoParquet, Arrow, or what GDAL reads as vectors:
            GeoPackage, Shapefile, FlatGeobuf ...), an object with the Arrow stream interface
            (pyarrow, polars, pandas), or mappings, one a row.
        layer: Layer of a file that has several.
        encoding: Text encoding of a CSV file, UTF-8 by default.
        text: Columns to keep as text whatever they look like.

    Returns:
        The source.

    Raises:
        SchemaError: The cells of a CSV file are separated by ``;`` or a tab.
        UsageError: The format is not known.
    """
    if isinstance(source, str | os.PathLike):
        return _open_file(path_text(source), layer, encoding, text)
    if hasattr(source, "__arrow_c_stream__"):
        return ArrowSource("table", lambda: _stream(source))
    if isinstance(source, Iterable) and not isinstance(source, Mapping):
        return RowSource(_MappingRows(list[Any](source), text))
    raise UsageError(
        f"a table is a file, a data frame or rows as mappings; got {type(source).__name__}"
    )


def _open_file(
    path: str, layer: str | None, encoding: str | None, text: frozenset[str]
) -> TableSource:
    lower = path.lower()
    if lower.endswith(".csv"):
        _check_commas(path, encoding or "utf-8-sig")
        fast = None if encoding else arrow_csv(path, text)
        return CsvSource(fast or CsvRows(path, encoding=encoding or "utf-8-sig", text=text))
    if lower.endswith(_GEOJSON):
        return RowSource(GeoJsonRows(path, text=text))
    if lower.endswith(PARQUET):
        return ArrowSource(path, lambda: open_parquet(path))
    if lower.endswith(ARROW):
        return ArrowSource(path, lambda: open_ipc(path))
    return ArrowSource(path, lambda: _vector(path, layer))


def _check_commas(path: str, encoding: str) -> None:
    """Refuse a header that is one column, and names several with another mark between them.

    A header in quotes is one name, whatever it holds.
    """
    try:
        with text_file(path, encoding) as file:
            # A header with a line end in quotes is cut short: all that counts is its first line.
            line = file.readline(_LONGEST_HEADER).rstrip("\r\n")
        cells = next(csv.reader([line]), [])
    except (UnicodeError, csv.Error):
        return  # what reads the rows says so, with the remedy
    mark = next((mark for mark in _OTHER_MARKS if mark in line), None)
    if mark is None or line.startswith('"') or len(cells) > 1:
        return
    shown = "a tab" if mark == "\t" else f"'{mark}'"
    raise SchemaError(
        f"{path}: the header is one column, {line[:80]!r}; cells seem to be separated by {shown}, "
        "here they are by commas. Save the table with commas and decimal points, or as Parquet: "
        f"pandas.read_csv(path, sep={mark!r}, decimal=',').to_parquet('table.parquet'). If it is "
        "one column, write its name in double quotes",
        path=path,
    )


_OTHER_MARKS = (";", "\t")
# Columns in the tens of thousands have a header of about a megabyte.
_LONGEST_HEADER = 1 << 20


class _Rows(Protocol):
    path: str
    fields: list[Field]
    geometry: bool
    crs: str | None

    def __iter__(self) -> Iterator[Row]: ...
    def point(self, geometry: dict[str, Any] | None) -> Point:
        """Return the point of a geometry, None where it is none."""
        ...


class _MappingRows:
    """Rows given as mappings, already in memory."""

    path = "rows"
    geometry = False
    crs: str | None = None

    def __init__(self, rows: Sequence[Mapping[str, object]], text: frozenset[str]) -> None:
        made = [mapping_like(row, "a row", "{'ndvi': 0.5}") for row in rows]
        self._rows = [{name: _plain(value) for name, value in row.items()} for row in made]
        profiles: dict[str, Profile] = {}
        for number, row in enumerate(self._rows):
            for name, value in row.items():
                if name not in profiles:
                    profiles[name] = Profile(name, self.path, text=name in text)
                profiles[name].add(value, number)
        self.fields = [profile.field() for profile in profiles.values()]

    def __iter__(self) -> Iterator[Row]:
        return ((row, None) for row in self._rows)

    def point(self, geometry: dict[str, Any] | None) -> Point:
        """Return None: mappings carry columns only."""
        return None


def _plain(value: object) -> object:
    """Turn NumPy scalars and arrays into plain Python values."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


class RowSource:
    """A table read row by row.

    Args:
        rows: What reads it.
    """

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows
        self.path = rows.path
        self.fields = rows.fields
        self.geometry = rows.geometry
        self.crs = rows.crs

    def chunks(self, fields: Sequence[Field], rows: int, *, points: bool) -> Iterator[Chunk]:
        """Yield the columns asked for, so many rows at a time."""
        first = 0
        reader = iter(self._rows)
        while part := list(itertools.islice(reader, rows)):
            cells = {
                field.name: cells_of_values(field, [row.get(field.name) for row, _ in part])
                for field in fields
            }
            places = [self._rows.point(geometry) for _, geometry in part] if points else []
            yield Chunk(first, len(part), cells, places)
            first += len(part)


class CsvSource:
    """A CSV file, read column by column.

    Args:
        rows: What reads it.
    """

    geometry = False
    crs: str | None = None

    def __init__(self, rows: CsvRows | ArrowCsv) -> None:
        self._rows = rows
        self.path = rows.path
        self.fields = rows.fields

    def chunks(self, fields: Sequence[Field], rows: int, *, points: bool) -> Iterator[Chunk]:
        """Yield the columns asked for, so many rows at a time."""
        first = 0
        for count, cells in self._rows.cells(fields, rows):
            yield Chunk(first, count, cells, [None] * count if points else [])
            first += count


class ArrowSource:
    """A table that comes as Arrow record batches.

    Args:
        path: What to call it in messages.
        opener: Gives a fresh reader each time.
    """

    def __init__(self, path: str, opener: Any) -> None:
        self.path = path
        self._opener = opener
        with self._open() as (schema, _, about):
            self._column: str | None = about.get("column")
            self.crs: str | None = about.get("crs")
            geometries = set(about.get("all", [self._column]))
            self.fields = [field_of_arrow(c) for c in schema if c.name not in geometries]
        self.geometry = self._column is not None

    @contextmanager
    def _open(self) -> Iterator[tuple[Any, Iterable[Any], dict[str, Any]]]:
        try:
            with self._opener() as opened:
                yield opened
        except require("pyarrow", extra="table").ArrowInvalid as error:
            raise TfrioError(
                f"{self.path}: not readable as a table ({error}). Is the file whole?",
                path=self.path,
            ) from error

    def chunks(self, fields: Sequence[Field], rows: int, *, points: bool) -> Iterator[Chunk]:
        """Yield the columns asked for, at most so many rows at a time."""
        first = 0
        with self._open() as (_, batches, _):
            for whole in batches:
                for start in range(0, whole.num_rows, rows):
                    part = whole.slice(start, rows)
                    yield self._chunk(part, first, fields, points=points)
                    first += part.num_rows

    def _chunk(self, part: Any, first: int, fields: Sequence[Field], *, points: bool) -> Chunk:
        where = f"{self.path}, rows from {first}"
        cells = {f.name: cells_of_arrow(part.column(f.name), f, where=where) for f in fields}
        places: list[Point] = []
        if points and self._column is not None:
            places = [_point(value) for value in part.column(self._column).to_pylist()]
        return Chunk(first, part.num_rows, cells, places)


def _point(value: Any) -> Point:
    """Read a geometry stored as WKB, or as a struct of x and y (GeoArrow)."""
    if value is None:
        return None
    if isinstance(value, dict):
        known = value.get("x") is not None and value.get("y") is not None
        return (value["x"], value["y"]) if known else None
    return point_of_wkb(value) if isinstance(value, bytes) else "a geometry that is no point"


@contextmanager
def _stream(source: Any) -> Iterator[tuple[Any, Iterable[Any], dict[str, Any]]]:
    reader = require("pyarrow", extra="table").RecordBatchReader.from_stream(source)
    yield reader.schema, reader, geo_columns(reader.schema)


@contextmanager
def open_parquet(path: str) -> Iterator[tuple[Any, Iterable[Any], dict[str, Any]]]:
    """Open a Parquet file: its Arrow schema, its record batches and its geometry columns."""
    parquet = require("pyarrow.parquet", extra="table")
    # Streams of small buffers instead of whole row groups: half the memory, at the same speed.
    with parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 17) as file:
        schema = file.schema_arrow
        batches = file.iter_batches(batch_size=_rows_at_once(file.metadata))
        yield schema, batches, geo_columns(schema)


def _rows_at_once(metadata: Any) -> int:
    """Return how many rows of a Parquet file fit in 64 MiB, at most 65,536."""
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    sizes = (group.total_byte_size // max(group.num_rows, 1) for group in groups)
    return rows_of(max(sizes, default=1))


@contextmanager
def open_ipc(path: str) -> Iterator[tuple[Any, Iterable[Any], dict[str, Any]]]:
    """Open an Arrow file or stream: its schema, its record batches and its geometry columns."""
    pa = require("pyarrow", extra="table")
    with pa.OSFile(path) as file:
        try:
            reader = pa.ipc.open_file(file)
        except pa.ArrowInvalid:
            file.seek(0)
            stream = pa.ipc.open_stream(file)
            yield stream.schema, stream, geo_columns(stream.schema)
            return
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        yield reader.schema, batches, geo_columns(reader.schema)


@contextmanager
def _vector(path: str, layer: str | None) -> Iterator[tuple[Any, Iterable[Any], dict[str, Any]]]:
    pyogrio = require("pyogrio", extra="table")
    try:
        with pyogrio.open_arrow(path, layer=layer, use_pyarrow=True) as (meta, reader):
            column = meta.get("geometry_name") or "wkb_geometry"
            column = column if meta.get("geometry_type") and column in reader.schema.names else None
            yield reader.schema, reader, {"column": column, "crs": meta.get("crs")}
    except pyogrio.errors.DataSourceError as error:
        raise TfrioError(
            f"{path}: no table that can be read ({error}). Readable are CSV, GeoJSON, Parquet, "
            "GeoParquet, Arrow, GeoPackage, Shapefile and other vector formats of GDAL",
            path=path,
        ) from error


def geo_columns(schema: Any) -> dict[str, Any]:
    """Read which columns of an Arrow schema are geometry, from GeoParquet's metadata.

    Args:
        schema: A ``pyarrow.Schema``.

    Returns:
        The primary column, its CRS and all geometry columns; empty where there is none.
    """
    text = (schema.metadata or {}).get(b"geo")
    if text is None:
        return {}
    geo = json.loads(text)
    columns = geo.get("columns", {})
    primary = geo.get("primary_column")
    if primary not in schema.names:
        return {}
    crs = columns.get(primary, {}).get("crs", DEFAULT_CRS)
    named = crs if isinstance(crs, str) or crs is None else _crs_text(crs)
    return {"column": primary, "crs": named, "all": [c for c in columns if c in schema.names]}


def _crs_text(projjson: Mapping[str, Any]) -> str:
    """Return ``AUTHORITY:CODE`` of a PROJJSON that has one, else its text."""
    about = projjson.get("id", {})
    code = f"{about.get('authority')}:{about.get('code')}"
    known = code if about else json.dumps(projjson)
    return DEFAULT_CRS if known == "OGC:CRS84" else known

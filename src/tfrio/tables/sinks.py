"""Write Arrow record batches as Parquet, Arrow, CSV or GeoJSON, a batch at a time."""

from __future__ import annotations

import csv
import io
import json
import math
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Protocol

import numpy as np

from tfrio.errors import SchemaError, UsageError, require
from tfrio.tables.arrow import leaf, with_leaf
from tfrio.tables.points import points_to_wkb

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FORMATS", "Sink", "format_of", "open_sink"]

FORMATS = {
    ".parquet": "parquet",
    ".geoparquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".geojson": "geojson",
    ".json": "geojson",
    ".csv": "csv",
}


def format_of(path: str) -> str:
    """Return the format that a name ends in.

    Raises:
        UsageError: The ending is none we write.
    """
    lower = path.lower()
    for ending, name in FORMATS.items():
        if lower.endswith(ending):
            return name
    raise UsageError(f"{path}: the name must end in one of {', '.join(FORMATS)}")


class Sink(Protocol):
    """Where a table is written to."""

    def write(self, batch: Any, points: tuple[Any, Any] | None) -> None:
        """Write a record batch; points are x and y of its rows, NaN where there is none."""
        ...

    def close(self) -> None:
        """Write what must stand at the end."""
        ...


@contextmanager
def open_sink(file: IO[bytes], form: str, schema: Any, geo: bytes | None) -> Iterator[Sink]:
    """Open a sink; it is closed at the end, also after an error.

    Args:
        file: The file.
        form: A value of ``FORMATS``.
        schema: ``pyarrow.Schema`` of the batches, geometry not included.
        geo: The ``geo`` metadata of GeoParquet, None without points.

    Yields:
        The sink.
    """
    sink: Sink
    if form == "csv":
        sink = CsvSink(file, schema)
    elif form == "geojson":
        sink = GeoJsonSink(file, schema)
    else:
        sink = _ArrowSink(file, form, schema, geo)
    try:
        yield sink
    finally:
        sink.close()


class _ArrowSink:
    """Parquet and Arrow IPC files."""

    def __init__(self, file: IO[bytes], form: str, schema: Any, geo: bytes | None) -> None:
        pa = require("pyarrow", extra="table")
        self._pa = pa
        if geo is not None:
            schema = schema.append(pa.field("geometry", pa.binary()))
            schema = schema.with_metadata({**(schema.metadata or {}), b"geo": geo})
        self._schema = schema
        parquet = require("pyarrow.parquet", extra="table")
        if form == "parquet":
            self._writer = parquet.ParquetWriter(file, schema, compression="zstd")
        else:
            self._writer = pa.ipc.new_file(file, schema)

    def write(self, batch: Any, points: tuple[Any, Any] | None) -> None:
        """Write a record batch, points as a column of WKB."""
        arrays = list(batch.columns)
        if points is not None:
            arrays.append(_wkb(self._pa, *points))
        self._writer.write_batch(self._pa.RecordBatch.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


def _wkb(pa: Any, x: Any, y: Any) -> Any:
    present = ~np.isnan(x) & ~np.isnan(y)
    data = points_to_wkb(x, y)
    offsets = np.arange(len(x) + 1, dtype=np.int32) * data.shape[1]
    valid = pa.py_buffer(np.packbits(present, bitorder="little"))
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(x), buffers)


def _plain(batch: Any) -> Iterator[list[Any]]:
    """Yield each column as plain values; a float32 as the shortest decimal that means it."""
    pa = require("pyarrow", extra="table")
    for field, array in zip(batch.schema, batch.columns, strict=True):
        if pa.types.is_binary(leaf(field.type)) or pa.types.is_large_binary(leaf(field.type)):
            raise SchemaError(
                f"column '{field.name}' holds bytes that are no text, and this format has none. "
                "Write .parquet, or leave the column out with columns=",
                feature=field.name,
            )
        if leaf(field.type) == pa.float32():
            text = array.cast(with_leaf(field.type, pa.string()))
            yield text.cast(with_leaf(field.type, pa.float64())).to_pylist()
        else:
            yield array.to_pylist()


def _clean(value: Any) -> Any:
    """Return a value that JSON knows: NaN and infinity are null, times ISO 8601."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


class CsvSink:
    """CSV in UTF-8: empty cells for null, JSON for lists, ``longitude`` and so on as they are.

    Args:
        file: The file.
        schema: ``pyarrow.Schema`` of the batches.
    """

    def __init__(self, file: IO[bytes], schema: Any) -> None:
        self._text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        self._writer = csv.writer(self._text, lineterminator="\n")
        self._writer.writerow(schema.names)

    def write(self, batch: Any, points: tuple[Any, Any] | None) -> None:
        """Write the rows of a batch; points stay in their columns."""
        columns = [[_cell(value) for value in column] for column in _plain(batch)]
        self._writer.writerows(zip(*columns, strict=True))

    def close(self) -> None:
        """Leave the file open for its owner."""
        self._text.flush()
        self._text.detach()


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return json.dumps(_clean(value), ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if hasattr(value, "isoformat") else value


class GeoJsonSink:
    """A FeatureCollection (RFC 7946), one feature a line.

    Args:
        file: The file.
        schema: ``pyarrow.Schema`` of the batches.
    """

    def __init__(self, file: IO[bytes], schema: Any) -> None:
        self._file = file
        self._names = schema.names
        self._file.write(b'{"type": "FeatureCollection", "features": [')
        self._separator = "\n"

    def write(self, batch: Any, points: tuple[Any, Any] | None) -> None:
        """Write the rows of a batch as features."""
        columns = list(_plain(batch))
        lines = []
        for row in range(batch.num_rows):
            properties = {
                name: _clean(column[row]) for name, column in zip(self._names, columns, strict=True)
            }
            feature = {
                "type": "Feature",
                "geometry": _geometry(points, row),
                "properties": properties,
            }
            lines.append(self._separator + json.dumps(feature, ensure_ascii=False))
            self._separator = ",\n"
        self._file.write("".join(lines).encode())

    def close(self) -> None:
        """Write the closing brackets."""
        self._file.write(b"\n]}\n")


def _geometry(points: tuple[Any, Any] | None, row: int) -> dict[str, Any] | None:
    if points is None:
        return None
    x, y = _shortest(points[0][row]), _shortest(points[1][row])
    if math.isnan(x) or math.isnan(y):
        return None
    return {"type": "Point", "coordinates": [x, y]}


def _shortest(value: Any) -> float:
    """Return the shortest decimal of a coordinate in its own precision."""
    return float(str(value))

"""TFRecord files as a stream of Arrow record batches, exactly: absent is null, bytes stay bytes.

One value in every record makes a column of single values, anything else a column of lists, so
that no value depends on which record came first. Feature lists of SequenceExamples are lists of
lists. What the Arrow types do not tell (which columns are feature lists) stands in the fields'
metadata.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import UsageError, require
from tfrio.examples.columns import BytesColumn, Ragged
from tfrio.examples.decode import read_batches
from tfrio.examples.infer import observe
from tfrio.examples.schema import Feature, Schema
from tfrio.records.shards import expand

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tfrio.examples.columns import Batch
    from tfrio.types import PathsLike

__all__ = [
    "PLACE",
    "arrow_schema",
    "leaf",
    "read_arrow",
    "rows_per_batch",
    "table_schema",
    "to_arrow",
    "to_batch",
    "with_leaf",
]

PLACE = b"tfrio:place"
# Rows per batch: enough that a batch costs little, few enough that one of patches fits in memory.
_ROWS = 65_536
_BATCH_BYTES = 64 << 20


def read_arrow(
    paths: PathsLike, *, features: Sequence[str] | None = None, batch_size: int | None = None
) -> Any:
    """Read TFRecord files as Arrow.

    Args:
        paths: A file, folder, glob, or several of these.
        features: Features to read, in this order; None reads all.
        batch_size: Rows per record batch; by default what fits in 64 MiB.

    Returns:
        A ``pyarrow.RecordBatchReader``. It streams, and offers the Arrow PyCapsule interface, so
        polars, pandas, duckdb and others take it as it is.

    Raises:
        FeatureKindError: A feature has two kinds; the text names the first record of each.
        MissingFeatureError: A feature asked for does not exist.
    """
    pa = require("pyarrow", extra="table")
    files = expand(paths)
    schema = table_schema(files)
    if features is not None:
        schema = schema.select(features)
    rows = batch_size or rows_per_batch(schema)
    arrow = arrow_schema(schema)
    return pa.RecordBatchReader.from_batches(arrow, _stream(files, schema, rows))


def to_arrow(paths: PathsLike, *, features: Sequence[str] | None = None) -> Any:
    """Read TFRecord files into one Arrow table.

    Args:
        paths: A file, folder, glob, or several of these.
        features: Features to read, in this order; None reads all.

    Returns:
        A ``pyarrow.Table``.
    """
    return read_arrow(paths, features=features).read_all()


def _stream(files: Sequence[str], schema: Schema, rows: int) -> Iterator[Any]:
    for batch in read_batches(files, rows, schema=schema):
        yield to_batch(batch, schema)


def table_schema(
    paths: PathsLike, *, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> Schema:
    """Learn the columns of a table from every record.

    Args:
        paths: A file, folder, glob, or several of these.
        shapes: Array shapes by feature.

    Returns:
        The schema: a scalar where every record that has the feature holds one value, a list
        elsewhere; all optional.

    Raises:
        FeatureKindError: A feature has two kinds.
        UsageError: A shape is given for a feature that does not exist.
    """
    seen, _ = observe(paths)
    learned = seen.schema(fixed=False)
    features = {name: replace(f, shape=_shape(f), required=False) for name, f in learned.items()}
    for name, shape in (shapes or {}).items():
        if name not in features:
            raise UsageError(f"shapes: no feature '{name}'; there are {', '.join(features)}")
        features[name] = replace(features[name], shape=tuple(shape))
    return Schema(features)


def _shape(feature: Feature) -> tuple[int, ...] | None:
    return () if feature.lengths == (1, 1) else None


def rows_per_batch(schema: Schema) -> int:
    """Return how many rows to read at once, from the longest lists seen."""
    # A bytes value may be a word or an image; 4 KiB keeps batches useful for the first and, at
    # 64 MiB / 4 KiB = 16,384 images of 100 KB, bearable for the second.
    sizes = {"float": 4, "int64": 8, "bytes": 4096, "unknown": 0}
    row = sum(sizes[f.kind] * max((f.lengths or (1, 1))[1], 1) for f in schema.values())
    return max(1, min(_ROWS, _BATCH_BYTES // max(row, 1)))


def arrow_schema(schema: Schema) -> Any:
    """Return the Arrow schema of a table schema.

    Args:
        schema: What ``table_schema`` gave.

    Returns:
        A ``pyarrow.Schema``.
    """
    pa = require("pyarrow", extra="table")
    return pa.schema([_field(pa, name, feature) for name, feature in schema.items()])


def _field(pa: Any, name: str, feature: Feature) -> Any:
    kind = _type(pa, feature)
    if feature.place == "list":
        return pa.field(name, pa.list_(kind), metadata={PLACE: b"list"})
    return pa.field(name, kind)


def _type(pa: Any, feature: Feature) -> Any:
    kind = {"float": pa.float32(), "int64": pa.int64(), "bytes": pa.binary()}.get(feature.kind)
    if kind is None:
        return pa.null()
    if feature.shape is None:
        return pa.list_(kind)
    for axis in reversed(feature.shape):
        kind = pa.list_(kind) if axis == -1 else pa.list_(kind, axis)
    return kind


def to_batch(batch: Batch, schema: Schema) -> Any:
    """Turn a batch of columns into an Arrow record batch.

    Args:
        batch: Columns read with the schema.
        schema: The schema.

    Returns:
        A ``pyarrow.RecordBatch``.
    """
    pa = require("pyarrow", extra="table")
    arrays = [
        _array(pa, batch[name], feature, np.asarray(batch.present[name]))
        for name, feature in schema.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(schema))


def _array(pa: Any, column: Any, feature: Feature, present: NDArray[np.bool_]) -> Any:
    if feature.kind == "unknown":
        return pa.nulls(len(present))
    kind = _field(pa, "", feature).type
    return _values(pa, column, kind, None if present.all() else present)


def _values(pa: Any, column: Any, kind: Any, present: NDArray[np.bool_] | None) -> Any:
    """Build an array of a type from a column, nothing copied but offsets and booleans."""
    valid = None if present is None else pa.py_buffer(np.packbits(present, bitorder="little"))
    if isinstance(column, BytesColumn):
        offsets = _int32(column.offsets)
        data = np.ascontiguousarray(column.data)
        buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(kind, len(column), buffers)
    if isinstance(column, Ragged):
        inner = _values(pa, column.values, kind.value_type, None)
        buffers = [valid, pa.py_buffer(_int32(column.offsets))]
        return pa.Array.from_buffers(kind, len(column), buffers, children=[inner])
    if pa.types.is_fixed_size_list(kind):
        inner = _values(pa, column.reshape(-1, *column.shape[2:]), kind.value_type, None)
        return pa.Array.from_buffers(kind, len(column), [valid], children=[inner])
    return pa.Array.from_buffers(kind, len(column), [valid, pa.py_buffer(column)])


def _int32(offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    if len(offsets) and offsets[-1] > np.iinfo(np.int32).max:
        raise UsageError("one batch holds more than 2 GiB; pass a smaller batch_size")
    return offsets.astype(np.int32)


def leaf(kind: Any) -> Any:
    """Return the Arrow type at the bottom of lists."""
    types = require("pyarrow", extra="table").types
    while types.is_list(kind) or types.is_fixed_size_list(kind):
        kind = kind.value_type
    return kind


def with_leaf(kind: Any, bottom: Any) -> Any:
    """Return an Arrow type with another type at the bottom of its lists."""
    pa = require("pyarrow", extra="table")
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(with_leaf(kind.value_type, bottom), kind.list_size)
    return pa.list_(with_leaf(kind.value_type, bottom)) if pa.types.is_list(kind) else bottom

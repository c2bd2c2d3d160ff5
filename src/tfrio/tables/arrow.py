"""TFRecord files as Arrow through pyarrow: columns of a table, and types at the end of lists."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import UsageError, require
from tfrio.examples.columns import BytesColumn, Ragged
from tfrio.examples.decode import read_batches
from tfrio.examples.infer import observe
from tfrio.examples.schema import Feature, Schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tfrio.examples.columns import Batch
    from tfrio.examples.observe import Seen
    from tfrio.types import PathsLike

__all__ = [
    "arrow_schema",
    "leaf",
    "look_through",
    "read_arrow",
    "record_batches",
    "rows_per_batch",
    "table_schema",
    "with_leaf",
]

# Rows per batch: enough that a batch costs little, few enough that one of patches fits in memory.
_ROWS = 65_536
_BATCH_BYTES = 64 << 20


def read_arrow(
    paths: PathsLike, *, features: Sequence[str] | None = None, batch_size: int | None = None
) -> Any:
    """Read TFRecord files as Arrow.

    A feature with one value in every record that has it is a column of single values, others are
    lists; absent features are null, bytes stay bytes.

    Args:
        paths: A file, folder, glob, or several of these.
        features: Features to read, in this order; None reads all.
        batch_size: Rows per record batch; by default what fits in 64 MiB.

    Returns:
        A ``pyarrow.RecordBatchReader``: it streams, and offers the Arrow PyCapsule interface, so
        polars, pandas, duckdb and others take it as it is.

    Raises:
        FeatureKindError: A feature has two kinds; the text names the first record of each.
        MissingFeatureError: A feature asked for does not exist.
    """
    schema = table_schema(paths)
    if features is not None:
        schema = schema.select(features)
    batches = record_batches(paths, schema, batch_size or rows_per_batch(schema))
    reader = require("pyarrow", extra="table").RecordBatchReader
    return reader.from_batches(arrow_schema(schema), batches)


def record_batches(paths: PathsLike, schema: Schema, rows: int) -> Iterator[Any]:
    """Yield the records of files as ``pyarrow.RecordBatch``, so many rows each."""
    pa = require("pyarrow", extra="table")
    target = arrow_schema(schema)
    for batch in read_batches(paths, rows, schema=schema):
        arrays = [
            _array(pa, batch, name, field.type, schema[name])
            for name, field in zip(target.names, target, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=target)


def _array(pa: Any, batch: Batch, name: str, kind: Any, feature: Feature) -> Any:
    present = np.asarray(batch.present[name])
    if feature.kind == "unknown":
        return pa.nulls(len(present))
    return _values(pa, batch[name], kind, None if present.all() else present)


def _values(pa: Any, column: Any, kind: Any, present: NDArray[np.bool_] | None) -> Any:
    """Build an array of a type from a column; only offsets and booleans are copied."""
    valid = None if present is None else pa.py_buffer(np.packbits(present, bitorder="little"))
    if isinstance(column, BytesColumn) and pa.types.is_fixed_size_list(kind):
        inner = _values(pa, column, kind.value_type, None)
        rows = len(inner) // kind.list_size
        return pa.Array.from_buffers(kind, rows, [valid], children=[inner])
    if isinstance(column, BytesColumn):
        data = np.ascontiguousarray(column.data)
        buffers = [valid, pa.py_buffer(_int32(column.offsets)), pa.py_buffer(data)]
        return pa.Array.from_buffers(kind, len(column), buffers)
    if isinstance(column, Ragged):
        inner = _values(pa, column.values, kind.value_type, None)
        # Bytes come flat, whatever their axes.
        each = len(column.values) // len(inner) if len(inner) else 1
        buffers = [valid, pa.py_buffer(_int32(column.offsets // each))]
        return pa.Array.from_buffers(kind, len(column), buffers, children=[inner])
    if pa.types.is_fixed_size_list(kind):
        inner = _values(pa, column.reshape(-1, *column.shape[2:]), kind.value_type, None)
        return pa.Array.from_buffers(kind, len(column), [valid], children=[inner])
    return pa.Array.from_buffers(kind, len(column), [valid, pa.py_buffer(column)])


def _int32(offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    if len(offsets) and offsets[-1] > np.iinfo(np.int32).max:
        raise UsageError("one batch holds more than 2 GiB; pass a smaller batch_size")
    return offsets.astype(np.int32)


def arrow_schema(schema: Schema) -> Any:
    """Return the ``pyarrow.Schema`` of what ``table_schema`` gives."""
    pa = require("pyarrow", extra="table")
    return pa.schema([pa.field(name, _type(pa, feature)) for name, feature in schema.items()])


def _type(pa: Any, feature: Feature) -> Any:
    kind = {"float": pa.float32(), "int64": pa.int64(), "bytes": pa.binary()}.get(feature.kind)
    if kind is None:
        return pa.null()
    shape = (-1,) if feature.shape is None else feature.shape
    if feature.kind == "bytes" and shape:
        shape = (-1, *shape[1:])  # an absent row has no values, which a fixed list would need
    for axis in reversed(shape):
        kind = pa.list_(kind) if axis == -1 else pa.list_(kind, axis)
    return pa.list_(kind) if feature.place == "list" else kind


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
    features = dict(look_through(paths)[0])
    for name, shape in (shapes or {}).items():
        if name not in features:
            raise UsageError(f"shapes: no feature '{name}'; there are {', '.join(features)}")
        features[name] = replace(features[name], shape=tuple(shape))
    return Schema(dict(features))


def look_through(paths: PathsLike) -> tuple[Schema, set[str]]:
    """Look at every record.

    Args:
        paths: A file, folder, glob, or several of these.

    Returns:
        The columns, and the names of features that some record names without a kind.

    Raises:
        FeatureKindError: A feature has two kinds.
    """
    seen, _ = observe(paths)
    learned = seen.schema(fixed=False)
    kindless = {feature.name for feature in seen.features.values() if feature.kindless}
    names = _ordered(list(learned), list(seen.features.values()))
    return Schema({name: _loose(learned[name]) for name in names}), kindless


def _ordered(names: list[str], seen: Sequence[Seen]) -> list[str]:
    """Return names in the order of the records.

    Most writers sort features by name; then a feature that the first record lacks has its place
    among the others, not behind them.
    """
    first = [f.name for f in seen if any(s.record == 0 for s in f.kinds.values())]
    return sorted(names) if first == sorted(first) else names


def _loose(feature: Feature) -> Feature:
    """Return a feature that may be absent, and is a list unless it is one value."""
    single = feature.lengths == (1, 1) and feature.place == "context"
    shape = () if single else None
    return replace(feature, shape=shape, required=False)


def rows_per_batch(schema: Schema) -> int:
    """Return how many rows to read at once, from the longest lists seen."""
    # A bytes value may be a word or an image; 4 KiB keeps batches useful for the first and, at
    # 64 MiB / 4 KiB = 16,384 images of 100 KB, bearable for the second.
    sizes = {"float": 4, "int64": 8, "bytes": 4096, "unknown": 0}
    row = sum(sizes[f.kind] * max((f.lengths or (1, 1))[1], 1) for f in schema.values())
    return max(1, min(_ROWS, _BATCH_BYTES // max(row, 1)))


def _is_list(kind: Any) -> bool:
    types = require("pyarrow", extra="table").types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def leaf(kind: Any) -> Any:
    """Return the Arrow type at the bottom of lists."""
    while _is_list(kind):
        kind = kind.value_type
    return kind


def with_leaf(kind: Any, bottom: Any) -> Any:
    """Return an Arrow type with another type at the bottom of its lists."""
    pa = require("pyarrow", extra="table")
    if not _is_list(kind):
        return bottom
    inner = with_leaf(kind.value_type, bottom)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(inner, kind.list_size)
    return pa.large_list(inner) if pa.types.is_large_list(kind) else pa.list_(inner)

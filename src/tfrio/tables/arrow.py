"""What a table's columns are: Arrow batches of TFRecord files, and types at the end of lists."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tfrio.errors import UsageError, require
from tfrio.examples.arrow import ArrowStream
from tfrio.examples.infer import observe
from tfrio.examples.observe import Observation
from tfrio.examples.schema import Feature, Schema
from tfrio.examples.sidecar import load_sidecar
from tfrio.examples.told import noted_schema
from tfrio.records.shards import expand, refuse_streams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tfrio.examples.observe import Seen
    from tfrio.types import PathsLike

__all__ = [
    "arrow_schema",
    "leaf",
    "look_at_table",
    "look_through",
    "record_batches",
    "rows_of",
    "rows_per_batch",
    "type_text",
    "with_leaf",
]

# Rows per batch: enough that a batch costs little, few enough that one of patches fits in memory.
_ROWS = 65_536
_BATCH_BYTES = 64 << 20


def record_batches(paths: PathsLike, schema: Schema, rows: int) -> Iterator[Any]:
    """Yield the records of files as ``pyarrow.RecordBatch``, so many rows each."""
    pa = require("pyarrow", extra="table")
    stream = ArrowStream(paths, schema=schema, batch_size=rows)
    try:
        yield from pa.RecordBatchReader.from_stream(stream)
    except OSError as error:
        raise stream.error or error from None


def arrow_schema(schema: Schema) -> Any:
    """Return the ``pyarrow.Schema`` of what ``record_batches`` yields."""
    pa = require("pyarrow", extra="table")
    stream = ArrowStream([], schema=schema, batch_size=1)
    return pa.RecordBatchReader.from_stream(stream).schema


class Looked(NamedTuple):
    """What looking at every record told."""

    schema: Schema
    """The columns."""
    kindless: set[str]
    """Features that some record names without a kind."""
    records: int
    """How many records there are."""
    record_bytes: int
    """Mean size of a record, in the file where it is largest."""
    noted: Schema
    """The features, those of which the files note one form in it."""
    parts: list[tuple[str, int]]
    """The files, and how many records each holds."""


def look_at_table(
    paths: PathsLike, *, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> Looked:
    """Learn the columns of a table from every record.

    Args:
        paths: A file, folder, glob, or several of these.
        shapes: Array shapes by feature.

    Returns:
        What was seen. A column is a scalar where every record that has the feature holds one
        value, a list elsewhere; all are optional.

    Raises:
        FeatureKindError: A feature has two kinds.
        UsageError: A shape is given for a feature that does not exist.
    """
    looked = look_through(paths)
    features = dict(looked.schema)
    for name, shape in (shapes or {}).items():
        if name not in features:
            raise UsageError(f"shapes: no feature '{name}'; there are {', '.join(features)}")
        features[name] = replace(features[name], shape=tuple(shape))
    return looked._replace(schema=Schema(dict(features)))


def look_through(paths: PathsLike, *, progress: Callable[[int, int], None] | None = None) -> Looked:
    """Look at every record.

    Args:
        paths: A file, folder, glob, or several of these.
        progress: Called with records looked at, and 0, as nobody knows how many there are.

    Returns:
        The columns, what has no kind, and the number of records.

    Raises:
        FeatureKindError: A feature has two kinds.
        UsageError: A path is a pipe, whose bytes come only once.
    """
    refuse_streams(paths, "learning the columns and then reading them")
    seen, parts, files = Observation(), list[tuple[str, int]](), list[Any]()
    for path in expand(paths):
        told = _beyond(progress, seen.records)
        one, _ = observe(path, progress=told)
        parts.append((path, one.records))
        if one.records:
            has = {key for key, feature in one.features.items() if feature.present}
            files.append((load_sidecar(path), has))
        seen.join(one)
    learned = seen.schema(fixed=False)
    kindless = {feature.name for feature in seen.features.values() if feature.kindless}
    names = _ordered(list(learned), list(seen.features.values()))
    columns = Schema({name: _loose(learned[name]) for name in names})
    noted = noted_schema(seen.schema(fixed=True), seen, files)
    return Looked(columns, kindless, seen.records, seen.record_bytes, noted, parts)


def _beyond(
    progress: Callable[[int, int], None] | None, before: int
) -> Callable[[int, int], None] | None:
    """Return what is told of records behind others."""
    return progress and (lambda done, total: progress(before + done, total))


def _ordered(names: list[str], seen: Sequence[Seen]) -> list[str]:
    """Return names in the order of the records.

    Most writers sort features by name; then a feature that the first record lacks has its place
    among the others, not behind them.
    """
    met = [(f.name, next(iter(f.kinds.values()))) for f in seen if f.kinds]
    first = [name for name, at in met if (at.path, at.record) == (met[0][1].path, 0)]
    return sorted(names) if first == sorted(first) else names


def _loose(feature: Feature) -> Feature:
    """Return a feature that may be absent, and is a list unless it is one value."""
    single = feature.lengths == (1, 1) and feature.place == "context"
    shape = () if single else None
    return replace(feature, shape=shape, required=False)


def rows_per_batch(schema: Schema, record_bytes: int) -> int:
    """Return how many rows fit in 64 MiB, at most 65,536.

    Args:
        schema: The columns, with the longest lists seen.
        record_bytes: Mean size of a record, which tells of words from images; a list of numbers
            tells its size itself.
    """
    sizes = {"float": 4, "int64": 8, "bytes": 8, "unknown": 0}
    row = sum(sizes[f.kind] * max((f.lengths or (1, 1))[1], 1) for f in schema.values())
    row += record_bytes * any(f.kind == "bytes" for f in schema.values())
    return rows_of(row)


def rows_of(row_bytes: int) -> int:
    """Return how many rows of a size in bytes fit in 64 MiB, at most 65,536."""
    return max(1, min(_ROWS, _BATCH_BYTES // max(row_bytes, 1)))


def _is_list(kind: Any) -> bool:
    types = require("pyarrow", extra="table").types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def leaf(kind: Any) -> Any:
    """Return the Arrow type at the bottom of lists."""
    while _is_list(kind):
        kind = kind.value_type
    return kind


def type_text(kind: Any) -> str:
    """Return an Arrow type in words; Parquet has names of its own for what is in lists."""
    if not _is_list(kind):
        return str(kind)
    fixed = require("pyarrow", extra="table").types.is_fixed_size_list(kind)
    return f"{type_text(kind.value_type)}[{kind.list_size if fixed else ''}]"


def with_leaf(kind: Any, bottom: Any) -> Any:
    """Return an Arrow type with another type at the bottom of its lists."""
    pa = require("pyarrow", extra="table")
    if not _is_list(kind):
        return bottom
    inner = with_leaf(kind.value_type, bottom)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(inner, kind.list_size)
    return pa.large_list(inner) if pa.types.is_large_list(kind) else pa.list_(inner)

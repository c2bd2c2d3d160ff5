"""Native columns to the columns a user sees: shape, default, dtype, text, codec. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import MissingFeatureError, SchemaError, TfrioError
from tfrio.examples.apart import apart_column
from tfrio.examples.codecs import decode_value
from tfrio.examples.columns import Array, Batch, BytesColumn, Column, Ragged
from tfrio.examples.missing import fill_missing
from tfrio.examples.shaping import Job, column_of, fit, per_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrio.examples.layout import Layout, NativeColumn, Output
    from tfrio.examples.shaping import Places

__all__ = ["make_batch", "make_column"]


def make_batch(layout: Layout, natives: Sequence[NativeColumn], rows: int, origin: Places) -> Batch:
    """Turn the native columns of some records into a batch.

    Args:
        layout: Which slot holds which feature.
        natives: One column a slot.
        rows: Number of records.
        origin: File and record of each row, for errors.

    Returns:
        The columns the schema asks for.

    Raises:
        MissingFeatureError: A required feature without default is absent from a record.
        SchemaError: Values do not have the shape or type asked for.
        DecodeError: Bytes are not what the feature's codec expects.
    """
    columns: dict[str, Any] = {}
    present: dict[str, Array] = {}
    step_present: dict[str, Array] = {}
    for output in layout.outputs:
        key, native = output[0], natives[output[2]]
        columns[key] = make_column(layout, output, natives, rows, origin)
        present[key] = native.present.view(np.bool_)
        if native.step_present is not None:
            step_present[key] = native.step_present.view(np.bool_)
    lists = frozenset(key for key in columns if layout.schema[key].place == "list")
    return Batch(columns, present=present, rows=rows, lists=lists, step_present=step_present)


def make_column(
    layout: Layout, output: Output, natives: Sequence[NativeColumn], rows: int, origin: Places
) -> Column:
    """Turn the native columns that one feature needs into its column.

    Args:
        layout: Which slot holds which feature.
        output: The feature, one of the layout's.
        natives: One column a slot.
        rows: Number of records.
        origin: File and record of each row, for errors.

    Returns:
        The column the schema asks for.

    Raises:
        MissingFeatureError: The feature is required, has no default and is absent from a record.
        SchemaError: Values do not have the shape or type asked for.
        DecodeError: Bytes are not what the feature's codec expects.
    """
    key, feature, slot, plain = output
    native = natives[slot]
    if native.whole and plain is not None:  # nothing to fill, check or change
        if native.byte_offsets is None:
            return native.values.reshape(rows, *plain)
        return BytesColumn(native.values, native.byte_offsets)
    job = Job(key, feature, origin)
    mask = native.present.view(np.bool_)
    _check_present(job, mask)
    if key in layout.apart:
        column = apart_column(job, native, mask, layout.apart[key])
    else:
        column = column_of(job, fill_missing(feature, native, mask), rows)
    if feature.dims:
        column = _with_dims(job, column, layout, natives)
    for name in reversed(feature.row_lengths):
        column = _nested(job, column, name, natives[layout.index(name)])
    return column


def _check_present(job: Job, mask: Array) -> None:
    if not job.feature.required or job.feature.default is not None or mask.all():
        return
    row = int(mask.argmin())
    name = job.feature.stored_as(job.key)
    raise MissingFeatureError(
        f"feature '{name}' missing in {job.origin.where(row)}; "
        "give a default or mark it optional (required=False)",
        feature=name,
        **job.origin.place(row),
    )


def _with_dims(
    job: Job, column: Column, layout: Layout, natives: Sequence[NativeColumn]
) -> list[Any]:
    """Return one array a record, its axes taken from other features of the same record."""
    sizes = {d: _axis(job, d, natives[layout.dim_slot(d)]) for d in job.feature.dims}
    found: list[Any] = []
    for row, value in enumerate(per_row(column)):
        shape = tuple(
            int(sizes[d][row]) if isinstance(d, str) else d for d in job.feature.shape or ()
        )
        if len(value) == 0:
            found.append(None)
        elif job.feature.codec is None:
            found.append(fit(job, value, shape, row))
        else:
            found.append(_decode_one(job, value, shape, row))
    return found


def _decode_one(job: Job, value: Any, shape: tuple[int, ...], row: int) -> Any:
    try:
        if isinstance(value, bytes):
            return decode_value(value, job.feature, shape)
        return [decode_value(v, job.feature, shape) for v in value]
    except TfrioError as error:
        raise job.located(error, row) from error


def _axis(job: Job, dim: str, native: NativeColumn) -> Array:
    """Return the length of a named axis in each record, int64 array (rows,)."""
    if native.value_offsets is None:
        bad = np.flatnonzero((native.present == 0) | (native.values < 0))
    else:
        bad = np.flatnonzero(np.diff(native.value_offsets) != 1)
    if len(bad):
        text = f" takes an axis from '{dim}', which has no single length"
        raise job.error(SchemaError, text, int(bad[0]))
    return native.values


def _nested(job: Job, column: Column, name: str, lengths: NativeColumn) -> Ragged:
    """Cut the lists of a column into rows of the lengths that another feature holds."""
    if not isinstance(column, Ragged) or lengths.value_offsets is None:
        raise SchemaError(f"feature '{job.key}' needs lists of free length to be cut by '{name}'")
    counts = lengths.values
    bounds = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    ends = bounds[lengths.value_offsets]
    bad = np.flatnonzero(ends != column.offsets)
    if len(bad) or (counts < 0).any():
        row = max(int(bad[0]) - 1, 0) if len(bad) else 0
        text = f": the row lengths in '{name}' do not add up to its {column.lengths[row]} values"
        raise job.error(SchemaError, text, row)
    return Ragged(Ragged(column.values, bounds), lengths.value_offsets)

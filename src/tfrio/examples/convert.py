"""Native columns to the columns a user sees: shape, default, dtype, text, codec. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tfrio.errors import DecodeError, MissingFeatureError, SchemaError, TfrioError
from tfrio.examples.codecs import decode_value, fit_shape, misfit_text
from tfrio.examples.columns import Array, Batch, BytesColumn, Column, Ragged, as_objects
from tfrio.examples.missing import fill_missing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrio.examples.axes import RowAxes
    from tfrio.examples.layout import Layout, NativeColumn
    from tfrio.examples.schema import Feature

__all__ = ["make_batch"]


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
    for key, feature, slot, plain in layout.outputs:
        native = natives[slot]
        mask = native.present.view(np.bool_)
        if native.whole and plain is not None:  # nothing to fill, check or change
            present[key] = mask
            if native.byte_offsets is None:
                columns[key] = native.values.reshape(rows, *plain)
            else:
                columns[key] = BytesColumn(native.values, native.byte_offsets)
            continue
        job = _Job(key, feature, origin)
        _check_present(job, mask)
        column = _column(job, fill_missing(feature, native, mask), rows)
        if key in layout.apart:
            column = _apart(job, column, mask, layout.apart[key])
        if feature.dims:
            column = _with_dims(job, column, layout, natives)
        for name in reversed(feature.row_lengths):
            column = _nested(job, column, name, natives[layout.index(name)])
        columns[key] = column
        present[key] = mask
        if native.step_present is not None:
            step_present[key] = native.step_present.view(np.bool_)
    lists = frozenset(key for key in columns if layout.schema[key].place == "list")
    return Batch(columns, present=present, rows=rows, lists=lists, step_present=step_present)


class Places(Protocol):
    """What can say where a row (or a step of one) came from."""

    def where(self, row: int) -> str:
        """Say where a row came from, in words."""
        ...

    def place(self, row: int) -> Mapping[str, Any]:
        """Return path, record and offset of a row, for the attributes of an error."""
        ...


class _Steps:
    """Where inner values came from: the row around each, and its position in that row."""

    def __init__(self, outer: Places, offsets: Array) -> None:
        self._outer = outer
        self._offsets = offsets

    def _row(self, index: int) -> int:
        return int(np.searchsorted(self._offsets, index, "right")) - 1

    def where(self, row: int) -> str:
        """Say which step of which row an inner value came from."""
        outer = self._row(row)
        return f"step {row - int(self._offsets[outer])} of {self._outer.where(outer)}"

    def place(self, row: int) -> Mapping[str, Any]:
        """Return path, record and offset of the row around an inner value."""
        return self._outer.place(self._row(row))


@dataclass(frozen=True, slots=True)
class _Job:
    """One feature to convert, and how to say where its values came from."""

    key: str
    feature: Feature
    origin: Places

    def within(self, offsets: Array | None) -> _Job:
        """Return the same job for the values inside the lists that ``offsets`` cut."""
        return self if offsets is None else replace(self, origin=_Steps(self.origin, offsets))

    def error(self, kind: type[TfrioError], text: str, row: int, remedy: str = "") -> TfrioError:
        """Return an error that names feature and record."""
        message = f"feature '{self.key}'{text}, {self.origin.where(row)}"
        message = f"{message}; {remedy}" if remedy else message
        return kind(message, feature=self.key, **self.origin.place(row))

    def located(self, error: TfrioError, row: int) -> TfrioError:
        """Return the same error with feature and record added."""
        return self.error(type(error), f": {error.message}", row)


def _check_present(job: _Job, mask: Array) -> None:
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


def _column(job: _Job, native: NativeColumn, rows: int) -> Column:
    """Return values in their shape and type; a feature list as rows of steps."""
    if native.step_offsets is None:
        return _values(job, native, rows)
    inner: Column
    if job.feature.kind == "unknown" and native.value_offsets is not None:
        inner = Ragged([], native.value_offsets)  # bytes were asked for, and there are none
    else:
        inner = _values(job.within(native.step_offsets), native, int(native.step_offsets[-1]))
    return Ragged(inner, native.step_offsets)


def _values(job: _Job, native: NativeColumn, rows: int) -> Column:
    if native.byte_offsets is not None:
        data = BytesColumn(native.values, native.byte_offsets)
        return _bytes_values(job, data, native.value_offsets, rows)
    flat = _cast(job, native.values, native.value_offsets, rows)
    if native.value_offsets is not None:
        return _lists(job, flat, native.value_offsets)
    shape = tuple(d for d in job.feature.shape or () if isinstance(d, int))
    return flat.reshape(rows, *shape)


def _lists(job: _Job, flat: Array, offsets: Array) -> Ragged | list[Any]:
    """Return lists of free length, their inner axes folded where the schema has some."""
    shape = tuple(d for d in job.feature.shape or () if isinstance(d, int))
    if -1 in shape[1:] and not job.feature.dims:
        bounds = pairwise(offsets.tolist())
        return [_fit(job, flat[a:b], shape, row) for row, (a, b) in enumerate(bounds)]
    inner = job.feature.inner
    if not inner:
        return Ragged(flat, offsets)
    size = int(np.prod(inner))
    lengths = np.diff(offsets)
    odd = np.flatnonzero(lengths % size if size else lengths)
    if len(odd):
        row = int(odd[0])
        _fit(job, flat[offsets[row] : offsets[row + 1]], (-1, *inner), row)
    lists = flat.reshape(len(flat) // max(size, 1), *inner)
    return Ragged(lists, offsets // max(size, 1))


def _bytes_values(job: _Job, data: BytesColumn, offsets: Array | None, rows: int) -> Column:
    feature = job.feature
    if feature.count == 1 and (feature.codec is not None or feature.shape == ()):
        bounds = None
    elif offsets is not None:
        bounds = offsets
    else:
        bounds = np.arange(rows + 1, dtype=np.int64) * feature.count
    if bounds is not None:
        _check_axes(job, bounds)
    values: Column = data
    if feature.codec is not None and not feature.dims:
        values = _decoded(job.within(bounds), data)
    elif feature.dtype == "str":
        values = _text(job.within(bounds), data)
    if bounds is None:
        return values
    if feature.codec is None and not feature.dims and len(feature.shape or ()) > 1:
        flat = as_objects(values)
        if offsets is not None:
            return _lists(job, flat, offsets)
        return flat.reshape(rows, *(d for d in feature.shape or () if isinstance(d, int)))
    return Ragged(values, bounds)


def _check_axes(job: _Job, bounds: Array) -> None:
    """Refuse lists of byte strings that cannot form the axes of the schema."""
    shape = tuple(d for d in job.feature.shape or () if isinstance(d, int))
    if job.feature.codec is not None or job.feature.dims or -1 not in shape or len(shape) < 2:
        return
    size = -math.prod(shape)
    lengths = np.diff(bounds)
    odd = np.flatnonzero(lengths % size if size else lengths)
    if len(odd):
        row = int(odd[0])
        raise job.error(SchemaError, f": {misfit_text(int(lengths[row]), shape)}", row)


def _apart(job: _Job, column: Any, mask: Array, files: Mapping[str, RowAxes]) -> list[Any]:
    """Return one array a row in the axes it was written with; None where it is absent."""
    found: list[Any] = []
    for row, (value, there) in enumerate(zip(_per_row(column), mask.tolist(), strict=True)):
        place = job.origin.place(row)
        axes = files.get(place["path"])
        shape = None if axes is None else axes.at(place["record"])
        values = [value] if isinstance(value, bytes | str) else value
        array = values if isinstance(values, np.ndarray) else as_objects(values)
        if not there:
            found.append(None)
        elif shape is not None and (-1 in shape or math.prod(shape) == array.size):
            found.append(fit_shape(array, shape))
        elif array.dtype == object:  # as rows have it: one value bare, several in a list
            found.append(array[0] if array.size == 1 else array.tolist())
        else:
            found.append(array.reshape(-1))
    return found


def _text(job: _Job, data: BytesColumn) -> list[str]:
    try:
        return data.decode()
    except UnicodeDecodeError:
        for i, value in enumerate(data.tolist()):
            try:
                value.decode()
            except UnicodeDecodeError as error:
                remedy = 'read it as bytes (without dtype "str")'
                text = f" is no UTF-8 text ({error})"
                raise job.error(DecodeError, text, i, remedy) from error
        raise


def _decoded(job: _Job, data: BytesColumn) -> Array | list[Any]:
    """Decode each value; one array where the schema fixes the shape, else a list of arrays."""
    feature = job.feature
    shape = None if feature.shape is None else tuple(d for d in feature.shape if isinstance(d, int))
    fixed = shape is not None and -1 not in shape
    if fixed and feature.codec == "raw":
        whole = _all_at_once(feature, data, shape or ())
        if whole is not None:
            return whole
    arrays: list[Any] = []
    for i, value in enumerate(data.tolist()):
        try:
            arrays.append(decode_value(value, feature, shape) if value else None)
        except TfrioError as error:
            raise job.located(error, i) from error
    return _stacked(arrays, shape or (), feature) if fixed else arrays


def _stacked(arrays: list[Any], shape: tuple[int, ...], feature: Feature) -> Array:
    """Return arrays of one shape as one array, zeros for absent ones."""
    like = next((a.dtype for a in arrays if a is not None), feature.out_dtype or np.float32)
    out = np.zeros((len(arrays), *shape), like)
    for i, array in enumerate(arrays):
        if array is not None:
            out[i] = array
    return out


def _all_at_once(feature: Feature, data: BytesColumn, shape: tuple[int, ...]) -> Array | None:
    """Return all raw values as one view of the buffer, None unless every length is right."""
    dtype = np.dtype(feature.dtype).newbyteorder(feature.byte_order)
    size = int(np.prod(shape)) * dtype.itemsize
    if not len(data) or not (np.diff(data.offsets) == size).all():
        return None
    block = data.data[data.offsets[0] : data.offsets[-1]].view(dtype)
    return block.reshape(len(data), *shape).astype(dtype.newbyteorder("="), copy=False)


def _cast(job: _Job, values: Array, offsets: Array | None, rows: int) -> Array:
    """Return values in the feature's dtype, or an error naming the first that does not fit."""
    dtype = job.feature.out_dtype
    if dtype is None or dtype == values.dtype:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        out = values.astype(dtype)
    if values.dtype.kind != "f":
        bad = _differs(values, out)
    elif dtype.itemsize < values.dtype.itemsize:
        bad = np.isinf(out) & ~np.isinf(values)
    else:
        return out
    if bad.any():
        at = int(bad.argmax())
        row = at // max(len(values) // max(rows, 1), 1)
        if offsets is not None:
            row = int(np.searchsorted(offsets, at, "right")) - 1
        text = f": {values[at]} does not fit {dtype.name}"
        raise job.error(SchemaError, text, row, "leave dtype out to get the stored type")
    return out


def _differs(values: Array, out: Array) -> Array:
    """Return where integers became other numbers, bool array of their shape."""
    with np.errstate(invalid="ignore"):
        back = out.view(np.uint8) if out.dtype.kind == "b" else out.astype(np.int64)
    bad: Array = back != values
    if out.dtype.kind == "u":
        bad |= values < 0  # uint64 would give them back unchanged
    elif out.dtype.kind == "f" and out.dtype.itemsize > 2:
        bad |= out >= 2.0**63  # as int64 these differ by machine
    return bad


def _with_dims(
    job: _Job, column: Column, layout: Layout, natives: Sequence[NativeColumn]
) -> list[Any]:
    """Return one array a record, its axes taken from other features of the same record."""
    sizes = {d: _axis(job, d, natives[layout.dim_slot(d)]) for d in job.feature.dims}
    found: list[Any] = []
    for row, value in enumerate(_per_row(column)):
        shape = tuple(
            int(sizes[d][row]) if isinstance(d, str) else d for d in job.feature.shape or ()
        )
        if len(value) == 0:
            found.append(None)
        elif job.feature.codec is None:
            found.append(_fit(job, value, shape, row))
        else:
            found.append(_decode_one(job, value, shape, row))
    return found


def _decode_one(job: _Job, value: Any, shape: tuple[int, ...], row: int) -> Any:
    try:
        if isinstance(value, bytes):
            return decode_value(value, job.feature, shape)
        return [decode_value(v, job.feature, shape) for v in value]
    except TfrioError as error:
        raise job.located(error, row) from error


def _per_row(column: Column) -> list[Any]:
    if isinstance(column, Ragged):
        return [column[i] for i in range(len(column))]
    return column.tolist() if isinstance(column, BytesColumn) else list(column)


def _axis(job: _Job, dim: str, native: NativeColumn) -> Array:
    """Return the length of a named axis in each record, int64 array (rows,)."""
    if native.value_offsets is None:
        bad = np.flatnonzero((native.present == 0) | (native.values < 0))
    else:
        bad = np.flatnonzero(np.diff(native.value_offsets) != 1)
    if len(bad):
        text = f" takes an axis from '{dim}', which has no single length"
        raise job.error(SchemaError, text, int(bad[0]))
    return native.values


def _nested(job: _Job, column: Column, name: str, lengths: NativeColumn) -> Ragged:
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


def _fit(job: _Job, values: Any, shape: tuple[int, ...], row: int) -> Array:
    try:
        return fit_shape(values if isinstance(values, np.ndarray) else as_objects(values), shape)
    except TfrioError as error:
        raise job.located(error, row) from error

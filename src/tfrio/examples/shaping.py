"""Values of one feature in their shape, type and codec. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tfrio.errors import DecodeError, SchemaError, TfrioError
from tfrio.examples.codecs import decode_value, fit_shape, misfit_text
from tfrio.examples.columns import Array, BytesColumn, Column, Ragged, as_objects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrio.examples.layout import NativeColumn
    from tfrio.examples.schema import Feature

__all__ = ["Job", "Places", "column_of", "fit", "per_row"]


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
class Job:
    """One feature to convert, and how to say where its values came from."""

    key: str
    feature: Feature
    origin: Places

    def within(self, offsets: Array | None) -> Job:
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


def column_of(job: Job, native: NativeColumn, rows: int) -> Column:
    """Return values in their shape and type; a feature list as rows of steps.

    Args:
        job: The feature, and where its rows came from.
        native: The column as decoded: of a fixed number of values where the feature has one.
        rows: Number of rows.

    Raises:
        SchemaError: Values do not have the shape or type asked for.
        DecodeError: Bytes are not what the feature's codec expects.
    """
    if native.step_offsets is None:
        return _values(job, native, rows)
    inner: Column
    if job.feature.kind == "unknown" and native.value_offsets is not None and _kindless(native):
        inner = Ragged([], native.value_offsets)  # bytes were asked for, and there are none
    else:
        inner = _values(job.within(native.step_offsets), native, int(native.step_offsets[-1]))
    return Ragged(inner, native.step_offsets)


def _kindless(native: NativeColumn) -> bool:
    """Return whether no step of a feature list carries a kind."""
    if native.step_present is None:
        return native.step_offsets is not None and not native.step_offsets[-1]
    return not native.step_present.any()


def _values(job: Job, native: NativeColumn, rows: int) -> Column:
    if native.byte_offsets is not None:
        data = BytesColumn(native.values, native.byte_offsets)
        return _bytes_values(job, data, native.value_offsets, rows)
    flat = _cast(job, native.values, native.value_offsets, rows)
    if native.value_offsets is not None:
        return _lists(job, flat, native.value_offsets)
    shape = tuple(d for d in job.feature.shape or () if isinstance(d, int))
    return flat.reshape(rows, *shape)


def _lists(job: Job, flat: Array, offsets: Array) -> Ragged | list[Any]:
    """Return lists of free length, their inner axes folded where the schema has some."""
    shape = tuple(d for d in job.feature.shape or () if isinstance(d, int))
    if -1 in shape[1:] and not job.feature.dims:
        bounds = pairwise(offsets.tolist())
        return [fit(job, flat[a:b], shape, row) for row, (a, b) in enumerate(bounds)]
    inner = job.feature.inner
    if not inner:
        return Ragged(flat, offsets)
    size = int(np.prod(inner))
    lengths = np.diff(offsets)
    odd = np.flatnonzero(lengths % size if size else lengths)
    if len(odd):
        row = int(odd[0])
        fit(job, flat[offsets[row] : offsets[row + 1]], (-1, *inner), row)
    lists = flat.reshape(len(flat) // max(size, 1), *inner)
    return Ragged(lists, offsets // max(size, 1))


def _bytes_values(job: Job, data: BytesColumn, offsets: Array | None, rows: int) -> Column:
    feature = job.feature
    if offsets is not None:  # of an unknown kind too, whatever its shape
        bounds: Array | None = offsets
    elif feature.count == 1 and (feature.codec is not None or feature.shape == ()):
        bounds = None
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


def _check_axes(job: Job, bounds: Array) -> None:
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


def _text(job: Job, data: BytesColumn) -> list[str]:
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


def _decoded(job: Job, data: BytesColumn) -> Array | list[Any]:
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


def _cast(job: Job, values: Array, offsets: Array | None, rows: int) -> Array:
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


def per_row(column: Column) -> list[Any]:
    """Return a column as a list of one value a row."""
    if isinstance(column, Ragged):
        return [column[i] for i in range(len(column))]
    return column.tolist() if isinstance(column, BytesColumn) else list(column)


def fit(job: Job, values: Any, shape: tuple[int, ...], row: int) -> Array:
    """Return the values of a row in a shape, or an error that names the row."""
    try:
        return fit_shape(values if isinstance(values, np.ndarray) else as_objects(values), shape)
    except TfrioError as error:
        raise job.located(error, row) from error

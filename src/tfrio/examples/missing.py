"""Put the default of a feature where it is absent. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.examples.columns import Array, BytesColumn

if TYPE_CHECKING:
    from tfrio.examples.layout import NativeColumn
    from tfrio.examples.schema import Feature

__all__ = ["fill_missing"]


def fill_missing(feature: Feature, native: NativeColumn, present: Array) -> NativeColumn:
    """Fill the rows where a feature is absent with its default.

    Args:
        feature: Default and shape.
        native: The column as decoded; fixed columns hold zeros (or empty bytes) in absent rows.
        present: bool array (rows,).

    Returns:
        The column with defaults in place; the same one where nothing is absent.
    """
    if feature.default is None or present.all() or native.step_offsets is not None:
        return native
    values = _default_values(feature)
    if native.byte_offsets is not None:
        return _fill_bytes(native, values, present)
    numbers = np.array(values, native.values.dtype)
    if native.value_offsets is None:
        rows = native.values.reshape(len(present), -1)
        rows[~present] = numbers
        return native
    flat, offsets = _spliced(native.values, native.value_offsets, numbers, present)
    return native._replace(values=flat, value_offsets=offsets)


def _default_values(feature: Feature) -> list[Any]:
    default = feature.default if isinstance(feature.default, tuple) else (feature.default,)
    return [v.encode() if isinstance(v, str) else v for v in default]


def _fill_bytes(native: NativeColumn, values: list[bytes], present: Array) -> NativeColumn:
    assert native.byte_offsets is not None
    stored = np.array([None, *BytesColumn(native.values, native.byte_offsets).tolist()], object)[1:]
    if native.value_offsets is None:
        rows = stored.reshape(len(present), -1)
        rows[~present] = values
        filled, offsets = rows.ravel(), None
    else:
        default = np.array([None, *values], object)[1:]
        filled, offsets = _spliced(stored, native.value_offsets, default, present)
    column = BytesColumn.of(filled.tolist())
    return native._replace(values=column.data, byte_offsets=column.offsets, value_offsets=offsets)


def _spliced(values: Array, offsets: Array, default: Array, present: Array) -> tuple[Array, Array]:
    """Return flat values and offsets with ``default`` as the list of each absent row."""
    lengths = np.where(present, np.diff(offsets), len(default))
    made = np.zeros(len(offsets), np.int64)
    np.cumsum(lengths, out=made[1:])
    out = np.empty(made[-1], values.dtype)
    fresh = np.repeat(~present, lengths)
    out[~fresh] = values
    out[fresh] = np.tile(default, int((~present).sum()))
    return out, made

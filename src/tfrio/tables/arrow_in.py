"""Arrow columns to cells: what Parquet, GeoPackage, Shapefile and data frames hand over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tfrio.errors import EncodeError, require
from tfrio.examples.columns import BytesColumn
from tfrio.tables.cells import Cells, cells_of_values
from tfrio.tables.fields import Field, Form

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["cells_of_arrow", "field_of_arrow"]


def field_of_arrow(column: Any) -> Field:
    """Describe an Arrow column.

    Args:
        column: A ``pyarrow.Field``.

    Returns:
        The field; list columns have the shape None, because their rows decide it.
    """
    types = require("pyarrow", extra="table").types
    inner, shape = column.type, cast("tuple[int, ...] | None", ())
    while _is_list(types, inner):
        inner, shape = inner.value_type, None
    return Field(column.name, _form(types, inner), shape, str(column.type))


def _is_list(types: Any, kind: Any) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _form(types: Any, kind: Any) -> Form:
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests: list[tuple[Form, Any]] = [
        ("null", types.is_null),
        ("bool", types.is_boolean),
        ("int", types.is_integer),
        ("float", types.is_floating),
        ("float", types.is_decimal),
        ("int", types.is_duration),
        ("time", types.is_temporal),
        ("text", lambda k: types.is_string(k) or types.is_large_string(k)),
        ("text", lambda k: str(k) == "string_view"),
        ("bytes", lambda k: types.is_binary(k) or types.is_large_binary(k)),
        ("bytes", lambda k: types.is_fixed_size_binary(k) or str(k) == "binary_view"),
    ]
    return next((form for form, test in tests if test(kind)), "json")


def cells_of_arrow(array: Any, field: Field, *, where: str) -> Cells:
    """Convert one Arrow array.

    Args:
        array: A ``pyarrow.Array``.
        field: What the column holds and how it is wanted.
        where: The source and its first row here, for the error.

    Returns:
        The cells.

    Raises:
        EncodeError: A row holds lists of differing length within a list.
    """
    pa = require("pyarrow", extra="table")
    types = pa.types
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if str(array.type) in ("string_view", "binary_view"):
        array = array.cast(pa.large_binary())  # few kernels take views
    if field.form == "json":
        return cells_of_values(field, array.to_pylist())
    present = np.asarray(array.is_valid())
    if not _is_list(types, array.type):
        offsets = np.concatenate(([0], np.cumsum(present)))
        return Cells(_flat(pa, array.drop_null(), field), offsets, present)
    flat, offsets, shapes = _lists(pa, array, field.name, where)
    return Cells(_flat(pa, flat, field), offsets, present, shapes)


def _lists(
    pa: Any, array: Any, name: str, where: str
) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
    """Return flat values, offsets of the rows and shape of each row; null rows are empty."""
    lengths = pa.compute.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    flat = array.flatten()  # leaves out what lies under null rows
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    shapes = np.asarray(lengths, np.int64)[:, None]
    if not _is_list(pa.types, flat.type):
        return flat, offsets, shapes
    values, inner_offsets, inner = _lists(pa, flat, name, where)
    first = offsets[:-1][lengths > 0]
    row_of = np.repeat(np.arange(len(first)), lengths[lengths > 0])
    differ = (inner != inner[first][row_of]).any(axis=1) if len(inner) else np.zeros(0, bool)
    if differ.any():
        row = int(np.searchsorted(offsets, int(differ.argmax()), side="right")) - 1
        raise EncodeError(
            f"{where}, row {row}: column '{name}' holds lists of differing length within one "
            "list, which has no row-major form. Pad them to one length, or store lengths in a "
            "column of their own",
            feature=name,
        )
    each = np.zeros((len(lengths), inner.shape[1]), np.int64)
    each[lengths > 0] = inner[first]
    return values, inner_offsets[offsets], np.concatenate((shapes, each), axis=1)


def _flat(pa: Any, array: Any, field: Field) -> NDArray[Any] | BytesColumn:
    """Return the values of an array without lists; a null inside a list is NaN or empty."""
    types = pa.types
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    numeric = field.form in ("bool", "int", "float", "null")
    if field.kind == "bytes" and numeric:
        return BytesColumn.of(json.dumps(v, default=str).encode() for v in array.to_pylist())
    if not numeric:
        return _bytes(pa, _as_text(pa, array))
    if types.is_boolean(array.type):
        array = array.cast(pa.int8())
    elif types.is_duration(array.type):
        array = array.cast(pa.int64())
    elif types.is_decimal(array.type) or types.is_null(array.type):
        array = array.cast(pa.float64())
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _as_text(pa: Any, array: Any) -> Any:
    """Write times as ISO 8601; leave text and bytes as they are."""
    if not pa.types.is_temporal(array.type):
        return array
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        naive = array.cast(pa.timestamp(array.type.unit, "UTC"))
        text = naive.cast(pa.timestamp(array.type.unit)).cast(pa.string())
        text = pa.compute.binary_join_element_wise(text, "Z", "")
    else:
        text = array.cast(pa.string())
    return pa.compute.replace_substring(text, " ", "T")


def _bytes(pa: Any, array: Any) -> BytesColumn:
    large = array.cast(pa.large_binary()).fill_null(b"")
    if not len(large):
        return BytesColumn.of([])
    _, offset_buffer, data = large.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, len(large) + 1, large.offset * 8)
    values = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return BytesColumn(values[offsets[0] : offsets[-1]], offsets - offsets[0])

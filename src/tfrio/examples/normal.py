"""Columns of any making to the three forms there are: arrays, ``BytesColumn``, ``Ragged``. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from tfrio.errors import EncodeError
from tfrio.examples.columns import Array, BytesColumn, Ragged
from tfrio.examples.exact import (
    Exactness,
    RaggedValueError,
    Stored,
    as_array,
    is_missing,
    missing_as_none,
    refuse_masked,
    store,
)
from tfrio.examples.wire import steps_of

if TYPE_CHECKING:
    from tfrio.examples.schema import Kind

__all__ = ["is_objects", "kind_of", "normal_column"]


def is_objects(column: Any) -> TypeGuard[Array]:
    """Return whether a column is an array of text, bytes or other objects."""
    return isinstance(column, np.ndarray) and column.dtype.kind in "SUOT"


def normal_column(
    column: Any,
    name: str,
    exactness: Exactness,
    *,
    kind: Kind = "unknown",
    noted: Callable[[int, tuple[int, ...]], None] | None = None,
) -> tuple[Any, Array | None]:
    """Return a column in one of the three forms.

    Args:
        column: Array, masked array, ``BytesColumn``, ``Ragged`` or a list of one value a row.
        name: The feature, for messages.
        exactness: What to do with numbers that do not fit.
        kind: The kind wanted, ``"unknown"`` to take the values' own.
        noted: Told row and axes of each value of a list whose axes differ.

    Returns:
        An array (rows, ...) of float32 or int64, a ``BytesColumn``, or a ``Ragged`` of these;
        and a bool array (rows,) of what is present, None where all is.

    Raises:
        EncodeError: A value cannot be stored without changing it.
    """
    if isinstance(column, BytesColumn):
        _check_kind(name, kind, "bytes")
        return column, None
    if isinstance(column, Ragged):
        values, offsets = column.values, np.ascontiguousarray(column.offsets, np.int64)
        if isinstance(values, list) and not values:  # of no kind yet
            return Ragged(values, offsets), None
        if is_objects(values) and values.ndim > 1:  # byte strings in arrays
            offsets = offsets * math.prod(values.shape[1:])
            # As batches have them, where none of their rows holds a value.
            empty = not values.size and kind != "float"
            values = BytesColumn.of([]) if empty else values.reshape(-1)
        inner, _ = normal_column(values, name, exactness, kind=kind)
        return Ragged(inner, offsets), None
    if isinstance(column, np.ma.MaskedArray) and column.ndim == 1:
        filled = column.filled(0 if column.dtype.kind in "biuf" else b"")
        made, _ = normal_column(np.asarray(filled), name, exactness, kind=kind)
        return made, ~np.ma.getmaskarray(column)
    refuse_masked(column, name)
    column = missing_as_none(column)
    if isinstance(column, memoryview):  # of several axes it is no sequence of rows
        column = np.asarray(column)
    if not isinstance(column, Sequence) and hasattr(column, "__array__"):
        column = as_array(column, name)
    if isinstance(column, np.ndarray) and not is_objects(column):
        stored = store(column, name, exactness, kind=kind)
        return _shaped(stored), None
    return _listed(list(column), name, exactness, kind, noted)


def kind_of(column: Any) -> Kind:
    """Return the kind of a normal column's values; an empty list tells none."""
    if isinstance(column, list):
        return "unknown"
    if isinstance(column, Ragged):
        return kind_of(column.values)
    if isinstance(column, BytesColumn):
        return "bytes"
    return "float" if column.dtype == np.float32 else "int64"


def _listed(
    values: list[Any],
    name: str,
    exactness: Exactness,
    kind: Kind,
    noted: Callable[[int, tuple[int, ...]], None] | None,
) -> tuple[Any, Array | None]:
    """Return a list of one value a row as a column; None is an absent row."""
    mask = None
    values = [None if is_missing(value) else value for value in values]
    if any(value is None for value in values):
        mask = np.array([value is not None for value in values])
    if all(isinstance(value, bytes | str | None) for value in values) and mask is None and values:
        parts = store(values, name, exactness, kind=kind)
        return BytesColumn.of(parts.flat), None
    made = [_item(i, value, name, exactness, kind) for i, value in enumerate(values)]
    found: Kind = next((m.kind for m in made if m is not None and m.kind != "unknown"), kind)
    if any(m is not None and m.kind not in (found, "unknown") for m in made):
        if kind == "unknown" and {m.kind for m in made if m} <= {"int64", "float", "unknown"}:
            return _listed(values, name, exactness, "float", noted)
        raise _mixed(name, made, found)
    if found == "unknown" and mask is None:
        raise EncodeError(
            f"feature '{name}': empty lists have no kind; give a schema", feature=name
        )
    shapes = {m.shape for m in made if m is not None}
    if noted is not None and (len(shapes) > 1 or found == "bytes"):
        for row, one in enumerate(made):
            if one is not None:
                noted(row, one.shape)
    return _joined([_known(m, found) for m in made], found), mask


def _mixed(name: str, made: list[Stored | None], kind: Kind) -> EncodeError:
    """Return the error of a column whose rows have several kinds."""
    row, odd = next(
        (row, one) for row, one in enumerate(made) if one and one.kind not in (kind, "unknown")
    )
    return EncodeError(
        f"feature '{name}' mixes kinds from row to row: {kind} before, {odd.kind} in row {row}; "
        "convert the values to one kind",
        feature=name,
    )


def _item(row: int, value: Any, name: str, exactness: Exactness, kind: Kind) -> Stored | None:
    if value is None:
        return None
    try:
        return store(value, name, exactness, kind=kind)
    except RaggedValueError:
        raise
    except EncodeError as error:
        error.message = f"{error.message} (row {row})"
        raise


def _known(made: Stored | None, kind: Kind) -> Stored | None:
    """Give an empty list the kind of the others."""
    if made is None or made.kind == kind:
        return made
    dtype = np.float32 if kind == "float" else np.int64
    return made._replace(kind=kind, flat=[] if kind == "bytes" else np.zeros(0, dtype))


def _joined(parts: list[Stored | None], kind: Kind) -> Any:
    """Return the values of all rows as one column; absent rows are empty, or zero where fixed."""
    shapes = {part.shape for part in parts if part is not None}
    shape = shapes.pop() if len(shapes) == 1 else None
    if shape is not None and kind != "bytes":
        blank = np.zeros(shape, np.float32 if kind == "float" else np.int64)
        return np.stack([blank if p is None else p.flat.reshape(shape) for p in parts])
    lists: list[Any] = [[] if part is None else list(part.flat) for part in parts]
    if kind == "bytes":
        if shape == ():
            return BytesColumn.of([v[0] if v else b"" for v in lists])
        return Ragged(
            BytesColumn.of([v for part in lists for v in part]), steps_of([len(v) for v in lists])
        )
    blank = np.zeros(0, np.float32 if kind == "float" else np.int64)
    flats = [blank if part is None else part.flat for part in parts]
    return Ragged(np.concatenate(flats), steps_of([len(flat) for flat in flats]))


def _shaped(stored: Stored) -> Any:
    if stored.kind != "bytes":
        return stored.flat.reshape(stored.shape)
    flat = BytesColumn.of(stored.flat)
    rows, *axes = stored.shape
    return Ragged(flat, np.arange(rows + 1, dtype=np.int64) * math.prod(axes)) if axes else flat


def _check_kind(name: str, wanted: Kind, got: Kind) -> None:
    if wanted not in ("unknown", got):
        raise EncodeError(f"feature '{name}' is {wanted} but {got} was given", feature=name)

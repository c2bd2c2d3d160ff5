"""Columns given by a user to columns for the native encoder, without a copy where it can be."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import EncodeError, MissingFeatureError
from tfrio.examples.codecs import encode_value
from tfrio.examples.columns import Array, BytesColumn, Ragged
from tfrio.examples.exact import is_missing, missing_as_none
from tfrio.examples.normal import is_objects, kind_of, normal_column
from tfrio.examples.steps import has_steps, list_column
from tfrio.examples.wire import Target, WireColumn, kindless

if TYPE_CHECKING:
    from tfrio.examples.encode import RowEncoder
    from tfrio.examples.schema import Feature, Kind, Place

__all__ = ["BatchEncoder"]


class BatchEncoder:
    """Turn batches of columns into what the native encoder takes.

    Args:
        rows: Knows the schema, the kinds so far and what happens to inexact numbers.
    """

    def __init__(self, rows: RowEncoder) -> None:
        self._rows = rows

    def columns(
        self, batch: Mapping[str, Any], present: Mapping[str, Array]
    ) -> tuple[int, dict[Target, WireColumn]]:
        """Return the number of rows and their native columns.

        Args:
            batch: Column by feature.
            present: bool array (rows,) by feature, where some rows lack it.

        Returns:
            Rows and columns.

        Raises:
            EncodeError: Columns differ in length, or a value does not fit.
        """
        lengths = {name: _length(name, column) for name, column in batch.items()}
        if len(set(lengths.values())) > 1:
            raise EncodeError(f"columns differ in length: {lengths}")
        _check_masks(batch, present)
        rows = next(iter(lengths.values()), getattr(batch, "rows", 0))
        if not rows:
            return 0, {}
        found: dict[Target, WireColumn] = {}
        for name in batch:
            self._add(found, batch, name, present.get(name), rows)
        self._check_complete(batch)
        return rows, found

    def _add(
        self,
        found: dict[Target, WireColumn],
        batch: Mapping[str, Any],
        name: str,
        there: Array | None,
        rows: int,
    ) -> None:
        """Add the native columns of one column of a batch to those found."""
        feature = self._rows.feature(name)
        given = batch[name]
        lists: frozenset[str] | None = getattr(batch, "lists", None)
        carry = getattr(batch, "step_present", {}).get(name)
        nested = self._rows_of_steps(name, given, feature, lists)
        if nested is not None:
            mask = _mask(name, there, _there(nested), rows)
            target, made = self._list(name, nested, feature, mask)
            found[target] = self._with_steps(name, made, carry)
            return
        if name in (lists or ()) and feature is None:
            column, nulls = self._normal_steps(name, given), None
        else:
            column, nulls = self._normal(name, given, feature)
        mask = _mask(name, there, nulls, rows)
        if mask is not None and not mask.any() and feature is None:
            return
        if mask is not None and _must_be_there(name, feature, mask):
            column, mask = _emptied(column, mask), None
        for target, made in self._wired(name, column, feature):
            wire = self._with_steps(name, made, carry)
            found[target] = wire if mask is None else wire._replace(present=mask)
            if feature is not None:
                _check_counts(name, found[target], feature, rows)

    def _rows_of_steps(
        self, name: str, given: Any, feature: Feature | None, lists: frozenset[str] | None
    ) -> list[Any] | None:
        """Return a list of one row of steps each, None where a column is something else."""
        column = missing_as_none(given)
        in_list = feature is not None and feature.place == "list"
        if is_objects(column) and (in_list or (column.dtype.kind == "O" and column.ndim == 1)):
            column = list(column)
        if not isinstance(column, list | tuple):
            return None
        if feature is not None:
            chosen = in_list
        elif lists is not None:
            chosen = name in lists
        else:
            known = (name, "list") in self._rows.kinds or name in self._rows.listed
            chosen = known or (self._rows.sequence_only and any(map(has_steps, column)))
        return list(column) if chosen else None

    def _list(
        self, name: str, nested: list[Any], feature: Feature | None, mask: Array | None
    ) -> tuple[Target, WireColumn]:
        """Return rows of steps as a feature list."""
        there = [True] * len(nested) if mask is None else mask.view(np.bool_).tolist()
        rows = [steps if here else () for steps, here in zip(nested, there, strict=True)]
        target, made = list_column(self._rows, name, rows, feature)
        if mask is None or _must_be_there(name, feature, mask):
            return target, made
        return target, made._replace(present=mask)

    def _normal(self, name: str, given: Any, feature: Feature | None) -> tuple[Any, Array | None]:
        if feature is not None and feature.codec is not None:
            return _encoded(name, given, feature)
        if feature is not None:
            kind = feature.kind
        else:
            known = self._rows.kinds.get((name, "context"), "unknown")
            kind = "float" if known == "float" else "unknown"
        apart = False

        def noted(row: int, shape: tuple[int, ...]) -> None:
            """Note the shape of a row."""
            nonlocal apart
            apart = True
            self._rows.note_shape(name, shape, row=row)

        note = noted if feature is None else None
        if feature is not None and feature.place == "list" and isinstance(given, Ragged):
            given = _in_steps(given) if is_objects(given.values) else given
        column, nulls = normal_column(given, name, self._rows.exactness, kind=kind, noted=note)
        if feature is not None:
            _check_axes(name, column, feature)
            return column, nulls
        if not apart:
            shape, place = _axes_of(column, given)
            self._rows.note_shape(name, shape, place, count=_length(name, column))
        return column, nulls

    def _normal_steps(self, name: str, given: Any) -> Any:
        """Return a feature list as rows of steps; a shape that all steps have is noted."""
        column = given
        if isinstance(given, Ragged) and isinstance(given.values, np.ndarray):
            self._rows.note_shape(name, given.values.shape[1:], "list")
            column = _in_steps(given)
        elif isinstance(given, Ragged):
            shape, place = _axes_of(given, given)
            self._rows.note_shape(name, shape, place)
        return normal_column(column, name, self._rows.exactness)[0]

    def _wired(
        self, name: str, column: Any, feature: Feature | None
    ) -> list[tuple[Target, WireColumn]]:
        """Return the features that hold one column: one, or flat values and their lengths."""
        wire = feature.stored_as(name) if feature else name
        if feature is not None and feature.row_lengths:
            return self._split(name, column, wire, feature.row_lengths)
        nested = isinstance(column, Ragged) and isinstance(column.values, Ragged)
        as_list = feature.place == "list" if feature else nested and self._rows.sequence_only
        learned = feature is None or feature.kind == "unknown"
        learned = learned and as_list and isinstance(column, Ragged)
        if learned and (not _length_of(column) or kind_of(column) == "unknown"):
            kind = self._rows.kinds.get((wire, "list"), "unknown")  # no values decide none
            return [(Target(wire, kind, "list"), _no_values(column, kind))]
        if as_list:
            return [(self._target(wire, column, "list"), _steps(name, column))]
        if not nested:
            return [(self._target(wire, column, "context"), _values(column))]
        if self._rows.ragged == "split":
            self._rows.splits.add(name)
            return self._split(name, column, f"{name}/values", (f"{name}/lengths",))
        raise EncodeError(
            f"feature '{name}': ragged 2-D value needs a SequenceExample (or flatten + lengths); "
            "use sequence=True or ragged='split'",
            feature=name,
        )

    def _with_steps(self, name: str, wire: WireColumn, carry: Array | None) -> WireColumn:
        """Return a column that tells which of its steps carry no kind."""
        if carry is None or wire.step_offsets is None:
            return wire
        first, last = int(wire.step_offsets[0]), int(wire.step_offsets[-1])
        if len(carry) != last:
            raise EncodeError(
                f"step_present['{name}'] has {len(carry)} entries for {last - first} steps",
                feature=name,
            )
        if not carry.all():
            self._rows.bare.add(name)
        return wire._replace(step_present=np.ascontiguousarray(carry, np.bool_).view(np.uint8))

    def _target(self, wire: str, column: Any, place: Place) -> Target:
        return Target(wire, self._rows.known_kind(wire, kind_of(column), place), place)

    def _split(
        self, name: str, column: Any, wire: str, row_lengths: tuple[str, ...]
    ) -> list[tuple[Target, WireColumn]]:
        """Return nested lists as the lengths of the lists, level by level, and flat values."""
        found = []
        for lengths in row_lengths:
            if not isinstance(column, Ragged) or not isinstance(column.values, Ragged):
                raise EncodeError(f"feature '{name}' needs lists of lists", feature=name)
            inner = column.values
            sizes = WireColumn(inner.lengths, value_offsets=column.offsets)
            found.append((Target(lengths, "int64"), sizes))
            column = Ragged(inner.values, inner.offsets[column.offsets])
        return [*found, (self._target(wire, column, "context"), _values(column))]

    def _check_complete(self, batch: Mapping[str, Any]) -> None:
        for name, feature in (self._rows.schema or {}).items():
            if name not in batch and feature.required and feature.default is None:
                raise MissingFeatureError(
                    f"feature '{name}' is required by the schema and is no column; give it, or "
                    "mark it optional (required=False)",
                    feature=name,
                )


def _axes_of(column: Any, given: Any) -> tuple[tuple[int, ...], Place]:
    """Return the axes of each row, or of each step of lists of lists; -1 where lengths differ.

    The column as given tells those of byte strings.
    """
    place: Place = "context"
    if isinstance(column, Ragged) and isinstance(column.values, Ragged):
        column, place = column.values, "list"
        given = given.values if isinstance(given, Ragged) else given
    if is_objects(given) or (isinstance(given, Ragged) and is_objects(given.values)):
        column = given
    if isinstance(column, Ragged):
        inner = column.values.shape[1:] if isinstance(column.values, np.ndarray) else ()
        return (-1, *inner), place
    return (column.shape[1:] if isinstance(column, np.ndarray) else ()), place


def _check_axes(name: str, column: Any, feature: Feature) -> None:
    """Refuse rows of another shape than the schema's."""
    wanted = feature.shape
    if not isinstance(column, np.ndarray) or wanted is None:
        return
    if feature.dims or feature.place == "list":
        return
    shape = column.shape[1:]
    fits = len(shape) == len(wanted) and all(
        d in (-1, n) for d, n in zip(wanted, shape, strict=True)
    )
    flat = len(shape) < 2 and feature.count == int(np.prod(shape))
    if not fits and not flat:
        raise EncodeError(
            f"feature '{name}': rows of shape {shape}, the schema says {wanted}", feature=name
        )


def _check_counts(name: str, wire: WireColumn, feature: Feature, rows: int) -> None:
    """Refuse rows, or steps of a feature list, with a number of values the schema does not allow.

    Args:
        name: The feature.
        wire: Its values.
        feature: What the schema says of it.
        rows: Number of rows.

    Raises:
        EncodeError: Readers by that schema would refuse the record.
    """
    if feature.shape is None or feature.codec or feature.dims or feature.row_lengths:
        return
    size = abs(math.prod(d for d in feature.shape if isinstance(d, int)))
    if wire.value_offsets is not None:
        lengths = np.diff(wire.value_offsets)
    elif wire.each == size:
        return
    else:
        lengths = np.full(rows if wire.step_offsets is None else wire.step_offsets[-1], wire.each)
    free = feature.count < 0 and size  # beside an axis of 0 no value fits
    fits = lengths % size == 0 if free else lengths == size
    if wire.step_offsets is None and wire.present is not None:
        fits = fits | (wire.present == 0)
    if fits.all():
        return
    at = row = int(fits.argmin())
    step = ""
    if wire.step_offsets is not None:
        row = int(np.searchsorted(wire.step_offsets, at, "right")) - 1
        step = f" in step {at - int(wire.step_offsets[row])}"
    raise EncodeError(
        f"feature '{name}': {lengths[at]} values{step}, the schema says {feature.shape}",
        feature=name,
        record=row,
    )


def _length(name: str, column: Any) -> int:
    """Return the number of rows of a column; refuse what is a single value, or has no order."""
    if isinstance(column, Mapping | AbstractSet):
        advice = "a set has no order; give sorted(x)"
        if isinstance(column, Mapping):
            advice = "a dict is no column; give each of its entries as a column 'outer/inner'"
        raise EncodeError(f"column '{name}': {advice}", feature=name)
    single = isinstance(column, memoryview) and column.format in ("B", "b", "c")
    single = single and column.ndim == 1  # bytes, as in a row
    ways = "__iter__", "__getitem__", "__array__"
    single = single or not any(map(partial(hasattr, column), ways))
    if not single and not isinstance(column, str | bytes | bytearray):
        with contextlib.suppress(TypeError):  # len() of a number, or of an array without axes
            return len(column)
    raise EncodeError(
        f"column '{name}' is a single value of type {type(column).__name__}; give one value a "
        "row, or write one row with write()",
        feature=name,
    )


def _encoded(name: str, given: Any, feature: Feature) -> tuple[Any, Array | None]:
    """Return arrays as the bytes of their codec."""
    nulls = np.array([value is not None for value in given], np.bool_)
    try:
        if not feature.many:
            parts = [b"" if v is None else encode_value(v, feature) for v in given]
            return BytesColumn.of(parts), nulls
        lists = [[encode_value(v, feature) for v in row or ()] for row in given]
    except EncodeError as error:
        raise EncodeError(f"feature '{name}': {error.message}", feature=name) from error
    flat = BytesColumn.of([value for row in lists for value in row])
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(row) for row in lists], out=offsets[1:])
    return Ragged(flat, offsets), nulls


def _values(column: Any) -> WireColumn:
    """Return a column of numbers, bytes, or lists of these."""
    if isinstance(column, BytesColumn):
        return WireColumn(_flat(column.data), column.offsets, each=1)
    if isinstance(column, np.ndarray):
        return WireColumn(_flat(column), each=int(np.prod(column.shape[1:])))
    values = column.values
    if isinstance(values, BytesColumn):
        return WireColumn(_flat(values.data), values.offsets, column.offsets)
    inner = int(np.prod(values.shape[1:]))
    return WireColumn(_flat(values), value_offsets=column.offsets * inner)


def _steps(name: str, column: Any) -> WireColumn:
    """Return rows of steps: lists of lists, or of arrays of one shape."""
    if isinstance(column, np.ndarray) and column.ndim > 1:
        rows, steps = column.shape[:2]
        column = Ragged(
            column.reshape(rows * steps, *column.shape[2:]),
            np.arange(rows + 1, dtype=np.int64) * steps,
        )
    if not isinstance(column, Ragged):
        raise EncodeError(f"feature list '{name}' needs rows of steps", feature=name)
    return _values(column.values)._replace(step_offsets=column.offsets)


def _in_steps(column: Ragged) -> Ragged:
    """Return rows of steps in an array of all steps as lists of lists."""
    steps: Any = column.values
    bounds = np.arange(len(steps) + 1, dtype=np.int64) * math.prod(steps.shape[1:])
    flat: Any = steps.reshape(-1)
    if is_objects(flat) and not len(flat):
        flat = BytesColumn.of([])
    return Ragged(Ragged(flat, bounds), column.offsets)


def _length_of(column: Ragged) -> int:
    """Return the number of values of all lists."""
    return int(column.offsets[-1] - column.offsets[0])


def _no_values(column: Ragged, kind: Kind) -> WireColumn:
    """Return rows of steps without values as a column of a kind."""
    steps = column.offsets - column.offsets[0]
    none = kindless(np.diff(steps))
    if kind == "unknown":
        return none
    dtype = {"bytes": np.uint8, "float": np.float32}.get(kind, np.int64)
    offsets = np.zeros(1, np.int64) if kind == "bytes" else None
    return none._replace(values=np.zeros(0, dtype), byte_offsets=offsets)


def _flat(values: Array) -> Array:
    return np.ascontiguousarray(values).reshape(-1)


def _check_masks(batch: Mapping[str, Any], present: Mapping[str, Array]) -> None:
    """Refuse a mask of no column: its name is misspelt, and rows would be taken for present."""
    stray = sorted(set(present) - set(batch))
    if stray:
        raise EncodeError(
            f"present['{stray[0]}'] belongs to no column; there are {sorted(batch)}",
            feature=stray[0],
        )


def _there(rows: list[Any]) -> Array | None:
    """Return which rows are not absent, None where all are there."""
    there = np.array([not is_missing(row) for row in rows], np.bool_)
    return None if there.all() else there


def _mask(name: str, mask: Any, nulls: Array | None, rows: int) -> Array | None:
    """Return a mask as uint8, None where all rows are present."""
    array = np.ones(rows, np.bool_) if mask is None else np.array(mask, np.bool_)
    if array.shape != (rows,):
        raise EncodeError(f"present['{name}'] has shape {array.shape}, not ({rows},)", feature=name)
    if nulls is not None:
        array &= nulls
    return None if array.all() else array.view(np.uint8)


def _must_be_there(name: str, feature: Feature | None, mask: Array) -> bool:
    """Return whether absent rows become empty lists; refuse those that cannot."""
    if feature is None or not feature.required or feature.default is not None:
        return False
    if feature.count != -1 or feature.codec is not None:
        raise MissingFeatureError(
            f"feature '{name}' is required by the schema and absent in row {int(mask.argmin())} "
            "of the batch; give it, or mark it optional (required=False)",
            feature=name,
        )
    return True


def _emptied(column: Any, mask: Array) -> Any:
    """Return a column with an empty list in each absent row."""
    there = mask.view(np.bool_)
    lengths = column.lengths * there if isinstance(column, Ragged) else there
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    kept = _chosen(column, there)
    return Ragged(kept.values if isinstance(column, Ragged) else kept, offsets)


def _chosen(column: Any, which: Array) -> Any:
    """Return the rows of a column where ``which`` is True."""
    if isinstance(column, BytesColumn):
        return BytesColumn.of(
            value for value, here in zip(column.tolist(), which.tolist(), strict=True) if here
        )
    if not isinstance(column, Ragged):
        return column[which]
    inner = column.values[int(column.offsets[0]) : int(column.offsets[-1])]
    lengths = column.lengths
    offsets = np.concatenate([[0], np.cumsum(lengths[which], dtype=np.int64)])
    return Ragged(_chosen(inner, np.repeat(which, lengths)), offsets)

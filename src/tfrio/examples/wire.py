"""Columns as the native encoder takes them, and the encoders themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tfrio import _core
from tfrio.errors import EncodeError
from tfrio.examples.columns import Array, BytesColumn
from tfrio.examples.layout import KIND_NUMBERS, PLACE_NUMBERS, wire_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfrio.examples.exact import Stored
    from tfrio.examples.schema import Kind, Place

__all__ = [
    "Encoders",
    "Target",
    "WireColumn",
    "check_values",
    "kindless",
    "list_wire",
    "one_value",
    "pieces",
    "steps_of",
]

# protobuf's own limit: readers refuse a message of 2 GiB or more.
_LARGEST: Final = (1 << 31) - 1
_FRAME: Final = 16
_PIECE: Final = 4 << 20


class Target(NamedTuple):
    """One feature to write: its name in the file, kind and place."""

    name: str
    kind: Kind
    place: Place = "context"


class WireColumn(NamedTuple):
    """One column for the native encoder (see ``tfrio._core.ExampleEncoder``).

    Attributes:
        values: float32, int64 or uint8 array, flat.
        byte_offsets: For bytes: where each value begins and ends in ``values``.
        value_offsets: Where each list (row, or step) begins and ends; None with ``each``.
        step_offsets: For feature lists: where the steps of each row begin and end.
        present: uint8 array (rows,), 0 leaves the feature out; None for all ones.
        each: Values of each row (or step) where that is fixed, else -1.
        step_present: uint8 array (steps,), 0 for a step that carries no kind; None for all ones.
    """

    values: Array
    byte_offsets: Array | None = None
    value_offsets: Array | None = None
    step_offsets: Array | None = None
    present: Array | None = None
    each: int = -1
    step_present: Array | None = None


class Encoders:
    """Native encoders by the features they write.

    Args:
        sort: Write features in the order of their names, so that equal records have equal bytes.
    """

    def __init__(self, *, sort: bool = True) -> None:
        self._sort = sort
        self._made: dict[tuple[bool, tuple[Target, ...]], Any] = {}

    def encode(
        self, rows: int, columns: Mapping[Target, WireColumn], *, sequence: bool
    ) -> tuple[Any, Array]:
        """Encode records.

        Args:
            rows: Number of records.
            columns: What to write; every column has that many rows.
            sequence: Write SequenceExamples.

        Returns:
            The framed records as a uint8 array, and the end offset of each.

        Raises:
            EncodeError: A record would be 2 GiB or more; its ``record`` counts from the first row.
        """
        targets = tuple(columns)
        encoder = self._made.get((sequence, targets))
        if encoder is None:
            if len(self._made) > 256:  # rows of ever changing features; keep no more than these
                self._made.clear()
            encoder = _core.ExampleEncoder(
                [
                    (wire_name(t.name), KIND_NUMBERS[t.kind], PLACE_NUMBERS[t.place])
                    for t in targets
                ],
                sequence=sequence,
                sort=self._sort,
            )
            self._made[sequence, targets] = encoder
        check_values(rows, columns)
        encoded = encoder.encode(
            rows,
            [_native(column) for column in columns.values()],
            step_present=[
                (i, column.step_present)
                for i, column in enumerate(columns.values())
                if column.step_present is not None
            ],
        )
        data, ends = encoded.data, encoded.ends
        if data.nbytes > _LARGEST:
            _check_sizes(np.diff(ends, prepend=0) - _FRAME)
        return data, ends


def pieces(
    rows: int, columns: Mapping[Target, WireColumn]
) -> Iterator[tuple[int, dict[Target, WireColumn]]]:
    """Cut a batch into pieces of a few MiB, so that encoding it reuses one piece of memory.

    Args:
        rows: Number of records.
        columns: Their columns.

    Yields:
        Rows and columns of each piece, views of the whole.
    """
    size = sum(column.values.nbytes for column in columns.values())
    step = max(1, int(rows * _PIECE / max(size, 1)))
    for begin in range(0, rows, step):
        end = min(begin + step, rows)
        yield end - begin, {t: _rows_of(c, begin, end) for t, c in columns.items()}


def _rows_of(column: WireColumn, begin: int, end: int) -> WireColumn:
    """Return some rows of a column: offsets are cut, the values they point into stay whole."""
    if column.present is not None:
        column = column._replace(present=column.present[begin:end])
    if column.step_offsets is not None:
        steps = column.step_offsets[begin : end + 1]
        column = column._replace(step_offsets=steps - steps[0])
        begin, end = int(steps[0]), int(steps[-1])
        if column.step_present is not None:
            column = column._replace(step_present=column.step_present[begin:end])
    if column.value_offsets is not None:
        return column._replace(value_offsets=column.value_offsets[begin : end + 1])
    first, last = begin * column.each, end * column.each
    if column.byte_offsets is not None:
        return column._replace(byte_offsets=column.byte_offsets[first : last + 1])
    return column._replace(values=column.values[first:last])


def one_value(stored: Stored) -> WireColumn:
    """Return one record's feature as a column of one row."""
    if stored.kind != "bytes":
        return WireColumn(stored.flat, each=len(stored.flat))
    column = BytesColumn.of(stored.flat)
    return WireColumn(column.data, column.offsets, each=len(column))


def list_wire(steps: Sequence[Stored | None], counts: Sequence[int], none: Stored) -> WireColumn:
    """Return rows of a feature list as a column.

    Args:
        steps: Those of all rows, at least one; None for a step that carries no kind.
        counts: Number of steps of each row.
        none: No value of its kind.
    """
    values, offsets = _flat([step or none for step in steps])
    bounds = steps_of([len(step.flat) if step else 0 for step in steps])
    carry = None
    if any(step is None for step in steps):
        carry = np.array([step is not None for step in steps], np.uint8)
    return WireColumn(
        values,
        offsets,
        bounds,
        steps_of(counts),
        step_present=carry,
    )


def kindless(steps: Sequence[int]) -> WireColumn:
    """Return rows of so many steps without a kind, and so without values."""
    bounds = steps_of(steps)
    none = np.zeros(int(bounds[-1]) + 1, np.int64)
    return WireColumn(np.zeros(0, np.uint8), value_offsets=none, step_offsets=bounds)


def steps_of(lengths: Sequence[int] | Array) -> Array:
    """Return offsets of rows that have these numbers of steps (or values)."""
    bounds = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    return bounds


def _native(
    column: WireColumn,
) -> tuple[Array, Array | None, Array | None, Array | None, Array | None, int]:
    values, byte_offsets, value_offsets, step_offsets, present, each, _ = column
    return values, byte_offsets, value_offsets, step_offsets, present, each


def _flat(parts: Sequence[Stored]) -> tuple[Array, Array | None]:
    """Return the values of some lists, at least one, in a row, and byte offsets."""
    if any(part.kind == "bytes" for part in parts):
        column = BytesColumn.of([v for part in parts for v in part.flat])
        return column.data, column.offsets
    return np.concatenate([part.flat for part in parts]), None


def check_values(rows: int, columns: Mapping[Target, WireColumn]) -> None:
    """Refuse records before the work where their values alone are too large.

    Args:
        rows: Number of records.
        columns: Their columns.

    Raises:
        EncodeError: A record would be 2 GiB or more; its ``record`` counts from the first row.
    """
    if sum(column.values.nbytes for column in columns.values()) > _LARGEST:
        _check_sizes(sum(_least_sizes(t, c, rows) for t, c in columns.items()))


def _least_sizes(target: Target, column: WireColumn, rows: int) -> Any:
    """Return how many bytes the values of each row take at least, int64 (rows,)."""
    bounds = column.step_offsets
    if bounds is None:
        bounds = np.arange(rows + 1, dtype=np.int64)
    values = column.value_offsets
    ends: Array = bounds * column.each if values is None else values[bounds]
    if column.byte_offsets is not None:
        sizes = np.diff(column.byte_offsets[ends])
    else:  # a varint may take one byte of eight
        sizes = np.diff(ends) * (1 if target.kind == "int64" else 4)
    return sizes if column.present is None else sizes * column.present.astype(np.bool_)


def _check_sizes(sizes: Array) -> None:
    """Refuse records of 2 GiB or more."""
    row = int(sizes.argmax())
    if sizes[row] > _LARGEST:
        raise EncodeError(
            f"a record of {sizes[row]} bytes: tf.train.Example must stay under 2 GiB (protobuf "
            "readers refuse more); split it over several records",
            record=row,
        )

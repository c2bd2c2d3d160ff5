"""Decoded chunks to what a user gets: batches as dicts of columns, or rows as dicts of values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise, repeat
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tfrio.examples.columns import Batch, BytesColumn, Ragged

if TYPE_CHECKING:
    from tfrio.datasets.reader import Chunk
    from tfrio.examples.columns import Array
    from tfrio.examples.schema import Schema

__all__ = ["Items", "Maker", "RaggedForm"]

RaggedForm: TypeAlias = Literal["padded", "nested", "lists"]

# Each item with the records of the plan it stands for; None where all of them were skipped.
Items: TypeAlias = Iterable[tuple[Any, int]]


class Maker:
    """Make NumPy batches and rows.

    Args:
        schema: The features read; optional ones without default get an entry ``NAME/present``.
        ragged: How lists of free length come.
        marks: Whether batches say which records are repeated, in the entry ``padding``.
        columns: Whether bytes stay columns in a batch, as they do on their way to a process
            that makes lists of them.
    """

    def __init__(
        self, schema: Schema, *, ragged: RaggedForm, marks: bool, columns: bool = False
    ) -> None:
        self._bytes_stay = columns
        self._optional = [
            name for name, f in schema.items() if not f.required and f.default is None
        ]
        self._ragged = ragged
        self._marks = marks

    # What a tensor library does otherwise.

    def array(self, values: Array) -> Any:
        """Return an array as the library's own."""
        return values

    def cuts(self, values: Any, sizes: Sequence[int]) -> Sequence[Any]:
        """Cut an array into runs of rows."""
        return [values[a:b] for a, b in pairwise(accumulate(sizes, initial=0))]

    def singles(self, values: Any) -> Sequence[Any]:
        """Return the rows of an array."""
        return list(values)

    def nested(self, column: Ragged) -> Any:
        """Return lists of numbers of differing length as one value."""
        return column

    def container(self, entries: dict[str, Any], rows: int) -> Any:
        """Return a batch."""
        marks = {name: entries[f"{name}/present"] for name in self._optional}
        return Batch(entries, present=marks, rows=rows)

    # The same for all.

    def batches(self, chunk: Chunk) -> Items:
        """Cut a chunk into its batches."""
        columns = self._columns(chunk)
        special = [name for name, column in columns.items() if _is_special(column)]
        made = self._made(chunk, columns, special)
        # What needs the GIL is left to whoever takes the batches, views of columns as well as
        # lists of bytes: on the thread that reads ahead it would only be in the way.
        if not special:
            return made
        return list(made) if self._bytes_stay else map(_listed, list(made))

    def _made(self, chunk: Chunk, columns: dict[str, Any], special: Sequence[str]) -> Items:
        """Yield the batches of a chunk; bytes are columns still."""
        cuts = [self._cut(column, chunk.rows) for column in columns.values()]
        parts_of_batches = zip(*cuts, strict=True) if cuts else repeat((), len(chunk.rows))
        for rows, records, parts in zip(chunk.rows, chunk.consumed, parts_of_batches, strict=True):
            entries = dict(zip(columns, parts, strict=True))
            if special:
                entries = self._finished(entries, special)
            yield self.container(entries, rows) if rows else None, records

    def _finished(self, entries: dict[str, Any], special: Sequence[str]) -> dict[str, Any]:
        """Return a batch's entries with lists, bytes and arrays of differing shape made usable."""
        finished: dict[str, Any] = {}
        for name, part in entries.items():
            if name in special:
                self._add(finished, name, part)
            else:
                finished[name] = part
        return finished

    def rows(self, chunk: Chunk) -> Items:
        """Cut a chunk into rows; an optional feature that is absent is None."""
        columns = {name: self._singles(col) for name, col in self._columns(chunk).items()}
        for name in self._optional:
            mask = chunk.batch.present[name].tolist()
            del columns[f"{name}/present"]
            columns[name] = [
                v if there else None for v, there in zip(columns[name], mask, strict=True)
            ]
        values = zip(*columns.values(), strict=True) if columns else repeat((), chunk.batch.rows)
        rows = [dict(zip(columns, row, strict=True)) for row in values]
        made: list[tuple[Any, int]] = []
        at = 0
        for size, records in zip(chunk.rows, chunk.consumed, strict=True):
            made += [(row, 1) for row in rows[at : at + size]]
            if records > size:
                made.append((None, records - size))
            at += size
        return made

    def _columns(self, chunk: Chunk) -> dict[str, Any]:
        """Return every column of a chunk by name, marks included."""
        columns: dict[str, Any] = dict(chunk.batch)
        for name in self._optional:
            columns[f"{name}/present"] = chunk.batch.present[name]
        if self._marks:
            none = np.zeros(chunk.batch.rows, np.bool_)
            columns["padding"] = none if chunk.padding is None else chunk.padding
        return {
            name: self.array(column) if isinstance(column, np.ndarray) else column
            for name, column in columns.items()
        }

    def _cut(self, column: Any, sizes: Sequence[int]) -> Sequence[Any]:
        if _is_special(column):
            return [column[a:b] for a, b in pairwise(accumulate(sizes, initial=0))]
        return self.cuts(column, sizes)

    def _singles(self, column: Any) -> Sequence[Any]:
        if isinstance(column, BytesColumn):
            return _bytes_list(column)
        if isinstance(column, Ragged):
            return [self._value(column[i]) for i in range(len(column))]
        if isinstance(column, list):
            return [self._value(value) for value in column]
        return self.singles(column)

    def _value(self, value: Any) -> Any:
        """Return one row's value of a column that is no plain array."""
        if isinstance(value, np.ndarray):
            return self.array(value)
        if isinstance(value, Ragged):
            return [self._value(value[i]) for i in range(len(value))]
        if isinstance(value, list):
            return [self._value(inner) for inner in value]
        return value.tolist() if isinstance(value, BytesColumn) else value

    def _add(self, entries: dict[str, Any], name: str, part: Any) -> None:
        """Add a column of lists, bytes or arrays of differing shape to a batch."""
        if isinstance(part, BytesColumn):
            entries[name] = part
        elif isinstance(part, list):
            # Other batches of the chunk may have had other shapes.
            alike = len({getattr(value, "shape", None) for value in part}) == 1
            whole = alike and isinstance(part[0], np.ndarray)
            stacked = np.stack(part) if whole else None
            entries[name] = self._value(part if stacked is None else stacked)
        elif self._ragged == "lists" or not _numbers(part):
            entries[name] = [self._value(part[i]) for i in range(len(part))]
        elif self._ragged == "nested" and isinstance(part.values, np.ndarray):
            entries[name] = self.nested(part)
        else:
            self._add_padded(entries, name, part)

    def _add_padded(self, entries: dict[str, Any], name: str, part: Ragged) -> None:
        if isinstance(part.values, Ragged):
            steps = part.values[int(part.offsets[0]) : int(part.offsets[-1])]
            inner = Ragged(steps.padded(), part.offsets - part.offsets[0])
            inner_lengths = Ragged(steps.lengths, inner.offsets)
            entries[f"{name}/step_lengths"] = self.array(inner_lengths.padded())
            part = inner
        entries[name] = self.array(part.padded())
        entries[f"{name}/lengths"] = self.array(part.lengths)


def _listed(item: tuple[Any, int]) -> tuple[Any, int]:
    """Return a batch with its columns of bytes as lists."""
    batch, _ = item
    for name, value in (batch or {}).items():
        if isinstance(value, BytesColumn):
            batch[name] = _bytes_list(value)
    return item


def _bytes_list(column: BytesColumn) -> list[bytes]:
    """Return values as bytes: long ones copied once each, short ones through one common copy."""
    if column.nbytes < 4096 * len(column):
        return column.tolist()
    return [bytes(view) for view in column.views()]


def _is_special(column: Any) -> bool:
    return isinstance(column, Ragged | BytesColumn | list)


def _numbers(column: Ragged) -> bool:
    values = column.values
    return isinstance(values, np.ndarray) or (isinstance(values, Ragged) and _numbers(values))

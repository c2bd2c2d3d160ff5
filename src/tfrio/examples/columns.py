"""Columns of a batch: fixed arrays, ragged lists, bytes, and the mask of what is present."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias, Union, overload

import numpy as np
import numpy.typing as npt

from tfrio.errors import UsageError, many

__all__ = [
    "Array",
    "Batch",
    "BytesColumn",
    "Column",
    "NoBytes",
    "NoSteps",
    "Ragged",
    "as_objects",
]

Array: TypeAlias = npt.NDArray[Any]
Column: TypeAlias = Union[Array, "BytesColumn", "Ragged", "list[Any]"]

# Bytes a value on the mean from which a view of each is quicker than a copy of all to cut: at 2 KB
# 279 against 217 ns a value, at 8 KB 442 against 529.
_LONG = 4096


class BytesColumn(Sequence[bytes]):
    """Many byte strings in one buffer: value i is ``data[offsets[i]:offsets[i + 1]]``.

    Values keep every byte, trailing NULs too. Two columns are equal where all values are.

    Args:
        data: uint8 array, all values one after another.
        offsets: int64 array of n + 1 positions in ``data``, ascending.
    """

    __slots__ = ("data", "offsets")

    def __init__(self, data: Array, offsets: Array) -> None:
        self.data = data
        self.offsets = offsets

    @classmethod
    def of(cls, values: Iterable[bytes]) -> BytesColumn:
        """Join byte strings into one column.

        Args:
            values: The byte strings.

        Returns:
            A column of as many values.
        """
        parts = list(values)
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=offsets[1:])
        return cls(np.frombuffer(b"".join(parts), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> BytesColumn: ...
    def __getitem__(self, index: int | slice) -> bytes | BytesColumn:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return BytesColumn(self.data, self.offsets[start : max(start, stop) + 1])
            return BytesColumn.of([self[i] for i in range(start, stop, step)])
        i = _checked(index, len(self))
        return self.data[self.offsets[i] : self.offsets[i + 1]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, bytes | str):
            return NotImplemented
        return self.tolist() == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"BytesColumn({len(self)} values, {self.nbytes} bytes)"

    @property
    def nbytes(self) -> int:
        """Return the number of bytes of all values together."""
        return int(self.offsets[-1] - self.offsets[0])

    def tolist(self) -> list[bytes]:
        """Return the values as a list of ``bytes``."""
        if self.nbytes >= _LONG * len(self):
            return list(map(bytes, self.views()))
        first = int(self.offsets[0])
        whole = self.data[first : int(self.offsets[-1])].tobytes()
        bounds = (self.offsets - first).tolist()
        return [whole[a:b] for a, b in pairwise(bounds)]

    def views(self) -> list[memoryview]:
        """Return the values as views into the buffer, nothing copied."""
        whole = self.data.data
        bounds = self.offsets.tolist()
        return [whole[a:b] for a, b in pairwise(bounds)]

    def decode(self) -> list[str]:
        """Return the values as text.

        Returns:
            One string a value.

        Raises:
            UnicodeDecodeError: A value is not UTF-8.
        """
        return [str(value, "utf-8") for value in self.tolist()]


class Ragged(Sequence[Any]):
    """Lists of differing length: list i is ``values[offsets[i]:offsets[i + 1]]``.

    ``values`` may be an array whose first axis is cut into lists, a ``BytesColumn``, again a
    ``Ragged`` (feature lists: rows of steps of values), or a Python list: text, or empty where no
    record has a kind.

    Args:
        values: All lists one after another.
        offsets: int64 array of n + 1 positions in ``values``, ascending.
    """

    __slots__ = ("offsets", "values")

    def __init__(self, values: Column, offsets: Array) -> None:
        self.values = values
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> Column: ...
    @overload
    def __getitem__(self, index: slice) -> Ragged: ...
    def __getitem__(self, index: int | slice) -> Column | Ragged:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise UsageError("a ragged column is sliced with step 1 only")
            return Ragged(self.values, self.offsets[start : max(start, stop) + 1])
        i = _checked(index, len(self))
        return self.values[int(self.offsets[i]) : int(self.offsets[i + 1])]

    def __repr__(self) -> str:
        told = "" if self.dtype is None else f", {self.dtype}"
        return f"Ragged({len(self)} lists, {int(self.offsets[-1] - self.offsets[0])} values{told})"

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """Return the type of the innermost numbers, None for bytes and text."""
        dtype: np.dtype[Any] | None = getattr(self.values, "dtype", None)
        return None if dtype is None or dtype.kind == "O" else dtype

    @property
    def lengths(self) -> Array:
        """Return the length of each list, int64 array (n,)."""
        return np.diff(self.offsets)

    def tolist(self) -> list[Any]:
        """Return nested Python lists."""
        inner = self.values if isinstance(self.values, list) else self.values.tolist()
        bounds = self.offsets.tolist()
        return [inner[a:b] for a, b in pairwise(bounds)]

    def padded(self, fill: float = 0, *, length: int | None = None) -> Array:
        """Return one array, short lists filled up at the end.

        Args:
            fill: Value behind the end of each list.
            length: Length of the padded axis; None takes the longest list.

        Returns:
            Array (n, length, ...) of the values' type. The true lengths are ``lengths``.

        Raises:
            UsageError: The values are not numbers, or a list is longer than ``length``.
        """
        if not isinstance(self.values, np.ndarray):
            raise UsageError("only lists of numbers can be padded; pad inner lists first")
        lengths = self.lengths
        longest = int(lengths.max(initial=0))
        width = longest if length is None else length
        if longest > width:
            where = int(lengths.argmax())
            raise UsageError(f"list {where} has {longest} values, more than length={width}")
        out = np.full((len(self), width, *self.values.shape[1:]), fill, self.values.dtype)
        out[np.arange(width) < lengths[:, None]] = self.values[self.offsets[0] : self.offsets[-1]]
        return out


class NoBytes(list[Any]):
    """A feature of byte strings that has none, in a row: an empty list that tells its kind.

    Copied to a writer, it is such a feature again; other empty lists leave that open.
    """

    __slots__ = ()


class NoSteps(list[Any]):
    """A feature list without steps, in a row: an empty list that tells its place."""

    __slots__ = ()


class Batch(dict[str, Any]):
    """The columns of some records, by feature name.

    Numbers of fixed shape are arrays (rows, ...), bytes are ``BytesColumn``, lists of free length
    are ``Ragged``; arrays whose shape differs from record to record in more than the first axis are
    plain lists of arrays. Byte strings and text with two axes or more come in the same forms as
    numbers, as NumPy arrays of objects. Of any column, ``column[i]`` is the value of row i, in its
    own shape.

    ``len(batch)`` is the number of columns, as of any dict; ``batch.rows`` that of records.

    Args:
        columns: Column by feature name.
        present: bool array (rows,) by feature name; False where the feature is absent.
        rows: Number of records.
        lists: Names of the columns that are feature lists of SequenceExamples.
        step_present: bool array (steps,) by feature list, only of those that have steps without a
            kind: False at these, which the column shows as empty.
    """

    def __init__(
        self,
        columns: dict[str, Any],
        *,
        present: dict[str, Array],
        rows: int,
        lists: frozenset[str] = frozenset(),
        step_present: dict[str, Array] | None = None,
    ) -> None:
        super().__init__(columns)
        self.present = present
        self.rows = rows
        self.lists = lists
        self.step_present = step_present or {}

    def __reduce__(self) -> tuple[Any, ...]:
        more = self.lists, self.step_present
        return _rebuild_batch, (dict(self), self.present, self.rows, *more)

    def __repr__(self) -> str:
        lines = [f"  {name}: {_brief(column)}" for name, column in self.items()]
        records = f"{self.rows} {many(self.rows, 'record')}"
        head = f"Batch of {records}, {len(self)} {many(len(self), 'column')}"
        return "\n".join([head, *lines])


def _rebuild_batch(
    columns: dict[str, Any],
    present: dict[str, Array],
    rows: int,
    lists: frozenset[str] = frozenset(),
    step_present: dict[str, Array] | None = None,
) -> Batch:
    return Batch(columns, present=present, rows=rows, lists=lists, step_present=step_present)


def as_objects(values: Iterable[Any]) -> Array:
    """Return byte strings or text as a NumPy array of objects with one axis.

    NumPy's own types of fixed width cut trailing NULs, so they are used nowhere.
    """
    items = list(values)
    array = np.empty(len(items), object)
    array[:] = items
    return array


def _brief(column: object) -> str:
    if isinstance(column, np.ndarray):
        return f"{column.dtype} {column.shape}"
    if isinstance(column, list):
        return f"list of {len(column)}"
    return repr(column)


def _checked(index: int, size: int) -> int:
    if not -size <= index < size:
        raise IndexError(f"index {index} of {size}")
    return index % size if size else index

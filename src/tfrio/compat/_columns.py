"""Turn native columns into one Python value per row."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tfrio.examples.columns import BytesColumn

if TYPE_CHECKING:
    from tfrio import _core

__all__ = ["column_rows", "object_array"]

_Offsets: TypeAlias = npt.NDArray[np.int64]


def object_array(values: list[bytes]) -> npt.NDArray[np.object_]:
    """Return byte strings as an array that keeps every byte of each.

    Args:
        values: The byte strings.

    Returns:
        Array (len(values),) of objects: NumPy's own byte strings lose NULs at the end and pad
        all values to the longest.
    """
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _even(offsets: _Offsets) -> int:
    """Return the length that all lists share, -1 where they differ."""
    rows, total = len(offsets) - 1, int(offsets[-1])
    length, rest = divmod(total, rows)
    if rows == 1:
        return length
    if rest or not np.array_equal(offsets, np.arange(rows + 1) * length):
        return -1
    return length


def _number_lists(values: npt.NDArray[Any], offsets: _Offsets) -> list[Any]:
    """Return one array per list."""
    length = _even(offsets)
    if length >= 0:
        return list(values.reshape(len(offsets) - 1, length))
    return [values[a:b] for a, b in pairwise(offsets.tolist())]


def _bytes_lists(items: list[bytes], offsets: _Offsets) -> list[Any]:
    """Return one value per list: ``bytes`` for a list of one, else an array of objects."""
    if _even(offsets) == 1:
        return items
    return [
        items[a] if b - a == 1 else object_array(items[a:b]) for a, b in pairwise(offsets.tolist())
    ]


def column_rows(column: _core.Column, rows: int) -> list[Any]:
    """Return the value of each row of a ragged column.

    Args:
        column: Numbers or bytes, of an Example's feature or of a feature list.
        rows: How many rows there are.

    Returns:
        An array of numbers, ``bytes`` or an array of byte strings for a feature; a list of those,
        one per step, for a feature list. Arrays are writable, and no two overlap.
    """
    offsets, steps = column.value_offsets, column.step_offsets
    if not rows or offsets is None:
        return []
    if not len(offsets) - 1:  # no step in any row
        return [[] for _ in range(rows)]
    if column.byte_offsets is None:
        lists = _number_lists(column.values, offsets)
    else:
        lists = _bytes_lists(BytesColumn(column.values, column.byte_offsets).tolist(), offsets)
    if steps is None:
        return lists
    return [lists[a:b] for a, b in pairwise(steps.tolist())]

"""Where the columns of a chunk go in one piece of memory, so that it can be sent as it is. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfrio.examples.columns import Array
    from tfrio.examples.layout import Layout

__all__ = ["Outputs"]

_ALIGN = 64
_BYTES = 1
_DTYPES: dict[int, np.dtype[Any]] = {2: np.dtype(np.float32), 3: np.dtype(np.int64)}
_SPARE = 1.25  # the records of a chunk may be longer than the mean
_MOST_SPARE = 4.0  # where they are so uneven, most of the memory would lie idle


class Outputs:
    """Lay columns out: numbers of fixed shape one after another, then one column of bytes.

    Args:
        layout: The slots of the decoder. Only features that are given out as they are stored get
            a place, of those of bytes only the first.
        mean_size: Mean bytes of a record, which bounds its bytes.
    """

    def __init__(self, layout: Layout, mean_size: int) -> None:
        self._mean_size = mean_size
        self._spare = _SPARE
        self._numbers: dict[int, tuple[np.dtype[Any], int]] = {}
        self._bytes: int | None = None
        for _, _, slot, shape in layout.outputs:
            if shape is None:
                continue
            kind, count = layout.slots[slot].kind, layout.slots[slot].values
            if kind != _BYTES and count > 0:
                self._numbers[slot] = (_DTYPES[kind], count)
            elif kind == _BYTES and self._bytes is None:
                self._bytes = slot

    def size(self, rows: int) -> int:
        """Return the bytes that so many rows take, and some to spare where there are strings."""
        if self._spare > _MOST_SPARE:
            return 0
        fixed = sum(_aligned(rows * count * d.itemsize) for d, count in self._numbers.values())
        return fixed + (0 if self._bytes is None else int(rows * self._mean_size * self._spare))

    def cut(self, memory: NDArray[np.uint8], rows: int) -> dict[int, Array]:
        """Return the array of each slot in ``memory``, which has ``size(rows)`` bytes or more."""
        arrays: dict[int, Array] = {}
        start = 0
        for slot, (dtype, count) in self._numbers.items():
            stop = start + rows * count * dtype.itemsize
            arrays[slot] = memory[start:stop].view(dtype)
            start = _aligned(stop)
        if self._bytes is not None:
            arrays[self._bytes] = memory[start:]
        return arrays

    def overflowed(self) -> None:
        """Ask for more the next time: the strings did not fit."""
        self._spare *= 1.5


def _aligned(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN

"""Where each patch of an export lies in the raster, and which pixels are taken from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from tfrio.geo.grid import Axis, PatchGrid, Window

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfrio.types import XY

__all__ = ["GridPlaces", "Places", "PointPlaces", "kept_spans"]


class Places(Protocol):
    """Where each patch lies in the raster."""

    @property
    def total(self) -> int:
        """Return the number of patches."""
        ...

    @property
    def overlapping(self) -> bool:
        """Tell whether patches may share pixels."""
        ...

    def window(self, index: int) -> Window:
        """Return the pixels of a patch, without margin."""
        ...

    def kept(self, index: int) -> Window:
        """Return the pixels to take from this patch, so that none is taken twice."""
        ...

    def touching(self, window: Window) -> Iterable[int]:
        """Return the patches that may have pixels in a window."""
        ...


@dataclass(frozen=True)
class GridPlaces:
    """Patches of a grid; where they overlap, each pixel goes to the patch it is deeper inside.

    Args:
        grid: The grid.
    """

    grid: PatchGrid

    @property
    def total(self) -> int:
        """Return the number of patches."""
        return self.grid.total

    @property
    def overlapping(self) -> bool:
        """Tell whether patches share pixels."""
        return any(
            axis.start(index + 1) < axis.start(index) + axis.patch
            for axis in (self.grid.across, self.grid.down)
            for index in range(axis.count - 1)
        )

    @cached_property
    def _spans(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        return kept_spans(self.grid.across), kept_spans(self.grid.down)

    def window(self, index: int) -> Window:
        """Return the pixels of a patch, without margin."""
        return self.grid.window(index)

    def kept(self, index: int) -> Window:
        """Return the pixels to take from this patch."""
        row, column = divmod(index, len(self._spans[0]))
        left, right = self._spans[0][column]
        top, bottom = self._spans[1][row]
        return Window(left, top, right - left, bottom - top)

    def touching(self, window: Window) -> Iterable[int]:
        """Return the patches that have pixels in a window."""
        across, down = self._spans
        columns = _meeting(across, window.column, window.right)
        rows = _meeting(down, window.row, window.bottom)
        return (row * len(across) + column for row in rows for column in columns)


def _meeting(spans: Sequence[tuple[int, int]], start: int, stop: int) -> list[int]:
    return [index for index, (first, last) in enumerate(spans) if first < stop and last > start]


def kept_spans(axis: Axis) -> list[tuple[int, int]]:
    """Return first and past-the-last pixel to take from each patch along one axis.

    An overlap is divided in the middle: predictions are worst at a patch's edge.
    """
    starts = [axis.start(index) for index in range(axis.count)]
    ends = [start + axis.patch for start in starts]
    firsts, lasts = starts.copy(), ends.copy()
    for index in range(1, axis.count):
        if starts[index] < ends[index - 1]:
            middle = (starts[index] + ends[index - 1]) // 2
            firsts[index] = lasts[index - 1] = middle
    return [
        (min(first, axis.length), min(last, axis.length))
        for first, last in zip(firsts, lasts, strict=True)
    ]


@dataclass(frozen=True)
class PointPlaces:
    """Patches taken at points: a later one covers an earlier one.

    Args:
        origins: Upper left pixel (column, row) of each patch.
        patch: Patch (x, y).
        size: Raster (x, y).
    """

    origins: Sequence[tuple[int, int]]
    patch: XY
    size: XY

    @property
    def total(self) -> int:
        """Return the number of patches."""
        return len(self.origins)

    @property
    def overlapping(self) -> bool:
        """Return True: points lie anywhere."""
        return True

    def window(self, index: int) -> Window:
        """Return the pixels of a patch, without margin."""
        return Window(*self.origins[index], self.patch.x, self.patch.y)

    def kept(self, index: int) -> Window:
        """Return the pixels of the patch inside the raster."""
        return self.window(index).clipped(self.size)

    def touching(self, window: Window) -> Iterable[int]:
        """Return every patch: points have no order."""
        return range(self.total)

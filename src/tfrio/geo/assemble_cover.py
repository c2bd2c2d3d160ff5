"""Where patches share pixels: which one gives the value, so that each pixel counts once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfrio.geo.grid import Window

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tfrio.geo.assemble_places import Places

__all__ = ["Cover", "common", "spare_patches"]


class Cover:
    """Windows in the order in which they are written: a later one covers an earlier one.

    Args:
        windows: The windows.
    """

    def __init__(self, windows: Iterable[Window]) -> None:
        self.windows = list(windows)
        self._width = max((window.width for window in self.windows), default=1) or 1
        self._height = max((window.height for window in self.windows), default=1) or 1
        self._cells: dict[tuple[int, int], list[int]] = {}
        for number, window in enumerate(self.windows):
            for cell in self._cells_of(window):
                self._cells.setdefault(cell, []).append(number)

    def _cells_of(self, window: Window) -> Iterable[tuple[int, int]]:
        """Return the squares of a coarse grid that a window touches."""
        if not window.pixels:
            return ()
        columns = range(window.column // self._width, (window.right - 1) // self._width + 1)
        rows = range(window.row // self._height, (window.bottom - 1) // self._height + 1)
        return ((column, row) for row in rows for column in columns)

    def meeting(self, window: Window) -> list[int]:
        """Return the numbers of the windows that share pixels with one, in order."""
        near = {n for cell in self._cells_of(window) for n in self._cells.get(cell, ())}
        return sorted(n for n in near if common(self.windows[n], window).pixels)

    def hidden(self, window: Window, number: int) -> NDArray[np.bool_] | None:
        """Return which pixels of a window those after a number cover, None where none does.

        Args:
            window: Pixels of the raster.
            number: Number of the window that is written there.

        Returns:
            Shape (height, width).
        """
        later = [other for other in self.meeting(window) if other > number]
        if not later:
            return None
        mask = np.zeros((window.height, window.width), np.bool_)
        for other in later:
            shared = common(self.windows[other], window)
            mask[shared.moved(-window.column, -window.row).slices] = True
        return mask


def common(one: Window, other: Window) -> Window:
    """Return the pixels that two windows share, an empty window where there are none."""
    left, top = max(one.column, other.column), max(one.row, other.row)
    right, bottom = min(one.right, other.right), min(one.bottom, other.bottom)
    return Window(left, top, max(right - left, 0), max(bottom - top, 0))


def spare_patches(places: Places, order: Sequence[int]) -> frozenset[int]:
    """Find the patches that give pixels which a patch that is missing would have given.

    Args:
        places: Where each patch lies.
        order: The patches that are there.

    Returns:
        Their indices; none where patches do not overlap or all are there.
    """
    if not places.overlapping or len(order) == places.total:
        return frozenset()
    cover = Cover(places.window(index) for index in order)
    absent = sorted(set(range(places.total)) - set(order))
    return frozenset(order[n] for index in absent for n in cover.meeting(places.kept(index)))

"""Merge overlapping patches row by row, in memory that depends on the width only.

Weighted sums run in float64 and are divided at the end, so a constant comes out as the same
float32 constant, up to the border, whatever the weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from tfrio.geo.grid import Window

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tfrio.types import XY

__all__ = ["Blend", "RowBlender", "patch_weights"]

Blend: TypeAlias = Literal["crop", "mean", "hann"]


def patch_weights(size: XY, blend: Blend) -> NDArray[np.float64]:
    """Return the weight of each pixel of a patch.

    Args:
        size: Patch (x, y), margins included.
        blend: ``"hann"`` weighs the middle most and no pixel zero; otherwise all are equal.

    Returns:
        Shape (height, width), all positive.
    """
    if blend != "hann":
        return np.ones((size.y, size.x))
    across, down = (np.sin(np.pi * (np.arange(n) + 0.5) / n) ** 2 for n in (size.x, size.y))
    return np.outer(down, across)


class RowBlender:
    """Sum weighted patches and give finished rows.

    Patches must come so that their first rows never decrease.

    Args:
        size: Raster (x, y) in pixels.
        bands: Bands per pixel.
        reach: Most rows a patch covers.
    """

    def __init__(self, size: XY, bands: int, reach: int) -> None:
        self._size = size
        self._top = 0
        self._sums = np.zeros((bands, reach, size.x))
        self._weights = np.zeros((bands, reach, size.x))
        self._blocked = np.zeros((bands, reach, size.x), np.bool_)

    def add(
        self, window: Window, values: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> None:
        """Add one patch.

        Args:
            window: Its pixels; parts outside the raster are ignored.
            values: Shape (bands, height, width); NaN adds nothing.
            weights: Shape (height, width).
        """
        inside = window.clipped(self._size)
        if not inside.pixels:
            return
        rows, columns = inside.moved(-window.column, -window.row).slices
        part = values[:, rows, columns]
        known = np.isfinite(part)
        weighed = np.where(known, weights[rows, columns], 0.0)
        to_rows, to_columns = inside.moved(0, -self._top).slices
        self._sums[:, to_rows, to_columns] += np.where(known, part, 0.0) * weighed
        self._weights[:, to_rows, to_columns] += weighed

    def block(self, window: Window, masked: NDArray[np.bool_]) -> None:
        """Note where pixels are nodata whatever their neighbours' margins say.

        Args:
            window: Pixels of a patch without its margins.
            masked: Shape (bands, height, width).
        """
        inside = window.clipped(self._size)
        rows, columns = inside.moved(-window.column, -window.row).slices
        to_rows, to_columns = inside.moved(0, -self._top).slices
        self._blocked[:, to_rows, to_columns] |= masked[:, rows, columns]

    def finish(self, row: int) -> Iterator[tuple[Window, NDArray[np.float64], NDArray[np.bool_]]]:
        """Give the rows above one that no later patch reaches.

        Args:
            row: First row that later patches may still cover.

        Yields:
            The window of the finished rows; their values (bands, rows, width), NaN where no patch
            gave a value; and where they are blocked, same shape.
        """
        row = min(row, self._size.y)
        while self._top < row:
            done = min(row - self._top, self._sums.shape[1])
            sums, weights = self._sums[:, :done], self._weights[:, :done]
            values = np.divide(sums, weights, out=np.full_like(sums, np.nan), where=weights > 0)
            yield Window(0, self._top, self._size.x, done), values, self._blocked[:, :done].copy()
            self._scroll(done)

    def _scroll(self, rows: int) -> None:
        for buffer in (self._sums, self._weights, self._blocked):
            kept = buffer.shape[1] - rows
            buffer[:, :kept] = buffer[:, rows:].copy()
            buffer[:, kept:] = 0
        self._top += rows

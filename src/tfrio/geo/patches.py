"""The patches an export writes: all of a grid, some of it, or patches at points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfrio.geo.grid import PatchGrid, Window

if TYPE_CHECKING:
    import numpy.typing as npt

    from tfrio.types import XY

__all__ = ["Patches", "grid_patches", "point_patches"]


@dataclass(frozen=True, slots=True)
class Patches:
    """Upper left pixels of the patches written, in order: a sequence of (column, row).

    Args:
        patch: Patch (x, y) without margin.
        size: Raster (x, y) in pixels.
        columns: First column of each patch, or of each column of the grid.
        rows: First row of each patch, or of each row of the grid.
        grid: The grid, None for patches at points.
        kept: Index of each patch written, None for all.
    """

    patch: XY
    size: XY
    columns: tuple[int, ...]
    rows: tuple[int, ...]
    grid: PatchGrid | None
    kept: npt.NDArray[np.int64] | None = None

    @property
    def total(self) -> int:
        """Return the number of patches, those left out included."""
        return len(self.columns) * len(self.rows) if self.grid else len(self.columns)

    def __len__(self) -> int:
        """Return the number of patches written."""
        return self.total if self.kept is None else len(self.kept)

    def index(self, position: int) -> int:
        """Return the index of the patch written at a position."""
        return position if self.kept is None else int(self.kept[position])

    def __getitem__(self, position: int) -> tuple[int, int]:
        """Return (column, row) of the upper left pixel of the patch written at a position."""
        index = self.index(position)
        if self.grid is None:
            return self.columns[index], self.rows[index]
        row, column = divmod(index, len(self.columns))
        return self.columns[column], self.rows[row]

    def counted(self, position: int) -> Window:
        """Return the pixels that count for this patch, so that none counts twice in a grid."""
        if self.grid is not None:
            return self.grid.owned(self.index(position))
        column, row = self[position]
        return Window(column, row, self.patch.x, self.patch.y).clipped(self.size)

    def keeping(self, indices: list[int]) -> Patches:
        """Return only the patches with these indices, in this order."""
        kept = np.asarray(indices, np.int64)
        return Patches(self.patch, self.size, self.columns, self.rows, self.grid, kept)


def grid_patches(grid: PatchGrid) -> Patches:
    """Return all patches of a grid."""
    across, down = grid.across, grid.down
    return Patches(
        grid.patch,
        grid.size,
        tuple(across.start(index) for index in range(across.count)),
        tuple(down.start(index) for index in range(down.count)),
        grid,
    )


def point_patches(origins: list[tuple[int, int]], patch: XY, size: XY) -> Patches:
    """Return patches with given upper left pixels (column, row)."""
    columns = tuple(column for column, _ in origins)
    return Patches(patch, size, columns, tuple(row for _, row in origins), None)

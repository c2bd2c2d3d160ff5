"""GEO-A and its predictions: the small raster that the import tests place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import rasterio

import tfrio
from tfrio.geo import Mixer
from tfrio.types import XY, Affine6

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

AFFINE = Affine6(30, 0, 500000, 0, -30, 4500000)
MIX_A = Mixer("EPSG:32618", AFFINE, XY(4, 3), 2, 4)
GEO_A = (100 * np.arange(7)[:, None] + np.arange(10)[None, :]).astype(np.int16)


def tile(index: int, kernel: XY = XY(1, 1), *, outside: int = -1) -> np.ndarray:
    """Return a patch of GEO-A, 4 x 3 without its margins."""
    row, column = divmod(index, 2)
    mx, my = kernel.x // 2, kernel.y // 2
    padded = np.pad(GEO_A, ((my, my), (mx, mx)), constant_values=outside)
    return padded[row * 3 : row * 3 + 3 + 2 * my, column * 4 : column * 4 + 4 + 2 * mx]


def write(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Write rows as TFRecord."""
    with tfrio.Writer(path) as writer:
        for row in rows:
            writer.write(row)
    return path


def predictions(folder: Path, indices: Sequence[int] = range(4), name: str = "pred") -> Path:
    """Write patches of GEO-A as int64 to one file."""
    return write(folder / f"{name}.tfrecord.gz", ({"b": tile(i).ravel()} for i in indices))


def read(path: Any) -> np.ndarray:
    """Return all bands of a raster."""
    with rasterio.open(path) as dataset:
        return dataset.read()

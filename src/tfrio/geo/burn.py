"""Draw geometries into windows of a grid."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tfrio.errors import require
from tfrio.geo.grid import shift_affine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrio.geo.grid import Window
    from tfrio.geo.source import Pixels
    from tfrio.types import Affine6

__all__ = ["burn"]

# rasterio silences a warning while it draws. Filters of warnings belong to the whole process, and
# two threads that set and restore them at once lose them.
_FILTERS = threading.Lock()


def burn(
    shapes: Sequence[tuple[Any, float]],
    affine: Affine6,
    window: Window,
    *,
    dtype: str,
    background: float = 0,
    all_touched: bool = False,
) -> Pixels:
    """Draw geometries into a window.

    Args:
        shapes: GeoJSON geometries and the value of each; later ones cover earlier ones.
        affine: Terms from pixel to map of the grid.
        window: Pixels wanted, of the grid.
        dtype: NumPy dtype of the result.
        background: Value where nothing is drawn.
        all_touched: Draw each pixel touched, not only those whose centre lies inside.

    Returns:
        Pixels (height, width).
    """
    features = require("rasterio.features", extra="geo")
    place = require("affine", extra="geo").Affine(*shift_affine(affine, window.column, window.row))
    with _FILTERS:
        pixels: Pixels = features.rasterize(
            shapes,
            out_shape=(window.height, window.width),
            fill=background,
            transform=place,
            all_touched=all_touched,
            dtype=dtype,
        )
    return pixels

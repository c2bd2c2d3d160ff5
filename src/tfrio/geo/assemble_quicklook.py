"""A small PNG of a raster: classes in their colours, three bands as colour, one band as grey."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio import storage
from tfrio.errors import require
from tfrio.types import mapping_like, path_text, whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tfrio.types import PathLike

__all__ = ["default_colors", "quicklook"]

# Share of pixels left out at each end when grey levels are stretched, so that a few extreme
# pixels do not make the rest flat.
_CLIP = 2.0


def quicklook(
    raster: PathLike,
    out: PathLike,
    *,
    size: int = 1024,
    classes: bool | None = None,
    colors: Mapping[int, tuple[int, int, int, int]] | None = None,
) -> str:
    """Draw a raster.

    Args:
        raster: The raster.
        out: PNG to write.
        size: Longest side in pixels.
        classes: Whether the first band holds classes; by default where it has few whole values.
        colors: (red, green, blue, alpha) by class; the raster's colour table, or colours far
            apart, by default.

    Returns:
        The path of the PNG. Pixels without data are transparent.
    """
    rasterio = require("rasterio", extra="geo")
    whole_number(size, "size")
    if colors is not None:
        mapping_like(colors, "colors", "{0: (26, 152, 80, 255)}")
    with rasterio.open(path_text(raster)) as dataset:
        scale = min(1.0, size / max(dataset.width, dataset.height))
        shape = (max(round(dataset.height * scale), 1), max(round(dataset.width * scale), 1))
        bands = list(range(1, min(dataset.count, 3) + 1))
        values = dataset.read(bands, out_shape=(len(bands), *shape))
        valid = (dataset.read_masks(bands, out_shape=(len(bands), *shape)) > 0).all(axis=0)
        table = colors or _color_table(dataset)
    if classes is None:
        few = values.dtype.kind in "iu" and len(np.unique(values[0][valid])) <= 64
        classes = bool(table) or few
    if classes:
        rgb = _in_colors(values[0], valid, table)
    else:
        rgb = _stretched(values if len(values) == 3 else values[:1], valid)
    _write_png(path_text(out), np.concatenate((rgb, 255 * valid[None].astype(np.uint8))))
    return path_text(out)


def _color_table(dataset: Any) -> dict[int, tuple[int, int, int, int]]:
    try:
        return dict(dataset.colormap(1))
    except ValueError:
        return {}


def default_colors(values: Any) -> dict[int, tuple[int, int, int, int]]:
    """Return colours far apart for some classes.

    Hues step by the golden ratio, which keeps any number of neighbours apart.

    Args:
        values: The classes.

    Returns:
        (red, green, blue, alpha) by class.
    """
    colors = {}
    for value in values:
        hue = (0.13 + 0.618034 * int(value)) % 1.0
        parts = np.clip(np.abs((hue * 6 + np.array([0, 4, 2])) % 6 - 3) - 1, 0, 1)
        red, green, blue = (70 + 170 * parts).astype(int).tolist()
        colors[int(value)] = (red, green, blue, 255)
    return colors


def _in_colors(
    values: NDArray[Any],
    valid: NDArray[np.bool_],
    table: Mapping[int, tuple[int, int, int, int]],
) -> NDArray[np.uint8]:
    present = np.unique(values[valid])
    colors = {**default_colors(present), **table}
    rgb = np.zeros((3, *values.shape), np.uint8)
    for value in present.tolist():
        rgb[:, valid & (values == value)] = np.array(colors[int(value)][:3])[:, None]
    return rgb


def _stretched(values: NDArray[Any], valid: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return three channels of grey levels, each band from its 2nd to its 98th percentile."""
    channels = []
    for band in values.astype(np.float64):
        known = valid & np.isfinite(band)
        if not known.any():
            channels.append(np.zeros(band.shape, np.uint8))
            continue
        low, high = np.percentile(band[known], (_CLIP, 100 - _CLIP))
        level = np.clip((np.nan_to_num(band) - low) / max(high - low, 1e-30), 0, 1)
        channels.append((255 * level).astype(np.uint8))
    return np.stack(channels * 3 if len(channels) == 1 else channels)


def _write_png(out: str, pixels: NDArray[np.uint8]) -> None:
    rasterio = require("rasterio", extra="geo")
    count, height, width = pixels.shape
    profile = {"driver": "PNG", "count": count, "height": height, "width": width, "dtype": "uint8"}
    with warnings.catch_warnings():
        # A picture has no georeference and needs none.
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.MemoryFile() as memory:
            with memory.open(**profile) as dataset:
                dataset.write(pixels)
            data = memory.read()
    with storage.atomic_write(Path(out) if "://" not in out else out) as file:
        file.write(data)

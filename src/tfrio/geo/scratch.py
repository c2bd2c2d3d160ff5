"""Copies on disk of what cannot be resampled while it is read: arrays, and rasters with GCPs."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import require
from tfrio.geo.grid import Window
from tfrio.geo.raster import RasterSource, open_dataset, open_raster, raster_environment
from tfrio.storage import Closing

if TYPE_CHECKING:
    from tfrio.geo.frame import Frame
    from tfrio.geo.source import Mask, Source
    from tfrio.types import XY

__all__ = ["Scratch"]

_ROWS = 256


class Scratch(Closing):
    """A folder of temporary rasters, made when first needed and removed when it is closed."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._folder: Path | None = None
        self._count = 0

    def close(self) -> None:
        """Remove the folder."""
        self._stack.close()

    def _next(self) -> Path:
        if self._folder is None:
            folder = tempfile.TemporaryDirectory(prefix="tfrio-")
            self._folder = Path(self._stack.enter_context(folder))
        self._count += 1
        return self._folder / f"{self._count}.tif"

    def copy(self, source: Source) -> RasterSource:
        """Write a source to a raster on its own grid, a strip at a time.

        Args:
            source: Any source.

        Returns:
            The raster, with the bands of the source.
        """
        path = self._next()
        planes = [band.depth or 1 for band in source.bands]
        dtype = np.result_type(*(_storable(np.dtype(band.dtype)) for band in source.bands))
        nodata = source.bands[0].nodata
        with raster_environment(), _create(path, source.frame, sum(planes), dtype, nodata) as out:
            reader = source.open()
            with contextlib.closing(reader):
                for row in range(0, source.frame.size.y, _ROWS):
                    height = min(_ROWS, source.frame.size.y - row)
                    window = Window(0, row, source.frame.size.x, height)
                    block = reader.read(window)
                    values = [v.reshape(-1, *v.shape[-2:]) for v in block.values]
                    place = ((row, row + height), (0, window.width))
                    out.write(np.concatenate(values).astype(dtype, copy=False), window=place)
                    if nodata is None:
                        out.write_mask(~_any_masked(block.masked, window), window=place)
        ends = np.cumsum(planes).tolist()
        numbers = [
            tuple(range(end - count + 1, end + 1)) for end, count in zip(ends, planes, strict=True)
        ]
        found = open_raster(path)
        return replace(
            found,
            numbers=tuple(numbers),
            bands=tuple(replace(band, maskable=True) for band in source.bands),
            frame=source.frame,
            content=source.stamp,
            title=source.name,
        )

    def rectify(
        self, source: RasterSource, frame: Frame, margin: XY, resampling: str
    ) -> RasterSource:
        """Resample a raster that control points place, by GDAL's polynomial through them.

        Args:
            source: The raster.
            frame: The grid wanted.
            margin: Pixels (x, y) needed around it.
            resampling: Name of the resampling.

        Returns:
            The raster on that grid.
        """
        warp = require("rasterio.warp", extra="geo")
        rasterio = require("rasterio", extra="geo")
        how = require("rasterio.enums", extra="geo").Resampling[resampling]
        path, extent = self._next(), frame.window.grown(margin)
        grown = frame.cropped(extent)
        numbers = [number for group in source.numbers for number in group]
        dtype, nodata = np.dtype(source.bands[0].dtype), source.bands[0].nodata
        with (
            raster_environment(),
            open_dataset(source.path) as data,
            _create(path, grown, len(numbers), dtype, nodata) as out,
        ):
            control, crs = data.gcps
            options: dict[str, Any] = {"gcps": control, "src_crs": source.source_crs or crs}
            for target, number in enumerate(numbers, 1):
                place = rasterio.band(out, target)
                warp.reproject(rasterio.band(data, number), place, resampling=how, **options)
            if nodata is None:
                mask = np.zeros((grown.size.y, grown.size.x), np.uint8)
                affine = out.transform
                warp.reproject(
                    data.dataset_mask(), mask, dst_transform=affine, dst_crs=out.crs, **options
                )
                out.write_mask(mask > 0)
        found = open_raster(path)
        last = 0
        groups = []
        for group in source.numbers:
            groups.append(tuple(range(last + 1, last + len(group) + 1)))
            last += len(group)
        return replace(
            found,
            numbers=tuple(groups),
            bands=source.bands,
            frame=frame,
            extent=extent,
            content=f"{source.stamp}|{resampling}",
            title=source.name,
        )


def _storable(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which GDAL keeps all values of another."""
    if dtype == np.bool_:
        return np.dtype(np.uint8)
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def _any_masked(masks: list[Mask | None], window: Window) -> Mask:
    hidden = np.zeros((window.height, window.width), np.bool_)
    for mask in masks:
        if mask is not None:
            hidden |= mask if mask.ndim == 2 else mask.all(axis=0)
    return hidden


def _create(path: Path, frame: Frame, count: int, dtype: Any, nodata: float | None) -> Any:
    rasterio = require("rasterio", extra="geo")
    affine = require("affine", extra="geo")
    return rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=frame.size.x,
        height=frame.size.y,
        count=count,
        dtype=dtype,
        crs=frame.crs,
        transform=affine.Affine(*frame.affine),
        nodata=nodata,
        tiled=True,
        bigtiff="IF_SAFER",
    )

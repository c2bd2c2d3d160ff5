"""Rasters on disk or behind URLs, through rasterio: GeoTIFF, COG, VRT, NetCDF and others."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio import storage
from tfrio.errors import GeoError, listed, require
from tfrio.geo.crs import crs_text
from tfrio.geo.frame import Frame
from tfrio.geo.raster_bands import alpha_band, band_of, has_mask_band, select_bands
from tfrio.geo.source import Band, Block, Mask, Pixels, nodata_mask
from tfrio.geo.stamps import file_stamp
from tfrio.types import XY, Affine6, path_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfrio.geo.grid import Window
    from tfrio.geo.raster_bands import BandSelection
    from tfrio.types import PathLike

__all__ = [
    "RasterSource",
    "open_dataset",
    "open_raster",
    "raster_environment",
]

# GDAL keeps decoded blocks for reuse; its own default of 5 % of the memory would break our
# promise of a small footprint. One row of 256-pixel tiles of a wide four-band raster fits.
_CACHE_BYTES = 96 << 20


@contextlib.contextmanager
def raster_environment() -> Iterator[None]:
    """Set up GDAL for reading: a bounded cache, no listing of neighbouring files on servers."""
    rasterio = require("rasterio", extra="geo")
    with rasterio.Env(GDAL_CACHEMAX=_CACHE_BYTES, GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR_ON_HTTP"):
        yield


@dataclass(frozen=True, slots=True)
class RasterSource:
    """Bands of one raster.

    Args:
        path: What rasterio opens.
        numbers: Raster band numbers of each band; several for an array band.
        bands: The bands.
        frame: The grid.
        extent: Where pixels exist, in pixels of the grid.
        exact: Whether the raster itself has this grid (False when only control points place it).
        mask_band: Whether a mask band says where all bands are masked.
        alpha: Number of the alpha band, masked where 0; 0 where there is none.
        count: Number of bands of the raster.
        content: Path, size and time of change of what is read.
        warped: Grid to resample to while reading; its first pixel is the extent's.
        resampling: Name of the resampling.
        source_crs: CRS given by the user for a raster without one.
        blocks: Whether the file is stored in tiles, not in rows.
        title: What to call it in messages, where that is not the path.
        nodatas: Nodata value of each band of the raster.
    """

    path: str
    numbers: tuple[tuple[int, ...], ...]
    bands: tuple[Band, ...]
    frame: Frame
    extent: Window
    exact: bool
    mask_band: bool
    alpha: int
    count: int
    content: str
    warped: Frame | None = None
    resampling: str = "nearest"
    source_crs: str | None = None
    blocks: bool = False
    title: str = ""
    nodatas: tuple[float | None, ...] = ()

    @property
    def tiled(self) -> bool:
        """Tell whether the pixels lie in tiles; resampled ones do not."""
        return self.blocks and self.warped is None

    @property
    def name(self) -> str:
        """Return the title, or the path."""
        return self.title or self.path

    @property
    def stamp(self) -> str:
        """Return all that decides which pixels are read, but for the file's own name."""
        how = (self.numbers, self.extent, self.mask_band, self.alpha, self.warped)
        return f"{self.content} {how} {self.resampling} {self.source_crs} {self.exact}"

    def on(self, frame: Frame, offset: tuple[int, int]) -> RasterSource:
        """Return the same pixels on a grid that shares them.

        Args:
            frame: The new grid.
            offset: (column, row) of the new grid's first pixel in the old one.
        """
        return replace(self, frame=frame, extent=self.extent.moved(-offset[0], -offset[1]))

    def warped_to(self, frame: Frame, margin: XY, resampling: str) -> RasterSource:
        """Return the raster resampled to another grid while it is read.

        Args:
            frame: The new grid.
            margin: Pixels (x, y) needed around it.
            resampling: Name of a ``rasterio.enums.Resampling``.
        """
        extent = frame.window.grown(margin)
        return replace(
            self,
            frame=frame,
            extent=extent,
            exact=True,
            mask_band=False,
            alpha=self.alpha or (self.count + 1 if self.needs_alpha else 0),
            warped=frame.cropped(extent),
            resampling=resampling,
        )

    def one_by_one(self, band: int) -> list[RasterSource]:
        """Return the steps of an array band, each as a source; none where nodata is the same."""
        numbers = self.numbers[band]
        values = {str(self.nodatas[number - 1]) for number in numbers}
        if len(values) < 2:
            return []
        return [
            replace(
                self,
                bands=(replace(self.bands[band], depth=None, nodata=self.nodatas[number - 1]),),
                numbers=((number,),),
            )
            for number in numbers
        ]

    def by_nodata(self) -> list[RasterSource]:
        """Divide the bands, in order, where the next has another nodata value."""
        pairs = zip(self.bands, self.numbers, strict=True)
        groups = itertools.groupby(pairs, key=lambda pair: str(pair[0].nodata))
        parts = [tuple(zip(*group, strict=True)) for _, group in groups]
        return [replace(self, bands=bands, numbers=numbers) for bands, numbers in parts]

    @property
    def needs_alpha(self) -> bool:
        """Tell whether only an alpha band could say where a resampled raster has no pixels."""
        return not self.alpha and (self.mask_band or self.bands[0].nodata is None)

    def open(self) -> RasterReader:
        """Open the raster."""
        return RasterReader(self)


class RasterReader:
    """An open raster."""

    def __init__(self, source: RasterSource) -> None:
        self._source = source
        self._stack = contextlib.ExitStack()
        with raster_environment():
            self._dataset = self._stack.enter_context(_opened(source.path))
            if source.warped is not None:
                self._dataset = self._stack.enter_context(_warp(self._dataset, source))
        self._groups = _same_dtype(source, self._dataset)

    def read(self, window: Window) -> Block:
        """Read a window that lies within the source's extent."""
        extent = self._source.extent
        place = window.moved(-extent.column, -extent.row)
        try:
            with raster_environment():
                values = self._values(place)
                shared = self._shared_mask(place)
        except _rasterio_errors() as error:
            raise GeoError(
                f"{self._source.name}: rows {place.row} to {place.bottom - 1} cannot be read "
                f"({_reason(error)}). The file is damaged or cut: fetch it again",
                path=self._source.path,
            ) from error
        masked = [
            _mask(pixels, band, shared)
            for pixels, band in zip(values, self._source.bands, strict=True)
        ]
        return Block(values, masked)

    def _values(self, place: Window) -> list[Pixels]:
        """Read all bands, those of one dtype at once, so that each tile is decoded once."""
        values: list[Pixels] = [np.empty(0)] * len(self._source.bands)
        for members, numbers in self._groups:
            stack = self._dataset.read(numbers, window=_rasterio_window(place))
            start = 0
            for member in members:
                depth = len(self._source.numbers[member])
                scalar = self._source.bands[member].depth is None
                values[member] = stack[start] if scalar else stack[start : start + depth]
                start += depth
        return values

    def _shared_mask(self, place: Window) -> Mask | None:
        """Return where an alpha or mask band masks all bands."""
        window, alpha = _rasterio_window(place), self._source.alpha
        if alpha:
            mask = self._dataset.read(alpha, window=window) == 0
        elif self._source.mask_band:
            mask = self._dataset.read_masks(1, window=window) == 0
        else:
            return None
        return mask if mask.any() else None

    def close(self) -> None:
        """Close the raster."""
        self._stack.close()


def _mask(pixels: Pixels, band: Band, shared: Mask | None) -> Mask | None:
    own = nodata_mask(pixels, band.nodata)
    if shared is None:
        return own
    return np.broadcast_to(shared, pixels.shape) if own is None else own | shared


def _same_dtype(source: RasterSource, dataset: Any) -> list[tuple[list[int], list[int]]]:
    """Group bands of one dtype, so that each group is one read: (band indices, raster numbers)."""
    groups: dict[str, tuple[list[int], list[int]]] = {}
    for index, numbers in enumerate(source.numbers):
        members, all_numbers = groups.setdefault(dataset.dtypes[numbers[0] - 1], ([], []))
        members.append(index)
        all_numbers.extend(numbers)
    return list(groups.values())


def _rasterio_window(window: Window) -> Any:
    windows = require("rasterio.windows", extra="geo")
    return windows.Window(window.column, window.row, window.width, window.height)


def _rasterio_errors() -> tuple[type[Exception], ...]:
    errors = require("rasterio.errors", extra="geo")
    return (errors.RasterioIOError, errors.RasterioError, errors.WarpOperationError)


def _reason(error: BaseException) -> str:
    """Return what GDAL said, which rasterio keeps as the cause, as one line."""
    return " ".join(str(error.__cause__ or error).split())


def open_dataset(path: str) -> Any:
    """Open a dataset with rasterio; what it lacks is told later, in our own words.

    Args:
        path: What rasterio opens.

    Returns:
        The dataset; close it.

    Raises:
        FileNotFoundError: There is no such local file.
        GeoError: It is no raster.
    """
    errors = require("rasterio.errors", extra="geo")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.NotGeoreferencedWarning)
        return _opened(path)


def _opened(path: str) -> Any:
    """Open a dataset; unlike ``open_dataset``, threads may do so at once (see ``burn``)."""
    rasterio = require("rasterio", extra="geo")
    try:
        return rasterio.open(path)
    except rasterio.errors.RasterioIOError as error:
        local = not storage.is_remote(path) and "://" not in path and ":" not in path[2:]
        if local and not Path(path).exists():
            raise FileNotFoundError(f"{path}: no such file") from error
        raise GeoError(
            f"{path}: not a raster that can be read ({_reason(error)}). "
            "Give a GeoTIFF, COG, VRT or another raster that GDAL knows",
            path=path,
        ) from error


def _warp(dataset: Any, source: RasterSource) -> Any:
    """Return a dataset resampled to the wanted grid while it is read."""
    vrt = require("rasterio.vrt", extra="geo")
    enums = require("rasterio.enums", extra="geo")
    affine = require("affine", extra="geo")
    assert source.warped is not None
    options: dict[str, Any] = {
        "crs": source.warped.crs,
        "transform": affine.Affine(*source.warped.affine),
        "width": source.warped.size.x,
        "height": source.warped.size.y,
        "resampling": getattr(enums.Resampling, source.resampling),
    }
    # Told even where there is none, or the nodata value of the first band would mask them all.
    options["src_nodata"] = options["nodata"] = source.bands[0].nodata
    if source.source_crs:
        options["src_crs"] = source.source_crs
    if source.alpha > dataset.count:
        options["add_alpha"] = True  # or pixels beyond the raster would look like valid zeros
    return vrt.WarpedVRT(dataset, **options)


def open_raster(
    path: PathLike,
    *,
    bands: BandSelection | None = None,
    source_crs: str | None = None,
) -> RasterSource:
    """Describe a raster as a source.

    Args:
        path: File, URL or GDAL name (``netcdf:file.nc:variable``).
        bands: Bands to take: names or numbers from 1, or a mapping of new name to name, number
            or ``"3:15"`` (an array band of raster bands 3 to 15, both included). All bands but
            alpha by default.
        source_crs: CRS of a raster that does not tell its own.

    Returns:
        The source.

    Raises:
        GeoError: The raster cannot be read or has no usable georeference.
        UsageError: There is no such band.
    """
    text = path_text(path)
    with raster_environment(), open_dataset(text) as dataset:
        _check_readable(dataset, text)
        frame, exact = _frame(dataset, text, source_crs)
        alpha = alpha_band(dataset)
        mask_band = not alpha and has_mask_band(dataset)
        shared = mask_band or alpha > 0
        numbers = select_bands(dataset, text, bands)
        return RasterSource(
            path=str(Path(text).absolute()) if Path(text).exists() else text,
            title=text,
            numbers=tuple(numbers.values()),
            bands=tuple(
                band_of(dataset, name, members, shared, text) for name, members in numbers.items()
            ),
            frame=frame,
            extent=frame.window,
            exact=exact,
            mask_band=mask_band,
            alpha=alpha,
            count=dataset.count,
            content=file_stamp(text, dataset.files),
            source_crs=source_crs,
            blocks=all(width < dataset.width for _, width in dataset.block_shapes),
            nodatas=tuple(dataset.nodatavals),
        )


def _check_readable(dataset: Any, path: str) -> None:
    if not dataset.count:
        parts = listed(dataset.subdatasets)
        raise GeoError(
            f"{path}: holds several rasters, not one. Give one of them, or a list to stack: {parts}"
            if parts
            else f"{path}: holds no raster band. Give another file",
            path=path,
        )


def _frame(dataset: Any, path: str, source_crs: str | None) -> tuple[Frame, bool]:
    """Return the grid, and whether the raster itself has it."""
    size = XY(dataset.width, dataset.height)
    control, control_crs = dataset.gcps
    crs = source_crs or dataset.crs
    transform = dataset.transform
    if control and (transform.is_identity or not dataset.crs):
        crs = source_crs or control_crs
        transform = require("rasterio.transform", extra="geo").from_gcps(control)
    if not crs:
        raise GeoError(
            f"{path}: has no CRS. Say which with source_crs, for example source_crs='EPSG:32618'",
            path=path,
        )
    if transform.is_identity:
        raise GeoError(
            f"{path}: has a CRS but no transform, so its pixels have no place. "
            "Set one with `rio edit-info --transform`",
            path=path,
        )
    affine = Affine6(*tuple(transform)[:6])
    if affine.a * affine.e == affine.b * affine.d:
        raise GeoError(f"{path}: its transform {tuple(affine)} has pixels of no area", path=path)
    return Frame(crs_text(crs), affine, size), not control

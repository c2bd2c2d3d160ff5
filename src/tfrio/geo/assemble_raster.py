"""The raster file of an import: written window by window under a temporary name, then renamed."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio import storage
from tfrio.errors import GeoError, UsageError, require
from tfrio.types import several, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tfrio.geo.frame import Frame
    from tfrio.geo.grid import Window
    from tfrio.types import XY

__all__ = ["Palette", "RasterLook", "RasterSink", "block_size", "raster_sink"]

# GDAL's cache holds the blocks that two rows of patches share until both have been written.
_CACHE_LEAST, _CACHE_MOST = 64 << 20, 192 << 20
_SIDE = 256
_COMPRESSIONS = ("deflate", "zstd", "lzw", "none")


@dataclass(frozen=True, slots=True)
class Palette:
    """Names and colours of classes.

    Args:
        names: Name by class.
        colors: (red, green, blue, alpha) by class, each 0 to 255.
    """

    names: Mapping[int, str]
    colors: Mapping[int, tuple[int, int, int, int]]

    def __bool__(self) -> bool:
        """Tell whether there is a name or a colour."""
        return bool(self.names or self.colors)

    @classmethod
    def of(cls, names: Any, colors: Any) -> Palette:
        """Check what a user gives.

        Args:
            names: Names in the order of classes from 0, or by class; None for none.
            colors: Colours likewise: ``"#1a9850"`` or (red, green, blue).

        Returns:
            The palette.

        Raises:
            UsageError: Not a colour.
        """
        shades = _by_class(colors, "colors")
        return cls(_by_class(names, "class_names"), {k: _rgba(v) for k, v in shades.items()})


def _by_class(given: Any, name: str) -> dict[int, Any]:
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {whole_number(value, f"a class in {name}", least=0): v for value, v in given.items()}
    return dict(enumerate(several(given, name, "one for each class, or a dict by class")))


def _rgba(color: Any) -> tuple[int, int, int, int]:
    parts: Any = color
    if isinstance(color, str):
        digits = color.removeprefix("#")
        try:
            parts = bytes.fromhex(digits)
        except ValueError:
            parts = ()
    parts = list(parts) if isinstance(parts, Iterable) else ()
    whole = all(isinstance(part, Integral) and 0 <= int(part) <= 255 for part in parts)
    if len(parts) not in (3, 4) or not whole:
        raise UsageError(f"{color!r} is no colour: write '#1a9850' or (26, 152, 80)")
    red, green, blue, alpha = [*parts, 255][:4]
    return red, green, blue, alpha


@dataclass(frozen=True, slots=True)
class RasterLook:
    """How the raster is stored.

    Args:
        frame: CRS, affine and size.
        dtype: NumPy dtype.
        nodata: Nodata value, None for none.
        names: Band names.
        palette: Names and colours of the classes.
        classes: Numbers of the bands that hold classes.
        patch: Patch (x, y) in pixels of the raster, which decides the size of blocks.
        compress: ``"deflate"``, ``"zstd"``, ``"lzw"`` or ``"none"``.
        workers: Threads that compress.
        cog: Whether to write a Cloud Optimized GeoTIFF with overviews.
    """

    frame: Frame
    dtype: np.dtype[Any]
    nodata: float | None
    names: Sequence[str]
    palette: Palette
    classes: Sequence[int]
    patch: XY
    compress: str = "deflate"
    workers: int = 1
    cog: bool = False

    @property
    def keeps_colors(self) -> bool:
        """Tell whether a GeoTIFF of this kind holds a colour table."""
        return len(self.names) == 1 and self.dtype in (np.uint8, np.uint16)


class RasterSink:
    """An open raster.

    Args:
        dataset: The rasterio dataset, open for writing.
        flip_rows: Whether windows arrive with the southern row first.
        flip_columns: Whether windows arrive with the eastern column first.
    """

    def __init__(self, dataset: Any, *, flip_rows: bool, flip_columns: bool) -> None:
        self._dataset = dataset
        self._windows = require("rasterio.windows", extra="geo").Window
        self._rows, self._columns = flip_rows, flip_columns

    def write(self, window: Window, values: NDArray[Any]) -> None:
        """Write a window.

        Args:
            window: Pixels in the orientation of the export.
            values: Shape (bands, height, width).
        """
        row, column = window.row, window.column
        if self._rows:
            row, values = self._dataset.height - window.bottom, values[:, ::-1]
        if self._columns:
            column, values = self._dataset.width - window.right, values[:, :, ::-1]
        place = self._windows(column, row, window.width, window.height)
        self._dataset.write(np.ascontiguousarray(values), window=place)


def block_size(patch: XY) -> tuple[int, int]:
    """Return block width and height: the patch where TIFF allows it, so that each is written once.

    TIFF 6.0, section 15: the sides of tiles are multiples of 16.
    """
    good = all(side % 16 == 0 and 64 <= side <= 1024 for side in (patch.x, patch.y))
    return (patch.x, patch.y) if good else (_SIDE, _SIDE)


@contextlib.contextmanager
def raster_sink(
    out: str, look: RasterLook, *, flip_rows: bool, flip_columns: bool
) -> Iterator[RasterSink]:
    """Open a raster that bears its name only when complete.

    Args:
        out: Local path or URL.
        look: How it is stored.
        flip_rows: See ``RasterSink``.
        flip_columns: See ``RasterSink``.

    Yields:
        The sink. When the block raises, nothing is left behind.
    """
    _check(look, out)
    remote = storage.is_remote(out)
    folder = Path(tempfile.mkdtemp(prefix="tfrio-")) if remote else None
    final = folder / "raster.tif" if folder else Path(out)
    if not final.parent.is_dir():
        raise FileNotFoundError(f"the folder {final.parent} does not exist; create it first")
    temporary = storage.temporary_beside(final)
    finished = storage.temporary_beside(final)
    rasterio = require("rasterio", extra="geo")
    try:
        with rasterio.Env(GDAL_CACHEMAX=_cache_bytes(look)):
            with rasterio.open(temporary, "w", **_profile(look)) as dataset:
                _describe(dataset, look)
                yield RasterSink(dataset, flip_rows=flip_rows, flip_columns=flip_columns)
            _finish(temporary, finished, look)
        if remote:
            with storage.atomic_write(out) as file, finished.open("rb") as done:
                shutil.copyfileobj(done, file, 1 << 20)
        else:
            storage.publish(finished, final)
    except rasterio.errors.RasterioIOError as error:
        raise GeoError(
            f"{out}: cannot be written ({error}). Is the disk full?", path=out
        ) from error
    finally:
        for path in (temporary, finished, _sidecar(temporary), _sidecar(finished)):
            path.unlink(missing_ok=True)
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _sidecar(path: Path) -> Path:
    return path.with_name(path.name + ".aux.xml")


def _check(look: RasterLook, out: str) -> None:
    if look.compress not in _COMPRESSIONS:
        known = ", ".join(_COMPRESSIONS)
        raise UsageError(f"compress must be one of {known}; got {look.compress!r}")
    if not out.lower().endswith((".tif", ".tiff")):
        raise UsageError(f"{out}: the map is a GeoTIFF; give a name ending in .tif")


def _cache_bytes(look: RasterLook) -> int:
    rows = 2 * max(look.patch.y, _SIDE)
    strip = look.frame.size.x * rows * look.dtype.itemsize * len(look.names)
    return min(max(strip, _CACHE_LEAST), _CACHE_MOST)


def _profile(look: RasterLook) -> dict[str, Any]:
    affine = require("affine", extra="geo")
    width, height = block_size(look.patch)
    profile: dict[str, Any] = {
        "driver": "GTiff",
        "width": look.frame.size.x,
        "height": look.frame.size.y,
        "count": len(look.names),
        "dtype": look.dtype.name,
        "crs": look.frame.crs,
        "transform": affine.Affine(*look.frame.affine),
        "nodata": look.nodata,
        "tiled": True,
        "blockxsize": width,
        "blockysize": height,
        "interleave": "band",
        "bigtiff": "if_safer",
        "num_threads": look.workers,
        # Patches that are not there take no room; readers see nodata.
        "sparse_ok": True,
    }
    # A COG is compressed when it is copied; the copy reads the blocks once more.
    if look.compress != "none" and not look.cog:
        predictor = 3 if look.dtype.kind == "f" else 2
        profile |= {"compress": look.compress, "predictor": predictor}
        profile |= {"zlevel": 6} if look.compress == "deflate" else {}
    return profile


def _describe(dataset: Any, look: RasterLook) -> None:
    for number, name in enumerate(look.names, 1):
        dataset.set_band_description(number, name)
    names = {f"CLASS_{value}": str(name) for value, name in look.palette.names.items()}
    for number in look.classes if names else ():
        dataset.update_tags(number + 1, **names)
    if look.palette.colors and look.keeps_colors:
        dataset.write_colormap(1, dict(look.palette.colors))


def _finish(temporary: Path, finished: Path, look: RasterLook) -> None:
    """Turn the temporary raster into the finished one."""
    if not look.cog:
        temporary.replace(finished)
        return
    kind = "average" if look.dtype.kind == "f" else "nearest"
    options = {} if look.compress == "none" else {"compress": look.compress, "predictor": "yes"}
    require("rasterio.shutil", extra="geo").copy(
        temporary,
        finished,
        driver="COG",
        overview_resampling=kind,
        bigtiff="if_safer",
        num_threads=look.workers,
        **options,
    )

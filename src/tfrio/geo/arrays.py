"""NumPy arrays and xarray objects as sources."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import GeoError, UsageError
from tfrio.geo.crs import crs_text
from tfrio.geo.frame import Frame, affine_terms
from tfrio.geo.source import Band, Block, Mask, Pixels, nodata_mask
from tfrio.geo.stamps import array_stamp, file_stamp, sample_stamp
from tfrio.types import XY, Affine6, names_list, real_number

if TYPE_CHECKING:
    from tfrio.geo.grid import Window

__all__ = ["LazyArraySource", "array_source", "is_xarray", "xarray_source"]

_X = ("x", "lon", "longitude", "easting", "X")
_Y = ("y", "lat", "latitude", "northing", "Y")
# Coordinates may be rounded this much, in pixels, and still count as evenly spaced.
_UNEVEN = 1e-3


@dataclass(frozen=True, slots=True)
class LazyArraySource:
    """Bands that are array-likes, sliced window by window.

    Args:
        name: What to call it in messages.
        arrays: One array-like per band, (height, width) or (depth, height, width); anything that
            can be sliced and turned into a NumPy array, so lazy arrays are read piece by piece.
        bands: The bands.
        frame: The grid.
        extent: Where pixels exist.
        origin: Stamp of the file it is read from, if there is one.
        tiled: Always False: what one window costs is not known.
    """

    name: str
    arrays: tuple[Any, ...]
    bands: tuple[Band, ...]
    frame: Frame
    extent: Window
    origin: str = ""
    tiled: bool = False

    @property
    def stamp(self) -> str:
        """Return a digest of all values in memory, of samples of lazy ones, and the place."""
        contents = (_content(array) for array in self.arrays)
        return " ".join([self.origin, str(self.extent), *contents])

    @property
    def sampled(self) -> bool:
        """Tell whether the stamp knows only samples of the values."""
        return not self.origin and not all(_in_memory(array) for array in self.arrays)

    def on(self, frame: Frame, offset: tuple[int, int]) -> LazyArraySource:
        """Return the same pixels on a grid that shares them, ``offset`` (column, row) away."""
        return replace(self, frame=frame, extent=self.extent.moved(-offset[0], -offset[1]))

    def open(self) -> LazyArrayReader:
        """Return a reader; there is nothing to open."""
        return LazyArrayReader(self)


class LazyArrayReader:
    """Reads windows of array-likes."""

    def __init__(self, source: LazyArraySource) -> None:
        self._source = source

    def read(self, window: Window) -> Block:
        """Read a window that lies within the source's extent."""
        extent = self._source.extent
        rows, columns = window.moved(-extent.column, -extent.row).slices
        values: list[Pixels] = []
        masked: list[Mask | None] = []
        for array, band in zip(self._source.arrays, self._source.bands, strict=True):
            piece = array[..., rows, columns]
            hidden = np.ma.getmaskarray(piece) if isinstance(piece, np.ma.MaskedArray) else None
            pixels = np.array(getattr(piece, "data", piece) if hidden is not None else piece)
            own = nodata_mask(pixels, band.nodata)
            if hidden is not None and hidden.any():
                own = hidden.copy() if own is None else own | hidden
            values.append(pixels)
            masked.append(own)
        return Block(values, masked)

    def close(self) -> None:
        """Do nothing."""


def array_source(
    values: Any,
    transform: Sequence[float],
    *,
    crs: Any,
    nodata: float | None = None,
    names: Sequence[str] | None = None,
) -> LazyArraySource:
    """Describe NumPy arrays as a source.

    Args:
        values: Array (height, width) or (bands, height, width), or a mapping of band name to
            array (height, width), or (depth, height, width) for array bands. Masked arrays keep
            their mask.
        transform: Six terms [a, b, c, d, e, f] from pixel to map, or an ``affine.Affine``.
        crs: CRS, for example ``"EPSG:32618"``.
        nodata: Value that means "no data".
        names: Band names; b1, b2 ... by default.

    Returns:
        The source.

    Raises:
        UsageError: Shapes or names do not fit.
    """
    arrays = _by_name(values, names)
    shapes = {array.shape[-2:] for array in arrays.values()}
    if len(shapes) != 1 or any(array.ndim not in (2, 3) for array in arrays.values()):
        found = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise UsageError(f"arrays must be (height, width) or (depth, height, width); got {found}")
    height, width = shapes.pop()
    if not height or not width:
        raise UsageError(f"an array of {height} x {width} pixels holds nothing to export")
    frame = Frame(crs_text(crs), affine_terms(transform), XY(int(width), int(height)))
    return LazyArraySource(
        name="<array>",
        arrays=tuple(arrays.values()),
        bands=tuple(_band(name, array, nodata) for name, array in arrays.items()),
        frame=frame,
        extent=frame.window,
    )


def _in_memory(array: Any) -> bool:
    if isinstance(array, _Sliced):
        # xarray has no public word for "loaded"; lazy arrays would be loaded by asking for .data.
        return bool(getattr(array.data.variable, "_in_memory", False))
    return isinstance(array, np.ndarray)


def _content(array: Any) -> str:
    """Return text that tells one content of an array from another."""
    if not _in_memory(array):
        return sample_stamp(array, tuple(array.shape))
    return array_stamp(array[...] if isinstance(array, _Sliced) else array)


def _by_name(values: Any, names: Sequence[str] | None) -> dict[str, Any]:
    if isinstance(values, Mapping):
        return {str(name): np.asanyarray(array) for name, array in values.items()}
    stack = np.asanyarray(values)
    stack = stack[None] if stack.ndim == 2 else stack
    if stack.ndim != 3:
        raise UsageError(
            f"an array must be (height, width) or (bands, height, width); got {stack.shape}"
        )
    every = range(1, len(stack) + 1)
    labels = [f"b{n}" for n in every] if names is None else names_list(names, "names")
    if len(labels) != len(stack):
        raise UsageError(f"{len(labels)} names for {len(stack)} bands: {labels}")
    return dict(zip(labels, stack, strict=True))


def _band(name: str, array: Any, nodata: float | None) -> Band:
    dtype = np.dtype(array.dtype)
    if dtype.kind not in "biuf":
        raise UsageError(f"band {name!r} is {dtype}, which TFRecord cannot hold; convert it")
    hidden = isinstance(array, np.ma.MaskedArray)
    return Band(
        name=name,
        dtype=dtype.name,
        nodata=None if nodata is None else float(real_number(nodata, "nodata")),
        depth=array.shape[0] if array.ndim == 3 else None,
        maskable=hidden or nodata is not None,
    )


def is_xarray(value: object) -> bool:
    """Tell whether a value is an xarray Dataset or DataArray, without importing xarray."""
    kinds = {kind.__name__ for kind in type(value).__mro__ if kind.__module__.startswith("xarray.")}
    return bool(kinds & {"Dataset", "DataArray"})


def xarray_source(data: Any, *, crs: Any = None) -> LazyArraySource:
    """Describe an xarray Dataset or DataArray as a source; nothing is loaded.

    A dimension called ``band`` becomes scalar bands; any other third dimension (time) makes an
    array band. Coordinates are pixel centres.

    Args:
        data: The Dataset or DataArray; dimensions in any order.
        crs: CRS, where the object does not tell it.

    Returns:
        The source.

    Raises:
        GeoError: Dimensions, coordinates or CRS are missing or uneven.
    """
    y, x = _spatial(data)
    frame = Frame(_xarray_crs(data, crs), _affine(data, y, x), XY(data.sizes[x], data.sizes[y]))
    arrays: dict[str, Any] = {}
    bands: list[Band] = []
    for name, variable in _variables(data, y, x).items():
        arrays[name] = _Sliced(variable)
        bands.append(_band(name, variable, _nodata(variable)))
    if not bands:
        raise GeoError(f"no variable of the Dataset lies on its dimensions {y!r} and {x!r}")
    return LazyArraySource(
        name="<xarray>",
        arrays=tuple(arrays.values()),
        bands=tuple(bands),
        frame=frame,
        extent=frame.window,
        origin=_origin(data),
    )


@dataclass(frozen=True, slots=True)
class _Sliced:
    """A DataArray that is loaded only where it is sliced (a scheduler of Dask does the rest)."""

    data: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape, (..., y, x)."""
        shape: tuple[int, ...] = self.data.shape
        return shape

    def __getitem__(self, key: Any) -> Pixels:
        return np.asarray(self.data[key].to_numpy())


def _origin(data: Any) -> str:
    """Return the stamp of the local file an object was read from, "" where there is none."""
    source = getattr(data, "encoding", {}).get("source")
    return file_stamp(str(source), ()) if source and Path(str(source)).is_file() else ""


def _spatial(data: Any) -> tuple[str, str]:
    """Return the names of the dimensions (y, x)."""
    dims = [str(dim) for dim in data.dims]
    y = next((name for name in _Y if name in dims), None)
    x = next((name for name in _X if name in dims), None)
    if y is None or x is None:
        raise GeoError(
            f"cannot tell which of the dimensions {dims} are x and y. "
            "Rename them with .rename({...: 'x', ...: 'y'})"
        )
    return y, x


def _affine(data: Any, y: str, x: str) -> Affine6:
    across, left = _axis(data, x)
    down, top = _axis(data, y)
    return Affine6(across, 0.0, left, 0.0, down, top)


def _axis(data: Any, name: str) -> tuple[float, float]:
    """Return the step of a coordinate and the outer edge of its first pixel."""
    if name not in data.coords:
        raise GeoError(f"dimension {name!r} has no coordinates, so pixels have no place")
    centres = np.asarray(data.coords[name].values, np.float64)
    if len(centres) < 2:
        raise GeoError(f"dimension {name!r} has {len(centres)} pixel; two are needed for a step")
    step = float((centres[-1] - centres[0]) / (len(centres) - 1))
    even = centres[0] + step * np.arange(len(centres))
    worst = float(np.abs(centres - even).max())
    if not step or worst > _UNEVEN * abs(step) * max(1.0, math.log10(len(centres))):
        raise GeoError(
            f"coordinates of dimension {name!r} are not evenly spaced (off by {worst:.6g} at a "
            f"step of {step:.6g}). Resample to a regular grid first"
        )
    return step, float(centres[0] - step / 2)


def _xarray_crs(data: Any, given: Any) -> str:
    """Return the CRS from the caller, or from what the object and its variables say.

    rioxarray has a coordinate ``spatial_ref``, CF a variable that ``grid_mapping`` names, xee an
    attribute ``crs`` of each variable, others one of the whole object.
    """
    if given:
        return crs_text(given)
    variables = list(data.data_vars.values()) if hasattr(data, "data_vars") else [data]
    places = [data, *variables]
    mappings = {
        str(place.attrs.get("grid_mapping") or place.encoding.get("grid_mapping"))
        for place in variables
    }
    names = ("spatial_ref", *sorted(mappings))
    found = _told([data[name] for name in names if name in _names(data)]) or _told(places)
    if not found:
        raise GeoError("the xarray object tells no CRS. Give source_crs, for example 'EPSG:4326'")
    if len(found) > 1:
        listed = ", ".join(text[:60] for text in found)
        raise GeoError(
            f"variables of the xarray object have several CRSs: {listed}. Export those of one CRS "
            "at a time, or say which one holds with source_crs"
        )
    return found[0]


def _told(places: Sequence[Any]) -> list[str]:
    """Return the CRSs that attributes name, each once."""
    keys = ("crs_wkt", "spatial_ref", "crs")
    told = (next((p.attrs[key] for key in keys if p.attrs.get(key)), None) for p in places)
    return list(dict.fromkeys(crs_text(crs) for crs in told if crs is not None))


def _names(data: Any) -> set[str]:
    return {str(name) for name in (*data.coords, *getattr(data, "data_vars", ()))}


def _variables(data: Any, y: str, x: str) -> dict[str, Any]:
    """Return the bands by name, each (..., y, x)."""
    variables = dict(data.data_vars) if hasattr(data, "data_vars") else {data.name or "b1": data}
    found: dict[str, Any] = {}
    for name, variable in variables.items():
        others = [dim for dim in variable.dims if dim not in (y, x)]
        if y not in variable.dims or x not in variable.dims:
            continue
        if len(others) > 1:
            raise GeoError(
                f"variable {name!r} has dimensions {variable.dims}; at most one besides {y} and "
                f"{x} can be exported. Select or stack the others"
            )
        ordered = variable.transpose(*others, y, x)
        if others == ["band"]:
            found.update(_split_bands(str(name), ordered, single=len(variables) == 1))
        else:
            found[str(name)] = ordered
    return found


def _split_bands(name: str, variable: Any, *, single: bool) -> dict[str, Any]:
    """Return one scalar band per entry of the dimension ``band``."""
    count = variable.sizes["band"]
    labels = variable.coords["band"].values if "band" in variable.coords else range(1, count + 1)
    texts = [str(label) if isinstance(label, str) else f"b{label}" for label in labels]
    names = texts if single else [f"{name}_{text}" for text in texts]
    return {label: variable.isel(band=index) for index, label in enumerate(names)}


def _nodata(variable: Any) -> float | None:
    places = (variable.attrs, variable.encoding)
    values = [
        place[key] for place in places for key in ("_FillValue", "missing_value") if key in place
    ]
    decoded = "_FillValue" in variable.encoding  # xarray has turned these into NaN already
    if not values or (decoded and np.dtype(variable.dtype).kind == "f"):
        return None
    return float(np.asarray(values[0]).reshape(-1)[0])

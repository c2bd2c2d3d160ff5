"""Bring sources onto the grid that an export asks for, as ``Export.image`` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

from tfrio.errors import GeoError, UsageError, require
from tfrio.geo.frame import (
    METRES_PER_DEGREE,
    Bounds,
    Frame,
    covering_frame,
    dimension_frame,
    lattice_offset,
    snapped_frame,
)
from tfrio.geo.raster import RasterSource, crs_text
from tfrio.types import XY, Affine6

if TYPE_CHECKING:
    from tfrio.geo.scratch import Scratch
    from tfrio.geo.source import Source

__all__ = ["GridRequest", "align", "choose_frame", "geometry_of", "project_geometry"]

_LONLAT = "EPSG:4326"


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRequest:
    """The grid a user asks for; see ``export_image`` for what each option means."""

    region: Any = None
    region_crs: str = _LONLAT
    crs: str | None = None
    scale: float | None = None
    crs_transform: Sequence[float] | None = None
    dimensions: XY | int | Sequence[int] | None = None
    resampling: str = "nearest"

    def __post_init__(self) -> None:
        """Refuse combinations that fix the pixel twice."""
        if self.scale is not None and (
            self.crs_transform is not None or self.dimensions is not None
        ):
            raise UsageError("scale cannot go with crs_transform or dimensions: give one of them")
        if self.scale is not None and not self.scale > 0:
            raise UsageError(f"scale must be metres per pixel, above 0; got {self.scale!r}")
        if self.crs_transform is not None and len(tuple(self.crs_transform)) < 6:
            raise UsageError(
                f"crs_transform must have six terms [a, b, c, d, e, f]; got {self.crs_transform!r}"
            )
        names = require("rasterio.enums", extra="geo").Resampling.__members__
        if self.resampling not in names:
            raise UsageError(
                f"resampling must be one of {', '.join(names)}; got {self.resampling!r}"
            )

    @property
    def fixes_grid(self) -> bool:
        """Tell whether anything but the region is asked for."""
        return any(
            value is not None
            for value in (self.crs, self.scale, self.crs_transform, self.dimensions)
        )


def geometry_of(value: Any) -> Mapping[str, Any]:
    """Return a region as a GeoJSON geometry.

    Args:
        value: A box (left, bottom, right, top), a GeoJSON geometry, Feature or
            FeatureCollection, or anything with ``__geo_interface__`` (shapely, geopandas).

    Returns:
        The geometry.

    Raises:
        UsageError: Nothing of the kind.
    """
    value = getattr(value, "__geo_interface__", value)
    if isinstance(value, Mapping):
        return _from_geojson(value)
    numbers = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(numbers, Sequence) and not isinstance(numbers, str) and len(numbers) == 4:
        left, bottom, right, top = (float(number) for number in numbers)
        if left < right and bottom < top:
            ring = [[left, bottom], [right, bottom], [right, top], [left, top], [left, bottom]]
            return {"type": "Polygon", "coordinates": [ring]}
    raise UsageError(
        f"region must be (left, bottom, right, top), GeoJSON or a shapely geometry; got {value!r}"
    )


def _from_geojson(value: Mapping[str, Any]) -> Mapping[str, Any]:
    kind = value.get("type")
    if kind == "Feature":
        return geometry_of(value.get("geometry"))
    if kind == "FeatureCollection":
        members = [geometry_of(feature) for feature in value.get("features", [])]
        return {"type": "GeometryCollection", "geometries": members}
    if kind == "GeometryCollection" or "coordinates" in value:
        return value
    raise UsageError(f"region of type {kind!r} is no GeoJSON geometry")


def project_geometry(geometry: Mapping[str, Any], source: str, target: str) -> Mapping[str, Any]:
    """Transform a geometry to another CRS.

    Args:
        geometry: GeoJSON geometry.
        source: Its CRS.
        target: The CRS wanted.

    Returns:
        The geometry there.
    """
    if crs_text(source) == target:
        return geometry
    warp = require("rasterio.warp", extra="geo")
    errors = require("rasterio.errors", extra="geo")
    gdal = require("rasterio._err", extra="geo")
    try:
        found: Mapping[str, Any] = warp.transform_geom(source, target, dict(geometry))
    except (errors.RasterioError, gdal.CPLE_BaseError, ValueError) as error:
        raise GeoError(
            f"a geometry has no place in {target[:60]} when read as {source[:60]} ({error}). "
            "Check its CRS, and that x (longitude) comes first"
        ) from error
    return found


def _bounds_of(geometry: Mapping[str, Any], source: str, target: str) -> Bounds:
    """Return the box around a geometry in another CRS, curved edges minded."""
    features = require("rasterio.features", extra="geo")
    warp = require("rasterio.warp", extra="geo")
    box = features.bounds(dict(geometry))
    if crs_text(source) == target:
        return Bounds(*box)
    return Bounds(*warp.transform_bounds(source, target, *box, densify_pts=21))


def choose_frame(native: Frame, request: GridRequest) -> Frame:
    """Choose the grid of an export.

    Args:
        native: Grid of the (first) source.
        request: What the user asks for.

    Returns:
        The native grid, its part under the region, or the grid asked for.

    Raises:
        UsageError: A CRS without anything that fixes the pixel.
    """
    crs = crs_text(request.crs) if request.crs else native.crs
    exact = request.crs_transform is not None and request.region is None
    if exact and request.dimensions is not None:
        size = XY.of(request.dimensions, name="dimensions")
        return Frame(crs, _terms(request), size)
    bounds = _wanted_bounds(native, request, crs)
    if request.crs_transform is not None:
        if request.dimensions is not None:
            raise UsageError("crs_transform with a region fixes the dimensions: leave them out")
        return covering_frame(crs, _terms(request), bounds)
    if request.scale is not None:
        return snapped_frame(crs, request.scale / _metres_per_unit(crs), bounds)
    if request.dimensions is not None:
        return dimension_frame(crs, _dimensions(request.dimensions, bounds), bounds)
    if crs != native.crs:
        raise UsageError(
            f"crs {crs} differs from the source's {native.crs[:60]}: say how large pixels are with "
            "scale, crs_transform or dimensions"
        )
    return native if request.region is None else _native_part(native, bounds)


def _terms(request: GridRequest) -> Affine6:
    terms = () if request.crs_transform is None else tuple(request.crs_transform)
    return Affine6(*map(float, terms[:6]))


def _wanted_bounds(native: Frame, request: GridRequest, crs: str) -> Bounds:
    if request.region is not None:
        return _bounds_of(geometry_of(request.region), request.region_crs, crs)
    if crs == native.crs:
        return native.bounds
    box = native.bounds
    warp = require("rasterio.warp", extra="geo")
    corners = (box.left, box.bottom, box.right, box.top)
    return Bounds(*warp.transform_bounds(native.crs, crs, *corners, densify_pts=21))


def _dimensions(given: XY | int | Sequence[int], bounds: Bounds) -> XY:
    """Return pixels (x, y); one number is the larger of the two, as Earth Engine reads it."""
    if not isinstance(given, Integral):
        return XY.of(given, name="dimensions")
    width, height = bounds.right - bounds.left, bounds.top - bounds.bottom
    longer = max(width, height)
    if longer <= 0:
        raise GeoError(f"the region {bounds} has no area. Give another region")
    given = int(given)
    return XY(max(round(given * width / longer), 1), max(round(given * height / longer), 1))


def _native_part(native: Frame, bounds: Bounds) -> Frame:
    box = native.box_of(bounds).clipped(native.size)
    if not box.pixels:
        raise GeoError(
            f"the region {bounds} lies outside the source {native.bounds}. Check the region and "
            "region_crs"
        )
    return native.cropped(box)


def _metres_per_unit(crs: str) -> float:
    known = require("rasterio.crs", extra="geo").CRS.from_user_input(crs)
    if known.is_geographic:
        return METRES_PER_DEGREE
    return float(known.linear_units_factor[1])


def align(source: Source, frame: Frame, margin: XY, resampling: str, scratch: Scratch) -> Source:
    """Bring a source onto a grid.

    Args:
        source: The source.
        frame: The grid.
        margin: Pixels (x, y) needed around it.
        resampling: How to resample where pixels do not coincide.
        scratch: Where to put what cannot be resampled while it is read.

    Returns:
        The source on that grid: the same pixels where the grids share them, else resampled.
    """
    exact = getattr(source, "exact", True)
    shared = source.frame.crs == frame.crs and exact
    offset = lattice_offset(source.frame, frame) if shared else None
    if offset == (0, 0) and source.frame.size == frame.size:
        return source
    mover = getattr(source, "on", None)
    if offset is not None and mover is not None:
        moved: Source = mover(frame, offset)
        return moved
    if not exact and isinstance(source, RasterSource):
        return scratch.rectify(source, frame, margin, resampling)
    raster = source if isinstance(source, RasterSource) else scratch.copy(source)
    return raster.warped_to(frame, margin, resampling)

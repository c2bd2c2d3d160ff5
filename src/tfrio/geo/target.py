"""Bring sources onto the grid that an export asks for, as ``Export.image`` does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from tfrio.errors import GeoError, UsageError, require
from tfrio.geo.crs import crs_text
from tfrio.geo.frame import (
    METRES_PER_DEGREE,
    Bounds,
    Frame,
    affine_terms,
    covering_frame,
    dimension_frame,
    lattice_offset,
    snapped_frame,
)
from tfrio.geo.raster import RasterSource
from tfrio.geo.stack import StackSource
from tfrio.types import XY, Affine6

if TYPE_CHECKING:
    from tfrio.geo.scratch import Scratch
    from tfrio.geo.source import Source

__all__ = ["GridRequest", "align", "choose_frame", "geometry_of", "meets", "project_geometry"]

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
        if self.scale is not None and not (isinstance(self.scale, Real) and self.scale > 0):
            raise UsageError(f"scale must be metres per pixel, above 0; got {self.scale!r}")
        if self.crs_transform is not None:
            affine_terms(self.crs_transform, name="crs_transform")
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
    box = features.bounds(dict(geometry))
    if crs_text(source) == target:
        return Bounds(*box)
    return _moved(box, source, target, "the region", "Say which CRS its numbers are in: region_crs")


def _moved(box: Sequence[float], source: str, target: str, what: str, remedy: str) -> Bounds:
    """Return the box around a box in another CRS, curved edges minded."""
    warp = require("rasterio.warp", extra="geo")
    errors = require("rasterio.errors", extra="geo")
    gdal = require("rasterio._err", extra="geo")
    try:
        found = warp.transform_bounds(source, target, *box, densify_pts=21)
    except (errors.RasterioError, gdal.CPLE_BaseError):
        found = (math.inf,)
    if not all(map(math.isfinite, found)):
        raise GeoError(
            f"{what} {tuple(box)}, read as {source[:60]}, has no place in {target[:60]}. {remedy}"
        )
    return Bounds(*found)


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
    given = () if request.crs_transform is None else request.crs_transform
    return affine_terms(given, name="crs_transform")


def _wanted_bounds(native: Frame, request: GridRequest, crs: str) -> Bounds:
    if request.region is not None:
        return _bounds_of(geometry_of(request.region), request.region_crs, crs)
    if crs == native.crs:
        return native.bounds
    box = native.bounds
    corners = (box.left, box.bottom, box.right, box.top)
    return _moved(corners, native.crs, crs, "the source", "Give a region, or another crs")


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


def meets(native: Frame, frame: Frame) -> bool:
    """Tell whether the box around a source and that of a grid share any ground."""
    box = native.bounds
    if native.crs != frame.crs:
        corners = (box.left, box.bottom, box.right, box.top)
        box = _moved(corners, native.crs, frame.crs, "the source", "Choose another crs")
    other = frame.bounds
    across = box.left > box.right or (box.left < other.right and other.left < box.right)
    return across and box.bottom < other.top and other.bottom < box.top


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
    # A resampled raster has one nodata value for all bands, so each value gets its own.
    parts = [part.warped_to(frame, margin, resampling) for part in raster.by_nodata()]
    return parts[0] if len(parts) == 1 else StackSource(tuple(parts), source.bands)

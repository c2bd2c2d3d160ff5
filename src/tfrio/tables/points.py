"""Points between longitude and latitude columns, WKB and GeoJSON, without a geometry library.

WKB of a two-dimensional point is 21 bytes: byte order, the type number 1, x and y as doubles
(OGC 06-103r4, section 8.2.6), so a whole column is one NumPy structured array.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import GeoError, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "DEFAULT_CRS",
    "geo_metadata",
    "lonlat",
    "point_of_geojson",
    "point_of_wkb",
    "points_to_wkb",
    "to_degrees",
]

DEFAULT_CRS = "EPSG:4326"

_POINT = np.dtype([("order", "u1"), ("type", "<u4"), ("x", "<f8"), ("y", "<f8")])
# Z, M and ZM as ISO numbers them (1001, 2001, 3001) and as EWKB flags them.
_NAMES = {
    1: "Point",
    2: "LineString",
    3: "Polygon",
    4: "MultiPoint",
    5: "MultiLineString",
    6: "MultiPolygon",
    7: "GeometryCollection",
}
_EWKB_SRID = 0x20000000


def points_to_wkb(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Encode points as WKB.

    Args:
        x: Shape (n,), map x or longitude.
        y: Shape (n,), map y or latitude.

    Returns:
        Shape (n, 21): one row of bytes for each point.
    """
    points = np.empty(len(x), _POINT)
    points["order"], points["type"], points["x"], points["y"] = 1, 1, x, y
    return points.view(np.uint8).reshape(len(x), _POINT.itemsize)


def point_of_wkb(data: bytes) -> tuple[float, float] | str:
    """Decode a WKB point.

    Args:
        data: One geometry as WKB, ISO or extended.

    Returns:
        (x, y), or the name of the geometry where it is no point.
    """
    order = "<" if data[:1] == b"\x01" else ">"
    try:
        (number,) = struct.unpack_from(f"{order}I", data, 1)
        start = 9 if number & _EWKB_SRID else 5
        base = (number & 0x0FFFFFFF) % 1000
        if base != 1:
            return _NAMES.get(base, f"geometry type {base}")
        x, y = struct.unpack_from(f"{order}2d", data, start)
    except struct.error:
        return "a geometry that is cut short"
    return x, y


def point_of_geojson(geometry: dict[str, Any] | None) -> tuple[float, float] | str | None:
    """Return (x, y) of a GeoJSON point, its type where it is another geometry, None for null."""
    if geometry is None:
        return None
    kind = str(geometry.get("type"))
    coordinates = geometry.get("coordinates")
    if kind != "Point" or not isinstance(coordinates, list) or len(coordinates) < 2:
        return kind
    return float(coordinates[0]), float(coordinates[1])


def lonlat(
    points: Sequence[tuple[float, float] | None], crs: str | None, *, path: str, to: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Bring points to the CRS in which they are stored.

    Args:
        points: (x, y) of each row, None where the geometry is null.
        crs: CRS of the points: a code, WKT or PROJ JSON.
        path: The source, for the error.
        to: CRS wanted.

    Returns:
        x, y and a mask of the rows that have a point, each of shape (n,).

    Raises:
        GeoError: The source names no CRS, or one that is not known.
    """
    present = np.array([point is not None for point in points], bool)
    filled = [(np.nan, np.nan) if point is None else point for point in points]
    xy = np.array(filled, np.float64).reshape(-1, 2)
    if crs is None:
        raise GeoError(
            f"{path}: the geometry has no CRS, so its points cannot become {to}. "
            "Pass crs= with the CRS of the points",
            path=path,
        )
    if crs == to:
        return xy[:, 0], xy[:, 1], present
    x, y = _transformer(crs, to, path).transform(xy[:, 0], xy[:, 1])
    return np.asarray(x), np.asarray(y), present


def to_degrees(
    points: tuple[NDArray[Any], NDArray[Any]], crs: str, *, path: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Bring points to longitude and latitude on WGS 84, the only CRS of GeoJSON (RFC 7946, 4).

    Args:
        points: x and y, each of shape (n,), NaN where there is no point.
        crs: CRS of the points.
        path: The file, for the error.

    Returns:
        Longitude and latitude in degrees, as they are where that is the CRS already.

    Raises:
        GeoError: The CRS is not known.
    """
    if crs in (DEFAULT_CRS, "OGC:CRS84"):
        return points
    moved = _transformer(crs, "OGC:CRS84", path).transform(*points)
    degrees = [np.where(np.isfinite(values), values, np.nan) for values in moved]
    return degrees[0], degrees[1]


def _transformer(source: str, target: str, path: str) -> Any:
    pyproj = require("pyproj", extra="geo")
    try:
        return pyproj.Transformer.from_crs(source, target, always_xy=True)
    except pyproj.exceptions.CRSError as error:
        raise _unknown_crs(error, path) from error


def _unknown_crs(error: Exception, path: str) -> GeoError:
    where = f"{path}: " if path else ""
    return GeoError(
        f"{where}CRS not understood ({error}). Pass crs= with an EPSG code or a WKT",
        path=path or None,
    )


def geo_metadata(
    x: NDArray[np.float64] | None,
    y: NDArray[np.float64] | None,
    *,
    column: str,
    crs: str,
    path: str = "",
) -> bytes:
    """Write the ``geo`` entry of a GeoParquet file (version 1.1.0) for a column of points.

    Args:
        x: Extent or coordinates in x, to state the bounding box; None leaves it out.
        y: The same in y.
        column: Name of the geometry column.
        crs: CRS of the points. ``EPSG:4326`` in (longitude, latitude) order is GeoParquet's
            default, OGC:CRS84, and needs no PROJJSON.
        path: The file, for the error.

    Returns:
        The JSON text.

    Raises:
        GeoError: The CRS is not known.
    """
    about: dict[str, Any] = {"encoding": "WKB", "geometry_types": ["Point"]}
    if crs not in (DEFAULT_CRS, "OGC:CRS84"):
        pyproj = require("pyproj", extra="geo")
        try:
            about["crs"] = pyproj.CRS.from_user_input(crs).to_json_dict()
        except pyproj.exceptions.CRSError as error:
            raise _unknown_crs(error, path) from error
    if x is not None and y is not None and len(x):
        about["bbox"] = [float(x.min()), float(y.min()), float(x.max()), float(y.max())]
    geo = {"version": "1.1.0", "primary_column": column, "columns": {column: about}}
    return json.dumps(geo).encode()

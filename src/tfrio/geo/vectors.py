"""Vector features for labels and locations: GeoJSON and GeoParquet by hand, others by pyogrio."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfrio import storage
from tfrio.errors import GeoError, UsageError, require
from tfrio.geo.crs import crs_text
from tfrio.geo.files import read_small
from tfrio.geo.target import project_geometry
from tfrio.types import path_text

__all__ = ["Feature", "read_features"]

_LONLAT = "EPSG:4326"
# GeoJSON is read whole; larger collections belong into a GeoPackage.
_LARGEST = 1 << 30


@dataclass(frozen=True, slots=True)
class Feature:
    """A GeoJSON geometry and its properties."""

    geometry: Mapping[str, Any]
    properties: Mapping[str, Any]


def read_features(where: Any, *, crs: str | None, target: str) -> list[Feature]:
    """Read vector features and bring them to a CRS.

    Args:
        where: A file (GeoJSON, GeoPackage, Shapefile, GeoParquet ...), GeoJSON, a sequence of
            (x, y) pairs, or anything with ``__geo_interface__`` (shapely, geopandas).
        crs: Their CRS; by default what the file says, else longitude and latitude.
        target: The CRS wanted.

    Returns:
        The features; those with no geometry, or an empty one, are left out.

    Raises:
        GeoError: The file cannot be read.
        UsageError: Nothing of the kind.
    """
    features, own = _load(where)
    source = crs_text(crs or own or _LONLAT)
    return [
        Feature(project_geometry(feature.geometry, source, target), feature.properties)
        for feature in features
        if feature.geometry.get("coordinates") or feature.geometry.get("geometries")
    ]


def _load(where: Any) -> tuple[list[Feature], str | None]:
    """Return features and the CRS they tell."""
    if isinstance(where, str | os.PathLike):
        text = path_text(where)
        if not storage.is_remote(text) and not Path(text).exists():
            raise FileNotFoundError(f"{text}: no such file")
        return _LOADERS.get(Path(text).suffix.lower(), _load_vector)(text)
    own = getattr(where, "crs", None)
    value = getattr(where, "__geo_interface__", where)
    if isinstance(value, Mapping):
        return _features(value), str(own) if own else _named_crs(value)
    if isinstance(value, Sequence) or hasattr(value, "tolist"):
        return [_point(pair) for pair in value], None
    raise UsageError(f"expected a vector file, GeoJSON or (x, y) pairs; got {where!r}")


def _point(pair: Any) -> Feature:
    value = getattr(pair, "__geo_interface__", pair)
    if isinstance(value, Mapping):
        return _features(value)[0]
    try:
        x, y = (float(number) for number in value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"a location must be a pair (x, y) or a geometry; got {pair!r}") from error
    return Feature({"type": "Point", "coordinates": [x, y]}, {})


def _load_geojson(path: str) -> tuple[list[Feature], str | None]:
    try:
        value = json.loads(read_small(path, limit=_LARGEST))
        return _features(value), _named_crs(value)
    except (ValueError, AttributeError) as error:
        raise GeoError(f"{path}: not GeoJSON ({error}). Give another file", path=path) from error


def _named_crs(value: Mapping[str, Any]) -> str | None:
    """Return the CRS of GeoJSON older than RFC 7946, which may name one."""
    crs = value.get("crs")
    named = crs.get("properties", {}).get("name") if isinstance(crs, Mapping) else None
    return str(named) if named else None


def _features(value: Mapping[str, Any]) -> list[Feature]:
    """Return the features of any GeoJSON object."""
    kind = value.get("type")
    if kind == "FeatureCollection":
        return [found for member in value.get("features", []) for found in _features(member)]
    if kind == "Feature":
        geometry = value.get("geometry")
        properties = value.get("properties") or {}
        return [Feature(geometry, properties)] if geometry else []
    if "coordinates" in value or kind == "GeometryCollection":
        return [Feature(value, {})]
    raise UsageError(f"{kind!r} is no GeoJSON type")


def _load_vector(path: str) -> tuple[list[Feature], str | None]:
    pyogrio = require("pyogrio", extra="table")
    shapely = require("shapely", extra="table")
    try:
        meta, _, geometries, columns = pyogrio.raw.read(path)
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError) as error:
        raise GeoError(
            f"{path}: not a vector file ({error}). Give another file", path=path
        ) from error
    if geometries is None:
        raise GeoError(f"{path}: its features have no geometry. Give another file", path=path)
    names = [str(name) for name in meta["fields"]]
    found = []
    for number, wkb in enumerate(geometries):
        if wkb is not None:
            geometry = shapely.geometry.mapping(shapely.from_wkb(wkb))
            values = {name: column[number] for name, column in zip(names, columns, strict=True)}
            found.append(Feature(geometry, values))
    return found, meta["crs"]


def _load_geoparquet(path: str) -> tuple[list[Feature], str | None]:
    """Read GeoParquet, for which GDAL needs a driver that few builds have."""
    parquet = require("pyarrow.parquet", extra="table")
    shapely = require("shapely", extra="table")
    try:
        table = parquet.read_table(io.BytesIO(read_small(path, limit=_LARGEST)))
        geo = json.loads((table.schema.metadata or {})[b"geo"])
        name = geo["primary_column"]
        about = geo["columns"][name]
    except (ValueError, KeyError) as error:  # pyarrow's own errors are ValueErrors
        raise GeoError(f"{path}: not GeoParquet ({error}). Give another file", path=path) from error
    if about.get("encoding") != "WKB":
        raise GeoError(
            f"{path}: its geometry is stored as {about.get('encoding')!r}; only WKB can be read. "
            "Write it with encoding WKB, which is the default of geopandas and GDAL",
            path=path,
        )
    found = [
        Feature(shapely.geometry.mapping(shapely.from_wkb(row.pop(name))), row)
        for row in table.to_pylist()
        if row[name] is not None
    ]
    # No entry means longitude and latitude; null means that nobody knows.
    crs = about.get("crs", _LONLAT)
    return found, json.dumps(crs) if isinstance(crs, Mapping) else crs


_LOADERS = {
    ".json": _load_geojson,
    ".geojson": _load_geojson,
    ".parquet": _load_geoparquet,
    ".geoparquet": _load_geoparquet,
}

"""Points in WKB against shapely, GeoJSON points, and CRS changes against pyproj."""

from __future__ import annotations

import json

import numpy as np
import pyproj
import pytest
import shapely

from tfrio.errors import GeoError
from tfrio.tables.points import (
    geo_metadata,
    lonlat,
    point_of_geojson,
    point_of_wkb,
    points_to_wkb,
)

X, Y = np.array([-104.5, 2.25, 180.0]), np.array([20.0, -33.125, 0.0])


def test_wkb_as_shapely_writes_it() -> None:
    encoded = [bytes(row) for row in points_to_wkb(X, Y)]
    assert encoded == list(shapely.to_wkb(shapely.points(X, Y), byte_order=1))
    assert [point_of_wkb(data) for data in encoded] == list(zip(X, Y, strict=True))


@pytest.mark.parametrize("byte_order", [0, 1])
@pytest.mark.parametrize("flavor", ["iso", "extended"])
def test_every_flavour_of_point(byte_order: int, flavor: str) -> None:
    solid = shapely.Point(1.5, -2.5, 7)
    data = shapely.to_wkb(solid, byte_order=byte_order, flavor=flavor)
    assert point_of_wkb(data) == (1.5, -2.5)
    placed = shapely.set_srid(shapely.Point(1.5, -2.5), 4326)
    assert point_of_wkb(shapely.to_wkb(placed, include_srid=True)) == (1.5, -2.5)


def test_other_geometries_are_named() -> None:
    assert point_of_wkb(shapely.to_wkb(shapely.box(0, 0, 1, 1))) == "Polygon"
    assert point_of_wkb(shapely.to_wkb(shapely.MultiPoint([(0, 1)]))) == "MultiPoint"
    assert point_of_wkb(b"\x01\x01\x00") == "a geometry that is cut short"
    assert point_of_geojson({"type": "LineString", "coordinates": [[0, 1], [2, 3]]}) == "LineString"
    assert point_of_geojson({"type": "Point", "coordinates": [3, 4, 5]}) == (3.0, 4.0)
    assert point_of_geojson({"type": "Point", "coordinates": []}) == "Point"
    assert point_of_geojson(None) is None


def test_points_change_their_crs() -> None:
    points = [(500_000.0, 4_500_000.0), None, (512_345.0, 4_400_000.0)]
    x, y, present = lonlat(points, "EPSG:32618", path="t.gpkg", to="EPSG:4326")
    assert present.tolist() == [True, False, True]
    transform = pyproj.Transformer.from_crs(32618, 4326, always_xy=True).transform
    expected = [transform(*point) for point in (points[0], points[2])]  # type: ignore[misc]
    np.testing.assert_allclose(np.stack((x, y), 1)[present], expected)
    same_x, same_y, _ = lonlat([(1.0, 2.0)], "EPSG:4326", path="t", to="EPSG:4326")
    assert (same_x[0], same_y[0]) == (1.0, 2.0)


def test_a_missing_or_unknown_crs_is_said() -> None:
    with pytest.raises(GeoError, match=r"t\.shp: the geometry has no CRS.*Pass crs="):
        lonlat([(1.0, 2.0)], None, path="t.shp", to="EPSG:4326")
    with pytest.raises(GeoError, match=r"t\.shp: CRS not understood"):
        lonlat([(1.0, 2.0)], "SR-ORG:6974", path="t.shp", to="EPSG:4326")


def test_geo_metadata() -> None:
    geo = json.loads(geo_metadata(X, Y, column="geometry", crs="EPSG:4326"))
    assert geo["primary_column"] == "geometry"
    column = geo["columns"]["geometry"]
    assert column["bbox"] == [-104.5, -33.125, 180.0, 20.0]
    assert "crs" not in column
    other = json.loads(geo_metadata(None, None, column="g", crs="EPSG:32618"))["columns"]["g"]
    assert other["crs"]["id"] == {"authority": "EPSG", "code": 32618}
    assert "bbox" not in other

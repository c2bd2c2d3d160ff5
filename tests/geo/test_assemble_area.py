"""Pixel areas against pyproj's geodesics."""

from __future__ import annotations

import numpy as np
import pyproj
import pytest

from tfrio.geo.assemble_area import pixel_area
from tfrio.geo.grid import Window
from tfrio.types import Affine6

GEOD = pyproj.Geod(ellps="WGS84")


def parallels(west: float, east: float, south: float, north: float) -> float:
    """Return the area in hectares between parallels, which geodesics only approach in steps."""
    steps = np.linspace(west, east, 200)
    x = np.r_[steps, steps[::-1]]
    y = np.r_[np.full(200, south), np.full(200, north)]
    return abs(GEOD.polygon_area_perimeter(x, y)[0]) / 10_000


@pytest.mark.parametrize("latitude", [-89.0, -33.5, 0.0, 51.25, 85.0])
def test_geographic_pixels_are_geodesic(latitude: float) -> None:
    affine = Affine6(0.5, 0, -70.0, 0, -0.25, latitude + 0.25)
    area = pixel_area(affine, "EPSG:4326").of(Window(3, 0, 2, 1))
    assert area.shape == (1, 1)
    expected = parallels(-68.5, -68.0, latitude, latitude + 0.25)
    assert area[0, 0] == pytest.approx(expected, rel=2e-6)


def test_the_whole_earth() -> None:
    area = pixel_area(Affine6(1, 0, -180, 0, -1, 90), "EPSG:4326").of(Window(0, 0, 360, 180))
    assert area.sum() * 360 == pytest.approx(51_006_562_172.4, rel=1e-9)


def test_south_up_rows_have_the_areas_of_their_latitudes() -> None:
    north_up = pixel_area(Affine6(1, 0, 0, 0, -1, 60), "EPSG:4326").of(Window(0, 0, 1, 3))
    south_up = pixel_area(Affine6(1, 0, 0, 0, 1, 57), "EPSG:4326").of(Window(0, 0, 1, 3))
    np.testing.assert_allclose(south_up, north_up[::-1], rtol=1e-12)


def test_projected_pixels_use_the_unit_of_the_map() -> None:
    metres = pixel_area(Affine6(30, 0.5, 0, -0.5, -30, 0), "EPSG:32618").of(Window(0, 0, 4, 2))
    assert metres.shape == (2, 1)
    assert metres[0, 0] == pytest.approx((30 * 30 - 0.5 * 0.5) / 10_000)
    # EPSG:2263 counts in US survey feet of 1200/3937 m.
    feet = pixel_area(Affine6(10, 0, 0, 0, -10, 0), "EPSG:2263").of(Window(0, 0, 1, 1))
    assert feet[0, 0] == pytest.approx((10 * 1200 / 3937) ** 2 / 10_000)


def test_tilted_geographic_pixels_vary_along_a_row() -> None:
    affine = Affine6(0.01, 0.002, 10, 0.002, -0.01, 50)
    area = pixel_area(affine, "EPSG:4326").of(Window(2, 1, 5, 3))
    assert area.shape == (3, 5)
    corners = np.array([(2, 1), (3, 1), (3, 2), (2, 2)], float)
    x = affine.a * corners[:, 0] + affine.b * corners[:, 1] + affine.c
    y = affine.d * corners[:, 0] + affine.e * corners[:, 1] + affine.f
    expected = abs(GEOD.polygon_area_perimeter(x, y)[0]) / 10_000
    assert area[0, 0] == pytest.approx(expected, rel=1e-6)
    assert area[0, 4] < area[0, 0]


def test_a_sphere_has_no_eccentricity() -> None:
    area = pixel_area(Affine6(1, 0, 0, 0, -1, 10), "+proj=longlat +R=6371000").of(
        Window(0, 0, 1, 1)
    )
    expected = 6_371_000**2 * np.radians(1) * (np.sin(np.radians(10)) - np.sin(np.radians(9)))
    assert area[0, 0] == pytest.approx(expected / 10_000)

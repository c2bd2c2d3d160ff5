"""Choosing a grid: plain numbers, and the origins of real Earth Engine exports."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrio.errors import GeoError
from tfrio.geo.frame import (
    METRES_PER_DEGREE,
    Bounds,
    Frame,
    covering_frame,
    dimension_frame,
    lattice_offset,
    snapped_frame,
)
from tfrio.geo.grid import Window
from tfrio.types import XY, Affine6

AFFINE = Affine6(30, 0, 500000, 0, -30, 4500000)
FRAME = Frame("EPSG:32618", AFFINE, XY(10, 7))
ROTATED = Frame("EPSG:32618", Affine6(30, 5, 500000, -4, -20, 4500000), XY(10, 7))


@pytest.mark.parametrize(
    ("scale", "left", "top"),
    [
        (10, -111.10489198130018, 33.66643139753254),
        (30, -122.70007617412975, 38.00008399118194),
        (100, -2.6374536741749153, 36.147308717685426),
        (100, 13.599595086285436, 45.40175277468474),
    ],
)
def test_real_origins_come_out_bit_for_bit(scale: float, left: float, top: float) -> None:
    pixel = scale / METRES_PER_DEGREE
    bounds = Bounds(left + 0.3 * pixel, top - 9.5 * pixel, left + 20.1 * pixel, top - 0.7 * pixel)
    frame = snapped_frame("EPSG:4326", pixel, bounds)
    assert (frame.affine.c, frame.affine.f) == (left, top)
    assert frame.size == XY(21, 10)


def test_real_pixel_sizes_come_out_bit_for_bit() -> None:
    assert 10 / METRES_PER_DEGREE == 8.983152841195215e-5
    assert 30 / METRES_PER_DEGREE == 2.6949458523585647e-4
    assert 100 / METRES_PER_DEGREE == 8.983152841195215e-4


def test_a_box_on_the_grid_is_not_grown() -> None:
    frame = snapped_frame("EPSG:32618", 30.0, Bounds(500010, 4499790, 500310, 4500000))
    assert frame == Frame("EPSG:32618", Affine6(30, 0, 500010, 0, -30, 4500000), XY(10, 7))


@given(st.floats(-500, 500), st.floats(-500, 500), st.floats(0.1, 90), st.floats(0.1, 70))
def test_snapped_frames_cover_their_box_and_no_more(
    left: float, bottom: float, width: float, height: float
) -> None:
    pixel = 7.3
    box = Bounds(left, bottom, left + width, bottom + height)
    frame = snapped_frame("EPSG:32618", pixel, box)
    found = frame.bounds
    slack = pixel * 1e-5
    assert found.left <= box.left + slack
    assert found.right >= box.right - slack
    assert found.bottom <= box.bottom + slack
    assert found.top >= box.top - slack
    assert box.left - found.left < pixel + slack
    assert found.top - box.top < pixel + slack
    assert math.isclose(found.left / pixel, round(found.left / pixel), abs_tol=1e-6)


def test_a_given_transform_keeps_its_corners() -> None:
    frame = covering_frame("EPSG:32618", AFFINE, Bounds(500070, 4499800, 500200, 4499935))
    assert frame == Frame("EPSG:32618", Affine6(30, 0, 500060, 0, -30, 4499940), XY(5, 5))
    south_up = Affine6(30, 0, 500000, 0, 30, 4499790)
    frame = covering_frame("EPSG:32618", south_up, Bounds(500070, 4499800, 500200, 4499935))
    assert frame.affine == Affine6(30, 0, 500060, 0, 30, 4499790)


def test_dimensions_divide_the_box() -> None:
    frame = dimension_frame("EPSG:32618", XY(10, 7), Bounds(500000, 4499790, 500300, 4500000))
    assert frame == FRAME
    with pytest.raises(GeoError, match="no area"):
        dimension_frame("EPSG:32618", XY(10, 7), Bounds(1, 2, 1, 3))


def test_an_empty_region_is_told() -> None:
    with pytest.raises(GeoError, match="holds no pixel"):
        snapped_frame("EPSG:32618", 30, Bounds(60, 60, 60, 60))


def test_pixels_of_a_rotated_grid() -> None:
    a, b, c, d, e, f = ROTATED.affine
    column, row = ROTATED.pixel_of(a * 3 + b * 2 + c, d * 3 + e * 2 + f)
    assert (column, row) == pytest.approx((3, 2))
    bounds = ROTATED.bounds
    assert bounds.top == 4500000
    assert bounds.left == 500000
    assert bounds.right == 500000 + 300 + 35


def test_boxes_and_crops() -> None:
    box = FRAME.box_of(Bounds(500031, 4499900, 500089, 4499941))
    assert box == Window(1, 1, 2, 3)
    assert FRAME.cropped(box).affine == Affine6(30, 0, 500030, 0, -30, 4499970)
    assert FRAME.box_of(FRAME.bounds) == FRAME.window


def test_shared_pixels_are_recognised() -> None:
    assert lattice_offset(FRAME, FRAME.cropped(Window(3, 2, 4, 4))) == (3, 2)
    assert lattice_offset(FRAME, FRAME.cropped(Window(-3, 9, 4, 4))) == (-3, 9)
    half = Frame("EPSG:32618", AFFINE._replace(c=500015), XY(10, 7))
    assert lattice_offset(FRAME, half) is None
    finer = Frame("EPSG:32618", AFFINE._replace(a=29.9), XY(10, 7))
    assert lattice_offset(FRAME, finer) is None
    south_up = Frame("EPSG:32618", AFFINE._replace(e=30), XY(10, 7))
    assert lattice_offset(FRAME, south_up) is None


def test_description_says_what_matters() -> None:
    assert FRAME.describe() == ("10 x 7 pixels of 30 x 30 in EPSG:32618, origin (500000, 4500000)")
    assert "rotated" in ROTATED.describe()

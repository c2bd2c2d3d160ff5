"""How the values of a record are read as planes: never guessed where two ways fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrio.errors import GeoError
from tfrio.geo.assemble_layout import Reading, planes, read_layout, readings
from tfrio.types import XY

PATCH = XY(4, 3)


@pytest.mark.parametrize(
    ("values", "kernel", "expected"),
    [
        (12, None, Reading(1, XY(4, 3))),
        (12, XY(2, 2), Reading(1, XY(4, 3))),
        (30, XY(2, 2), Reading(1, XY(6, 5), XY(1, 1))),
        (30, None, Reading(1, XY(6, 5), XY(1, 1))),
        (40, XY(4, 2), Reading(1, XY(8, 5), XY(2, 1))),
        (36, XY(1, 1), Reading(3, XY(4, 3))),
        (60, XY(2, 2), None),  # five planes of the patch or two with margins
        (1, None, Reading(1, XY(1, 1), XY(0, 0), XY(4, 3))),
    ],
)
def test_reading(values: int, kernel: XY | None, expected: Reading | None) -> None:
    if expected is None:
        with pytest.raises(GeoError, match=r"5 planes of 4x3; 2 planes of 6x5 \(kernel 2x2\)"):
            read_layout("p", values, PATCH, kernel=kernel)
        return
    reading = read_layout("p", values, PATCH, kernel=kernel)
    assert reading == expected
    assert reading.values == values


def test_twenty_values_fit_neither_size() -> None:
    with pytest.raises(GeoError, match="neither 4x3 nor 6x5") as caught:
        read_layout("p", 20, PATCH, kernel=XY(2, 2), where="pred.tfrecord, record 3")
    assert "pred.tfrecord, record 3: feature 'p' has 20 values" in str(caught.value)
    assert (caught.value.expected, caught.value.got) == (12, 20)


def test_an_uncommon_kernel_is_named_but_not_taken() -> None:
    # 20 = 4 x 5: a kernel of 1 x 2 would fit, and would let a wrong length pass.
    with pytest.raises(GeoError, match=r"pass kernel=\(1, 2\)"):
        read_layout("p", 20, PATCH)
    assert read_layout("p", 20, PATCH, kernel=XY(1, 2)).margin == XY(0, 1)


def test_depth_or_kernel_settles_an_ambiguous_number() -> None:
    patch = XY(128, 64)
    values = 4 * 128 * 64  # four planes, or one plane with a kernel as wide as the patch
    with pytest.raises(GeoError, match=r"4 planes of 128x64; 256x128 \(kernel 128x64\)"):
        read_layout("p", values, patch)
    assert read_layout("p", values, patch, depth=4).size == patch
    assert read_layout("p", values, patch, depth=1).margin == XY(64, 32)
    assert read_layout("p", values, patch, kernel=XY(1, 1)).depth == 4


def test_real_export_with_an_unknown_kernel() -> None:
    assert read_layout("sin_1", 316 * 316, XY(256, 256)).margin == XY(30, 30)


def test_coarse_grids_need_cells_that_divide_the_patch() -> None:
    patch = XY(60, 30)
    assert read_layout("p", 2, patch).scale == XY(30, 30)
    assert read_layout("p", 1, patch).scale == XY(60, 30)
    with pytest.raises(GeoError, match="neither 4x3"):
        read_layout("p", 4, PATCH)  # 2 x 2 cells do not divide 3 rows
    with pytest.raises(GeoError, match="not a grid of 2x2 cells that divides the patch 4x3"):
        read_layout("p", 4, PATCH, cells=XY(2, 2))
    assert read_layout("p", 6, PATCH, cells=XY(2, 1)).depth == 3


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 5), st.integers(0, 5), st.data())
def test_what_was_stored_is_always_among_the_readings(
    x: int, y: int, half_x: int, half_y: int, data: st.DataObject
) -> None:
    depth = data.draw(st.integers(1, 4))
    kernel = XY(max(2 * half_x, 1), max(2 * half_y, 1))
    values = depth * (x + 2 * half_x) * (y + 2 * half_y)
    found = readings(values, XY(x, y), kernel=kernel, depth=depth)
    margin = XY(half_x, half_y)
    assert any(reading.margin == margin and reading.size == XY(x, y) for reading in found)
    assert all(reading.values == values for reading in found)


def test_planes_crop_the_margin_on_the_right_axis() -> None:
    values = np.arange(2 * 3 * 8 * 5).reshape(2, -1)
    reading = Reading(3, XY(8, 5), XY(2, 1))
    cropped = planes(values, reading)
    assert cropped.shape == (2, 3, 3, 4)
    expected = values.reshape(2, 3, 5, 8)[:, :, 1:4, 2:6]
    np.testing.assert_array_equal(cropped, expected)
    interleaved = np.moveaxis(values.reshape(2, 3, 5, 8), 1, -1).reshape(2, -1)
    np.testing.assert_array_equal(planes(interleaved, reading, "hwc"), expected)

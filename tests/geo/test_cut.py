"""Array work: filling, depths, cutting; each against slow code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tfrio.geo.cut import cut, prepare, scalar_mask
from tfrio.geo.source import Block
from tfrio.geo.statistics import Moments, moments_of
from tfrio.types import Shape


@given(st.data())
def test_cut_copies_each_window(data: st.DataObject) -> None:
    planes, height, width = (data.draw(st.integers(1, n)) for n in (3, 5, 20))
    patch = data.draw(st.integers(1, width))
    starts = sorted(data.draw(st.lists(st.integers(0, width - patch), max_size=8)))
    strip = np.arange(planes * height * width, dtype="uint16").reshape(planes, height, width)
    out = np.zeros((len(starts), planes, height, patch), "float32")
    cut(strip, starts, Shape(height, patch), out)
    for number, start in enumerate(starts):
        assert np.array_equal(out[number], strip[:, :, start : start + patch])


def test_masked_pixels_are_filled_in_place() -> None:
    values = np.array([[1, 2], [3, 4]], "int16")
    masked = values == 3
    strip = prepare(Block([values], [masked]), [np.int16(-7)], [None], drop_masked=False)
    assert strip.values[0].tolist() == [[[1, 2], [-7, 4]]]
    assert strip.values[0].base is values


@given(
    hnp.arrays(bool, st.tuples(st.integers(1, 5), st.just(2), st.just(3))),
    st.integers(1, 7),
)
def test_valid_steps_close_up_in_order(masked: np.ndarray, depth: int) -> None:
    values = np.arange(masked.size, dtype="int32").reshape(masked.shape) + 1
    block = Block([values.copy()], [masked.copy()])
    strip = prepare(block, [np.int32(0)], [depth], drop_masked=True)
    for row in range(2):
        for column in range(3):
            valid = values[~masked[:, row, column], row, column].tolist()
            expected = (valid + [0] * depth)[:depth]
            assert strip.values[0][:, row, column].tolist() == expected
            hidden = strip.masked[0]
            flags = np.zeros(depth, bool) if hidden is None else hidden[:, row, column]
            assert flags.tolist() == [n >= len(valid) for n in range(depth)]


def test_an_array_band_is_masked_where_all_steps_are() -> None:
    masked = np.array([[[True, True]], [[True, False]]])
    found = scalar_mask(masked)
    assert found is not None
    assert found.tolist() == [[True, False]]
    assert scalar_mask(masked[1:] & False) is None
    assert scalar_mask(None) is None


@given(
    hnp.arrays("float64", st.integers(0, 40), elements=st.floats(-1e6, 1e6)),
    st.integers(0, 40),
)
def test_moments_merge_to_those_of_the_whole(values: np.ndarray, at: int) -> None:
    whole = moments_of(values, None)
    parts = moments_of(values[:at], None).merged(moments_of(values[at:], None))
    assert parts.count == whole.count == values.size
    if values.size:
        assert (parts.low, parts.high) == (values.min(), values.max())
        assert parts.mean == pytest.approx(values.mean(), abs=1e-6)
        row = parts.row()
        assert row.std == pytest.approx(values.std(), abs=1e-4)


def test_moments_of_small_integers_do_not_overflow() -> None:
    found = moments_of(np.full(1000, 255, "uint8"), None)
    assert (found.mean, found.squares) == (255, 0)


def test_moments_leave_out_masked_and_infinite_values() -> None:
    values = np.array([1.0, 9.0, np.inf, 3.0])
    found = moments_of(values, np.array([False, True, False, False]))
    assert found == Moments(2, 1.0, 3.0, 2.0, 2.0)
    assert moments_of(values, np.ones(4, bool)).row().mean is None

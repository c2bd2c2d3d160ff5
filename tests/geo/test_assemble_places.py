"""Where patches lie: overlaps divided, no pixel taken twice, none lost."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfrio.geo.assemble_places import GridPlaces, PointPlaces, kept_spans
from tfrio.geo.grid import Axis, PatchGrid, Window
from tfrio.types import XY

axes = st.builds(
    lambda length, patch, stride, edge: Axis(length + patch, patch, stride, edge),
    st.integers(0, 30),
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from(["drop", "pad", "shift"]),
)


@given(axes)
def test_each_pixel_is_taken_once(axis: Axis) -> None:
    taken = np.zeros(axis.length, int)
    covered = np.zeros(axis.length, bool)
    for index, (first, last) in enumerate(kept_spans(axis)):
        start = axis.start(index)
        assert start <= first <= last <= start + axis.patch
        taken[first:last] += 1
        covered[start : start + axis.patch] = True
    np.testing.assert_array_equal(taken, covered)


def test_an_overlap_is_divided_in_the_middle() -> None:
    assert kept_spans(Axis(10, 4, 2)) == [(0, 3), (3, 5), (5, 7), (7, 10)]


@given(axes, axes, st.data())
def test_touching_finds_every_patch(across: Axis, down: Axis, data: st.DataObject) -> None:
    grid = PatchGrid(
        XY(across.length, down.length),
        XY(across.patch, down.patch),
        stride=XY(across.stride, down.stride),
        edge=across.edge,
    )
    places = GridPlaces(grid)
    left, top = data.draw(st.integers(0, 30)), data.draw(st.integers(0, 30))
    window = Window(left, top, data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9)))
    near = set(places.touching(window))
    for index in range(places.total):
        kept = places.kept(index)
        meets = (
            kept.column < window.right
            and kept.right > window.column
            and kept.row < window.bottom
            and kept.bottom > window.row
        )
        assert meets <= (index in near)


def test_points_lie_where_they_were_taken() -> None:
    places = PointPlaces([(3, 1), (8, 6)], XY(4, 3), XY(10, 7))
    assert places.total == 2
    assert places.kept(1) == Window(8, 6, 2, 1)
    assert list(places.touching(Window(0, 0, 1, 1))) == [0, 1]

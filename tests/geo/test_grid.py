"""Patch grids: plain numbers in, plain numbers out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrio.errors import UsageError
from tfrio.geo.grid import Axis, PatchGrid, Window, kernel_candidates, margin_of, shift_affine
from tfrio.types import XY, Affine6

GEO_A = XY(10, 7)
PATCH = XY(4, 3)
AFFINE = Affine6(30, 0, 500000, 0, -30, 4500000)

pairs = st.builds(XY, st.integers(1, 40), st.integers(1, 40))
patches = st.builds(XY, st.integers(1, 9), st.integers(1, 9))
kernels = st.builds(XY, st.integers(1, 7), st.integers(1, 7))
edges = st.sampled_from(["drop", "pad", "shift"])


@st.composite
def grids(draw: st.DrawFn) -> PatchGrid:
    stride = draw(st.none() | patches)
    return PatchGrid(draw(pairs), draw(patches), draw(kernels), stride, draw(edges))


def starts(grid: PatchGrid) -> list[tuple[int, int]]:
    return [(w.column, w.row) for w in grid.windows()]


def test_drop_counts_row_major_and_says_what_is_lost() -> None:
    grid = PatchGrid(GEO_A, PATCH)
    assert starts(grid) == [(0, 0), (4, 0), (0, 3), (4, 3)]
    assert grid.coverage.dropped == 22
    assert str(grid.coverage) == "22 of 70 pixels dropped (right 2 cols, bottom 1 row)"
    assert grid.covered == XY(8, 6)


def test_drop_of_a_large_raster() -> None:
    grid = PatchGrid(XY(1000, 700), XY(256, 256))
    assert grid.total == 6
    assert grid.coverage.dropped == 306_784


def test_pad_reaches_beyond_the_raster() -> None:
    grid = PatchGrid(GEO_A, PATCH, edge="pad")
    assert (grid.columns, grid.rows) == (3, 3)
    assert grid.coverage.dropped == 0
    assert grid.coverage.padded == 9 * 12 - 70
    assert grid.window(8) == Window(8, 6, 4, 3)
    assert grid.owned(8) == Window(8, 6, 2, 1)
    assert str(grid.coverage) == "all 70 pixels covered"


def test_shift_moves_the_last_inward_and_counts_each_pixel_once() -> None:
    grid = PatchGrid(GEO_A, PATCH, edge="shift")
    assert [c for c, _ in starts(grid)][:3] == [0, 4, 6]
    assert [r for _, r in starts(grid)][::3] == [0, 3, 4]
    assert sum(grid.owned(i).pixels for i in range(grid.total)) == 70
    assert grid.owned(8) == Window(8, 6, 2, 1)
    assert not grid.regular
    assert grid.affine(AFFINE, 8) == Affine6(30, 0, 500180, 0, -30, 4499880)


def test_shift_is_regular_where_patches_divide_the_raster() -> None:
    assert PatchGrid(XY(8, 6), PATCH, edge="shift").regular


def test_stride() -> None:
    grid = PatchGrid(GEO_A, PATCH, stride=XY(2, 3))
    assert (grid.columns, grid.rows) == (4, 2)
    values = [100 * row + column for column, row in starts(grid)]
    assert values == [0, 2, 4, 6, 300, 302, 304, 306]
    assert not grid.regular
    assert grid.coverage.repeated == 8 * 12 - 60


def test_kernel_gives_half_on_each_side() -> None:
    grid = PatchGrid(GEO_A, PATCH, kernel=XY(5, 2))
    assert grid.margin == XY(2, 1)
    assert grid.padded == XY(8, 5)
    assert grid.padded_window(3) == Window(2, 2, 8, 5)
    assert margin_of(XY(1, 1)) == XY(0, 0)
    assert PatchGrid(XY(600, 600), XY(256, 256), XY(60, 60)).padded == XY(316, 316)


def test_an_int_or_a_pair_will_do_and_nonsense_is_refused() -> None:
    with pytest.raises(UsageError, match="edge must be"):
        PatchGrid(GEO_A, PATCH, edge="crop")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="patch must be two whole numbers"):
        PatchGrid(GEO_A, XY(0, 3))
    with pytest.raises(IndexError, match="patch 4 of 4"):
        PatchGrid(GEO_A, PATCH).window(4)


def test_stride_wider_than_the_patch_leaves_gaps() -> None:
    grid = PatchGrid(GEO_A, XY(3, 2), stride=XY(5, 4))
    assert starts(grid) == [(0, 0), (5, 0), (0, 4), (5, 4)]
    assert grid.coverage.covered == 24


@given(grids())
@settings(max_examples=500, deadline=None)
def test_owned_windows_are_disjoint_and_make_up_what_is_covered(grid: PatchGrid) -> None:
    seen = np.zeros(grid.size.shape.size, int).reshape(grid.size.y, grid.size.x)
    touched = np.zeros_like(seen)
    for index in range(grid.total):
        seen[grid.owned(index).slices] += 1
        touched[grid.window(index).clipped(grid.size).slices] += 1
    coverage = grid.coverage
    assert seen.max(initial=0) <= 1
    assert ((seen > 0) == (touched > 0)).all()
    assert coverage.covered == int(seen.sum())
    assert coverage.covered + coverage.dropped == seen.size
    assert coverage.repeated == int(touched.sum()) - coverage.covered
    stored = grid.total * grid.patch.x * grid.patch.y
    assert coverage.padded == stored - int(touched.sum())
    if grid.edge != "drop" and grid.step.x <= grid.patch.x and grid.step.y <= grid.patch.y:
        assert coverage.dropped == 0


@given(grids())
@settings(max_examples=200, deadline=None)
def test_every_patch_begins_inside_and_drop_and_shift_stay_inside(grid: PatchGrid) -> None:
    for window in grid.windows():
        assert 0 <= window.column < grid.size.x
        assert 0 <= window.row < grid.size.y
        fits = grid.patch.x <= grid.size.x and grid.patch.y <= grid.size.y
        if grid.edge == "drop" or (grid.edge == "shift" and fits):
            assert window.clipped(grid.size) == window


@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 12), edges)
def test_axis_count_is_the_number_of_starts_that_qualify(
    length: int, patch: int, stride: int, edge: str
) -> None:
    axis = Axis(length, patch, stride, edge)  # type: ignore[arg-type]
    count, reached = 0, 0
    while count * stride < length and (reached < length or stride > patch):
        if edge == "drop" and count * stride + patch > length:
            break
        if reached >= length:
            break
        reached = count * stride + patch
        count += 1
    assert axis.count == count


def test_windows_clip_to_nothing_outside() -> None:
    assert Window(-5, 2, 3, 2).clipped(GEO_A).pixels == 0
    assert Window(9, 6, 4, 4).clipped(GEO_A) == Window(9, 6, 1, 1)
    assert Window(1, 2, 3, 4).moved(10, 20).slices == (slice(22, 26), slice(11, 14))


def test_affine_shift_uses_all_six_terms() -> None:
    rotated = Affine6(30, 0.5, 500000, -0.5, -30, 4500000)
    assert shift_affine(rotated, 4, 3) == Affine6(30, 0.5, 500121.5, -0.5, -30, 4499908)


@pytest.mark.parametrize(
    ("patch", "values", "expected"),
    [
        (XY(256, 256), 99_856, [XY(60, 60)]),
        (XY(4, 3), 12, [XY(0, 0)]),
        (XY(4, 3), 30, [XY(2, 2), XY(6, 0)]),
        (XY(4, 3), 20, [XY(0, 2)]),
        (XY(256, 128), 258 * 130, [XY(2, 2)]),
        (XY(4, 3), 7, []),
    ],
)
def test_kernel_candidates(patch: XY, values: int, expected: list[XY]) -> None:
    assert kernel_candidates(patch, values) == expected


@given(patches, kernels)
def test_the_true_kernel_is_among_the_candidates(patch: XY, kernel: XY) -> None:
    grid = PatchGrid(XY(40, 40), patch, kernel)
    found = kernel_candidates(patch, grid.padded.x * grid.padded.y)
    assert XY(2 * grid.margin.x, 2 * grid.margin.y) in found

"""Blending: constant in, constant out; a plain-array oracle for the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrio.geo.assemble_blend import Blend, RowBlender, patch_weights
from tfrio.geo.grid import PatchGrid
from tfrio.types import XY


def blended(grid: PatchGrid, tiles: list[Any], blend: Blend) -> np.ndarray:
    """Run tiles through the row blender and put the finished rows together."""
    blender = RowBlender(grid.size, tiles[0].shape[0], grid.padded.y)
    weights = patch_weights(grid.padded, blend)
    out = np.full((tiles[0].shape[0], grid.size.y, grid.size.x), -1.0)
    for index, tile in enumerate(tiles):
        window = grid.padded_window(index)
        finished = list(blender.finish(max(window.row, 0)))
        blender.add(window, tile, weights)
        for rows, values, _ in finished:
            out[(slice(None), *rows.slices)] = values
    for rows, values, _ in blender.finish(grid.size.y):
        out[(slice(None), *rows.slices)] = values
    return out


def oracle(grid: PatchGrid, tiles: list[Any], blend: Blend) -> np.ndarray:
    """Sum into whole arrays large enough for every margin."""
    pad = 40
    shape = (tiles[0].shape[0], grid.size.y + 2 * pad, grid.size.x + 2 * pad)
    sums, weights = np.zeros(shape), np.zeros(shape)
    weight = patch_weights(grid.padded, blend)
    for index, tile in enumerate(tiles):
        rows, columns = grid.padded_window(index).moved(pad, pad).slices
        sums[:, rows, columns] += tile * weight
        weights[:, rows, columns] += weight
    with np.errstate(invalid="ignore"):
        return (sums / weights)[:, pad:-pad, pad:-pad]


grids = st.builds(
    lambda w, h, pw, ph, kx, ky, sx, sy: PatchGrid(
        XY(w + pw, h + ph), XY(pw, ph), XY(2 * kx or 1, 2 * ky or 1), XY(min(sx, pw), min(sy, ph))
    ),
    *(st.integers(0, 12), st.integers(0, 12), st.integers(1, 7), st.integers(1, 7)),
    *(st.integers(0, 3), st.integers(0, 3), st.integers(1, 7), st.integers(1, 7)),
)


@settings(max_examples=60, deadline=None)
@given(grids, st.sampled_from(["mean", "hann"]), st.integers(0, 2**31))
def test_equals_whole_array_sums(grid: PatchGrid, blend: Blend, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tiles = [rng.normal(size=(2, grid.padded.y, grid.padded.x)) for _ in range(grid.total)]
    np.testing.assert_allclose(blended(grid, tiles, blend), oracle(grid, tiles, blend), rtol=1e-9)


@settings(max_examples=60, deadline=None)
@given(grids, st.floats(-1e6, 1e6, width=32))
def test_constant_in_constant_out(grid: PatchGrid, constant: float) -> None:
    tile = np.full((1, grid.padded.y, grid.padded.x), constant)
    result = blended(grid, [tile] * grid.total, "hann").astype(np.float32)
    reach = grid.covered
    np.testing.assert_array_equal(result[0, : reach.y, : reach.x], np.float32(constant))


def test_nan_counts_for_nothing() -> None:
    grid = PatchGrid(XY(6, 3), XY(4, 3), stride=XY(2, 3))
    first, second = np.full((1, 3, 4), 1.0), np.full((1, 3, 4), 3.0)
    first[0, 1, 2] = np.nan
    first[0, 2, 0] = np.nan
    result = blended(grid, [first, second], "mean")[0]
    assert result[0].tolist() == [1, 1, 2, 2, 3, 3]
    assert result[1, 2] == 3
    assert np.isnan(result[2, 0])


@pytest.mark.parametrize("blend", ["mean", "hann"])
def test_weights_are_positive_and_symmetric(blend: Blend) -> None:
    weights = patch_weights(XY(7, 4), blend)
    assert weights.shape == (4, 7)
    assert (weights > 0).all()
    np.testing.assert_allclose(weights, weights[::-1, ::-1])

"""Patches that share pixels: each pixel gets a value where a patch has one, and counts once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.geo.predictions import AFFINE, GEO_A, read, write
from tfrio.geo import PatchesAt, array_source, export_image, import_image, open_export
from tfrio.geo.assemble_cover import Cover, common, spare_patches
from tfrio.geo.assemble_places import GridPlaces
from tfrio.geo.grid import PatchGrid, Window
from tfrio.types import XY

if TYPE_CHECKING:
    from pathlib import Path

windows = st.builds(
    Window, st.integers(-3, 12), st.integers(-3, 9), st.integers(0, 6), st.integers(0, 5)
)


def painted(window: Window) -> np.ndarray:
    """Return the pixels of a window on a canvas that holds all of them."""
    canvas = np.zeros((30, 40), bool)
    canvas[window.moved(10, 10).slices] = True
    return canvas


@given(st.lists(windows, max_size=8), windows, st.integers(-1, 8))
def test_a_later_window_hides_an_earlier_one(
    given_windows: list[Window], asked: Window, number: int
) -> None:
    cover = Cover(given_windows)
    hit = [n for n, w in enumerate(given_windows) if (painted(w) & painted(asked)).any()]
    assert cover.meeting(asked) == hit
    expected = np.zeros((30, 40), bool)
    for later in given_windows[max(number + 1, 0) :]:
        expected |= painted(later)
    hidden = cover.hidden(asked, number)
    part = expected[asked.moved(10, 10).slices]
    np.testing.assert_array_equal(np.zeros_like(part) if hidden is None else hidden, part)


@given(windows, windows)
def test_common_pixels(one: Window, other: Window) -> None:
    shared = common(one, other)
    both = painted(one) & painted(other)
    assert shared.pixels == both.sum()
    if shared.pixels:
        np.testing.assert_array_equal(painted(shared), both)


def test_nobody_stands_in_where_nothing_is_shared_or_missing() -> None:
    apart = GridPlaces(PatchGrid(XY(10, 7), XY(4, 3)))
    assert spare_patches(apart, [0, 2]) == frozenset()
    strided = GridPlaces(PatchGrid(XY(10, 7), XY(4, 3), stride=XY(2, 3)))
    assert spare_patches(strided, range(strided.total)) == frozenset()
    assert spare_patches(strided, [0, 2, 3, 4, 5, 6, 7]) == {0, 2}


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_every_pixel_of_some_patch_has_its_value(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("cover")
    patch = XY(data.draw(st.integers(2, 5)), data.draw(st.integers(2, 4)))
    edge = data.draw(st.sampled_from(["drop", "pad", "shift"]))
    stride = (data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4)))
    values = GEO_A.astype(np.int32)
    source = array_source(values, AFFINE, crs="EPSG:32618")
    if edge == "shift":
        stride = patch
    export_image(source, folder / "a", patch=patch, stride=stride, edge=edge, dtype="native")
    places = GridPlaces(PatchGrid(XY(10, 7), patch, stride=XY.of(stride), edge=edge))
    every = st.lists(st.integers(0, places.total - 1), unique=True, min_size=1)
    there = data.draw(every)
    padded = np.pad(values, ((0, 8), (0, 8)), constant_values=-5)
    path = write(
        folder / "p.tfrecord",
        ({"b1": padded[places.window(i).slices].ravel(), "patch_index": i} for i in there),
    )
    report = import_image(
        path, folder / "m.tif", mixer=folder / "a", partial=True, nodata=-9, check="off"
    )
    covered = np.zeros((40, 40), bool)
    for index in there:
        covered[places.window(index).slices] = True
    map_ = read(folder / "m.tif")[0]
    height, width = map_.shape
    covered = covered[:height, :width]
    np.testing.assert_array_equal(map_, np.where(covered, padded[:height, :width], -9))
    assert report.covered == covered.sum()
    assert report.missing == (~covered).sum()


def test_pixels_of_a_patch_left_out_come_from_its_neighbours(tmp_path: Path) -> None:
    line = np.arange(1.0, 21.0, dtype=np.float32).reshape(1, 20)
    line[0, 4:12] = np.nan
    source = array_source(line, AFFINE, crs="EPSG:32618")
    export_image(
        source, tmp_path / "a", patch=(8, 1), stride=(4, 1), masked_threshold=0.4, default_value=-1
    )
    report = import_image(tmp_path / "a-*.gz", tmp_path / "m.tif", mixer=tmp_path / "a")
    assert (report.patches, report.covered) == (1, 8)
    np.testing.assert_array_equal(read(tmp_path / "m.tif")[0, 0, 12:], line[0, 12:])
    lazy = open_export(tmp_path / "a", masked=True)
    np.testing.assert_array_equal(lazy.values.ravel()[12:], line[0, 12:])


def test_patches_at_points_count_each_pixel_once(tmp_path: Path) -> None:
    points = [(500060, 4499940), (500061, 4499941), (500120, 4499940), (500240, 4499850)]
    source = array_source(GEO_A.astype(np.uint8) % 3, AFFINE, crs="EPSG:32618")
    at = PatchesAt(where=points, crs="EPSG:32618")
    export_image(source, tmp_path / "a", patch=(3, 3), at=at, dtype="native", edge="pad")
    report = import_image(tmp_path / "a-*.gz", tmp_path / "m.tif", mixer=tmp_path / "a")
    map_ = read(tmp_path / "m.tif")[0]
    valid = map_ != report.nodata
    assert report.covered == valid.sum()
    assert sum(area.pixels for area in report.classes) == valid.sum()
    assert report.covered + report.missing == map_.size


@pytest.mark.parametrize("blend", ["crop", "mean"])
def test_exports_that_overlap_count_shared_pixels_once(tmp_path: Path, blend: str) -> None:
    values = GEO_A.astype(np.float32)
    right = AFFINE._replace(c=AFFINE.c + 4 * AFFINE.a)
    for name, part, affine in (("a", values[:, :8], AFFINE), ("b", values[:, 4:] + 0.5, right)):
        source = array_source(part[:6], affine, crs="EPSG:32618")
        export_image(source, tmp_path / name, patch=(2, 3))
    report = import_image(
        [f"{tmp_path}/a-*.gz", f"{tmp_path}/b-*.gz"],
        tmp_path / "m.tif",
        mixer=[tmp_path / "a", tmp_path / "b"],
        blend=blend,  # type: ignore[arg-type]
    )
    assert report.covered == 60
    assert "the exports overlap" in str(report)
    expected = values[:6].copy()
    expected[:, 4:] += 0.5
    np.testing.assert_array_equal(read(tmp_path / "m.tif")[0], expected)

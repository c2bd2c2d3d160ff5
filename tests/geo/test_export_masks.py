"""Masks on their way out: found by value, NaN, alpha or mask band, kept in the manifest."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import rasterio
from rasterio.enums import ColorInterp

from tests.geo.rasters import AFFINE, examples, geo_a, tiles, write_raster
from tfrio.errors import GeoError, TfrioWarning, UsageError
from tfrio.geo import array_source, export_image, read_manifest


def classes() -> np.ndarray:
    """Return classes 0 to 8 with a corner of nodata 255."""
    values = (np.arange(42) % 9).astype("uint8").reshape(6, 7)
    values[:2, :3] = 255
    return values


def test_the_fill_is_the_nodata_tag_so_that_class_0_stays_a_class(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", classes(), names=["b"], nodata=255)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = export_image(path, tmp_path / "s", patch=(7, 3), dtype="native")
    written = b"".join(row["b"][0] for row in examples(report.shards))
    assert list(written) == classes().ravel().tolist()
    assert report.content.bands[0].nodata == 255
    assert report.content.bands[0].fill == 255
    assert report.masked == 6


def test_a_fill_that_is_a_valid_value_warns(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", classes(), names=["b"], nodata=255)
    with pytest.warns(TfrioWarning, match="band b: masked pixels were written as 0, which valid"):
        report = export_image(path, tmp_path / "s", patch=(7, 3), default_value=0)
    manifest = read_manifest(report.manifest)
    assert np.array_equal(manifest.masked(0)[0], classes()[:3] == 255)
    assert not manifest.masked(1).any()


def test_without_masked_pixels_no_fill_warns(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", np.zeros((6, 7), "uint8"), nodata=255)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        export_image(path, tmp_path / "s", patch=(3, 2), kernel=(2, 4), default_value=0)


def test_a_fill_is_compared_in_the_precision_of_the_band(tmp_path: Path) -> None:
    values = np.full((3, 8), 0.5, "float32")
    values[1, 2] = 2147483647  # becomes 2147483648 as float32
    path = write_raster(tmp_path / "a.tif", values, names=["b"], nodata=2147483647)
    report = export_image(path, tmp_path / "s", patch=(4, 3), default_value=-1)
    assert tiles(report.shards, "b", 3, 4)[0][1, 2] == -1
    assert report.masked == 1


def test_nan_is_masked_with_or_without_a_tag(tmp_path: Path) -> None:
    values = np.full((3, 8), 0.5, "float32")
    values[0, 5] = np.nan
    for nodata in (None, np.nan, -7.0):
        path = write_raster(tmp_path / "a.tif", values, names=["b"], nodata=nodata)
        report = export_image(path, tmp_path / "s", patch=(4, 3), overwrite=True)
        assert report.masked == 1
        fill = -7 if nodata == -7 else 0
        assert tiles(report.shards, "b", 3, 4)[1][0, 1] == fill


def test_a_mask_band_hides_pixels_of_all_bands(tmp_path: Path) -> None:
    valid = np.ones((7, 10), np.uint8)
    valid[1, 2] = 0
    stack = np.stack([geo_a(), geo_a() + 1])
    path = write_raster(tmp_path / "a.tif", stack, names=["b", "c"], mask=valid)
    report = export_image(path, tmp_path / "s", patch=(4, 3), default_value=-5)
    first = examples(report.shards)[0]
    assert first["b"][6] == first["c"][6] == -5
    assert read_manifest(report.manifest).masks == report.content.masks
    assert list(report.content.masks) == [0]
    assert len(report.content.masks[0]) == 1


def test_alpha_masks_and_is_not_exported(tmp_path: Path) -> None:
    alpha = np.full((7, 10), 200, "uint8")
    alpha[0, 0] = 0
    stack = np.stack([np.full((7, 10), 9, "uint8"), np.full((7, 10), 8, "uint8"), alpha])
    path = write_raster(tmp_path / "a.tif", stack, photometric="MINISBLACK")
    with rasterio.open(path, "r+") as out:
        out.colorinterp = [ColorInterp.gray, ColorInterp.undefined, ColorInterp.alpha]
    report = export_image(path, tmp_path / "s", patch=(4, 3), default_value=1)
    first = examples(report.shards)[0]
    assert sorted(first) == ["b1", "b2"]
    assert first["b1"][:2] == [1, 9]


def test_masks_of_bands_may_differ(tmp_path: Path) -> None:
    one, two = geo_a(), geo_a()
    one[0, 0] = two[1, 1] = -1
    path = write_raster(tmp_path / "a.tif", np.stack([one, two]), names=["b", "c"], nodata=-1)
    report = export_image(path, tmp_path / "s", patch=(4, 3))
    masked = read_manifest(report.manifest).masked(0)
    assert masked.shape == (2, 3, 4)
    assert np.argwhere(masked).tolist() == [[0, 0, 0], [1, 1, 1]]
    assert report.masked == 2


def test_masked_pixels_count_once_where_patches_overlap(tmp_path: Path) -> None:
    values = geo_a()
    values[4:6, 6:8] = -1
    path = write_raster(tmp_path / "a.tif", values, nodata=-1)
    for options in ({"stride": (1, 2)}, {"edge": "shift"}, {"edge": "pad"}):
        report = export_image(path, tmp_path / "s", patch=(4, 3), overwrite=True, **options)  # type: ignore[arg-type]
        assert report.masked == 4, options


def test_masked_arrays_keep_their_mask(tmp_path: Path) -> None:
    values = np.ma.masked_equal(geo_a(), 101)
    report = export_image(
        array_source(values, AFFINE, crs="EPSG:32618", names=["b"]), tmp_path / "s",
        patch=(4, 3), default_value=-3,
    )  # fmt: skip
    assert tiles(report.shards, "b", 3, 4)[0][1, 1] == -3
    assert values.data[1, 1] == 101


def test_the_callers_array_is_left_alone(tmp_path: Path) -> None:
    values = geo_a()
    before = values.copy()
    source = array_source(values, AFFINE, crs="EPSG:32618", nodata=101, names=["b"])
    export_image(source, tmp_path / "s", patch=(4, 3), default_value=-3)
    assert np.array_equal(values, before)


def test_mask_band_option(tmp_path: Path) -> None:
    clear = np.ones((7, 10), "int16")
    clear[0, 1] = 0
    path = write_raster(tmp_path / "a.tif", np.stack([geo_a(), clear]), names=["b", "qa"])
    report = export_image(path, tmp_path / "s", patch=(4, 3), mask_band="qa", default_value=-1)
    first = examples(report.shards)[0]
    assert list(first) == ["b"]
    assert first["b"][:3] == [0, -1, 2]
    with pytest.raises(UsageError, match="no band 'clouds'; bands are b, qa"):
        export_image(path, tmp_path / "t", patch=(4, 3), mask_band="clouds")
    with pytest.raises(UsageError, match="only band"):
        export_image(path, tmp_path / "t", patch=(4, 3), bands=["qa"], mask_band="qa")


def test_mask_outside_a_polygon(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", geo_a(), names=["b"])
    x, y = 500000, 4500000
    triangle = {"type": "Polygon", "coordinates": [[[x, y], [x + 110, y], [x, y - 110], [x, y]]]}
    report = export_image(
        path, tmp_path / "s", patch=(4, 4), region=triangle, region_crs="EPSG:32618",
        mask_outside=True, default_value=-1,
    )  # fmt: skip
    (tile,) = tiles(report.shards, "b", 4, 4)
    assert tile.tolist() == [[0, 1, 2, -1], [100, 101, -1, -1], [200, -1, -1, -1], [-1] * 4]
    with pytest.raises(UsageError, match="give a region"):
        export_image(path, tmp_path / "t", patch=(4, 4), mask_outside=True)


def test_masks_can_be_left_out_of_the_manifest(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", classes(), nodata=255)
    report = export_image(path, tmp_path / "s", patch=(7, 3), keep_masks=False)
    assert report.content.masks == {}
    assert report.masked == 6


def test_fill_that_no_integer_can_be(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", geo_a())
    with pytest.raises(GeoError, match="cannot be stored in band b1"):
        export_image(path, tmp_path / "s", patch=(4, 3), default_value=float("nan"))


def test_values_beyond_float32_are_noted_once_by_band(tmp_path: Path) -> None:
    values = geo_a("float64")
    values[5, 6] = -1e39
    fine = {"fine": geo_a("float64"), "inf": np.where(geo_a() > 0, geo_a("float64"), np.inf)}
    source = array_source({**fine, "huge": values}, AFFINE, crs="EPSG:32618")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = export_image(source, tmp_path / "s", patch=(5, 3), workers=2)
    assert [str(warning.message).partition(":")[0] for warning in caught] == ["band huge"]
    assert report.notes == (str(caught[0].message),)
    assert "became infinite" in report.notes[0]
    masked = array_source(values, AFFINE, crs="EPSG:32618", nodata=-1e39)
    notes = export_image(masked, tmp_path / "t", patch=(5, 3), default_value=-1).notes
    assert notes == ()

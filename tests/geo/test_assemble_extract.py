"""Patches as single rasters, compared with the raster they were cut from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import rasterio

from tests.geo.predictions import AFFINE, GEO_A, MIX_A, tile, write
from tfrio.errors import UsageError
from tfrio.geo import array_source, export_image
from tfrio.geo.assemble_extract import extract_patches

if TYPE_CHECKING:
    from pathlib import Path


def test_every_patch_tells_its_transform(tmp_path: Path) -> None:
    source = array_source(GEO_A, AFFINE, crs="EPSG:32618")
    export_image(source, tmp_path / "a", patch=(4, 3), kernel=(2, 4), edge="pad")
    files = extract_patches(tmp_path / "a", tmp_path / "out", index="memory")
    assert len(files) == 9
    counted = 0
    for path in files:
        with rasterio.open(path) as dataset:
            values = dataset.read(1)
            column = round((dataset.transform.c - 500_000) / 30)
            row = round((4_500_000 - dataset.transform.f) / 30)
            height, width = values.shape
            assert dataset.crs == "EPSG:32618"
        np.testing.assert_array_equal(values, GEO_A[row : row + height, column : column + width])
        counted += values.size
    assert counted == GEO_A.size


def test_masked_pixels_are_nodata(tmp_path: Path) -> None:
    values = GEO_A.astype(np.float32)
    values[1:3, 2:7] = np.nan
    holes = np.where(np.isnan(values), 9999, values).astype(np.int16)
    sources = {
        "float": array_source({"a": values}, AFFINE, crs="EPSG:32618"),
        "whole": array_source({"a": holes}, AFFINE, crs="EPSG:32618", nodata=9999),
    }
    for name, source in sources.items():
        export_image(source, tmp_path / name, patch=(4, 3), kernel=(3, 1), default_value=-1)
        for path in extract_patches(tmp_path / name, tmp_path / f"{name}-out", index="memory"):
            with rasterio.open(path) as dataset:
                column = round((dataset.transform.c - 500_000) / 30)
                row = round((4_500_000 - dataset.transform.f) / 30)
                part = values[row : row + 3, column : column + 4]
                np.testing.assert_array_equal(dataset.read_masks(1) == 0, np.isnan(part))
                kept = dataset.read(1, masked=True)
                np.testing.assert_array_equal(kept.compressed(), part[~np.isnan(part)])
                assert dataset.dtypes == ({"float": "float32", "whole": "int16"}[name],)


def test_files_that_exist_are_left_alone(tmp_path: Path) -> None:
    source = array_source(GEO_A, AFFINE, crs="EPSG:32618")
    export_image(source, tmp_path / "a", patch=(4, 3))
    first = extract_patches(tmp_path / "a", tmp_path / "out", index="memory")
    with pytest.raises(FileExistsError, match="patch-000000.tif exists already"):
        extract_patches(tmp_path / "a", tmp_path / "out", index="memory")
    again = extract_patches(tmp_path / "a", tmp_path / "out", index="memory", overwrite=True)
    assert again == first


def test_some_patches_of_predictions(tmp_path: Path) -> None:
    rows = ({"a": tile(i).ravel(), "b": 2 * tile(i).ravel()} for i in range(4))
    path = write(tmp_path / "p.tfrecord", rows)
    (file,) = extract_patches(MIX_A, tmp_path / "out", records=path, patches=[3], index="memory")
    with rasterio.open(file) as dataset:
        assert dataset.descriptions == ("a", "b")
        np.testing.assert_array_equal(dataset.read(2), 2 * tile(3))
        assert (dataset.transform.c, dataset.transform.f) == (500_120, 4_499_910)
    with pytest.raises(UsageError, match="no patch 4; there are 4"):
        extract_patches(MIX_A, tmp_path / "out", records=path, patches=[4], index="memory")

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

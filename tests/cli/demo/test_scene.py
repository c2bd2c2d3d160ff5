"""The demo's inputs are the real ones, and are written as they say."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tfrio.cli.demo import scene

rasterio = pytest.importorskip("rasterio")


def test_the_scene_is_the_real_one_with_a_masked_corner() -> None:
    values = scene.load_scene()
    assert values.shape == (4, 300, 300)
    assert values.dtype == np.uint16
    legs = scene.MASKED_CORNER
    masked = ~values.any(axis=0)
    assert masked.sum() == legs * (legs + 1) // 2
    assert masked[0, -legs:].all()
    assert masked[:legs, -1].all()
    assert not masked[0, : -legs - 1].any()
    assert 1000 < np.median(values[3]) < 4000  # near infrared over fields and forest


def test_spectra_have_their_labels(tmp_path: Path) -> None:
    samples = scene.load_samples()
    assert Counter(samples.labels) == {"Vegetation": 46, "Urban": 37, "Water": 37}
    assert samples.reflectance.shape == (120, 4)
    path = tmp_path / "with space.csv"
    samples.write_csv(path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 120
    assert list(rows[0]) == ["B2", "B3", "B4", "B8", "class"]
    assert float(rows[7]["B8"]) == samples.reflectance[7, 3]


def test_scene_file_has_grid_and_nodata(tmp_path: Path) -> None:
    values = scene.load_scene()
    scene.write_scene(tmp_path / "scene.tif", values)
    with rasterio.open(tmp_path / "scene.tif") as file:
        assert file.crs.to_epsg() == 32723
        assert file.transform[:6] == (10, 0, 600_000, 0, -10, 7_700_000)
        assert file.nodata == 0
        assert file.descriptions == scene.BANDS
        np.testing.assert_array_equal(file.read(), values)

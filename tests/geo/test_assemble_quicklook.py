"""Quicklooks, read back with pillow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import rasterio
from PIL import Image

from tests.geo.predictions import AFFINE, MIX_A, tile, write
from tfrio.geo import import_image
from tfrio.geo.assemble_quicklook import default_colors, quicklook

if TYPE_CHECKING:
    from pathlib import Path


def raster(path: Path, values: np.ndarray[Any, Any], **more: Any) -> Path:
    bands, height, width = values.shape
    profile = {"driver": "GTiff", "count": bands, "height": height, "width": width}
    with rasterio.open(
        path,
        "w",
        dtype=values.dtype,
        crs="EPSG:32618",
        transform=rasterio.Affine(*AFFINE),
        **profile,
        **more,
    ) as dataset:
        dataset.write(values)
    return path


def drawn(path: Any) -> np.ndarray[Any, Any]:
    return np.asarray(Image.open(path))


def test_classes_have_their_colours_and_nodata_is_clear(tmp_path: Path) -> None:
    values = np.array([[[0, 1, 255], [2, 1, 0]]], np.uint8)
    source = raster(tmp_path / "c.tif", values, nodata=255)
    picture = drawn(quicklook(source, tmp_path / "c.png", colors={1: (9, 8, 7, 255)}))
    assert picture.shape == (2, 3, 4)
    assert picture[0, 1].tolist() == [9, 8, 7, 255]
    assert picture[0, 2, 3] == 0
    assert picture[0, 0].tolist() == picture[1, 2].tolist() != picture[1, 0].tolist()


def test_bands_are_stretched(tmp_path: Path) -> None:
    ramp = np.linspace(0, 1, 200, dtype=np.float32).reshape(1, 10, 20)
    grey = drawn(quicklook(raster(tmp_path / "g.tif", ramp), tmp_path / "g.png"))
    assert (grey[:, :, 0] == grey[:, :, 1]).all()
    assert (grey[0, 0, 0], grey[-1, -1, 0]) == (0, 255)
    three = np.concatenate([ramp, 1 - ramp, 0 * ramp])
    color = drawn(quicklook(raster(tmp_path / "t.tif", three), tmp_path / "t.png"))
    assert color[0, 0].tolist() == [0, 255, 0, 255]
    holes = np.full((1, 4, 5), np.nan, np.float32)
    empty = drawn(quicklook(raster(tmp_path / "n.tif", holes, nodata=np.nan), tmp_path / "n.png"))
    assert (empty[:, :, 3] == 0).all()


def test_large_rasters_are_drawn_small(tmp_path: Path) -> None:
    values = np.zeros((1, 30, 90), np.float32)
    picture = drawn(quicklook(raster(tmp_path / "l.tif", values), tmp_path / "l.png", size=30))
    assert picture.shape == (10, 30, 4)


def test_default_colours_differ() -> None:
    colors = default_colors(range(12))
    assert len(set(colors.values())) == 12


def test_import_draws_on_request(tmp_path: Path) -> None:
    rows = ({"c": (tile(i) % 3).astype(np.uint8).tobytes()} for i in range(4))
    path = write(tmp_path / "p.tfrecord", rows)
    colors = ["#0000ff", "#008000", "#c8c864"]
    report = import_image(path, tmp_path / "map.tif", mixer=MIX_A, colors=colors, quicklook=True)
    assert report.quicklook == str(tmp_path / "map.png")
    picture = drawn(report.quicklook)
    assert picture.shape == (6, 8, 4)
    assert picture[0, 0].tolist() == [0, 0, 255, 255]
    other = import_image(
        path, tmp_path / "map.tif", mixer=MIX_A, quicklook=tmp_path / "q.png", overwrite=True
    )
    assert other.quicklook == str(tmp_path / "q.png")

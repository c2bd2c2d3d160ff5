"""Scenes larger than memory: exports and imports go through them in windows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.memory import grown

pytest.importorskip("resource")


def test_a_mosaic_of_600_mb_is_placed_window_by_window(tmp_path: Path) -> None:
    code = """
import gzip, json
import rasterio
from tfrio import _core
from tfrio.examples.encode import encode_example
from tfrio.geo import import_image
side = 48
affine = [10, 0, 500000, 0, -10, 4500000]
mixer = {
    "projection": {"crs": "EPSG:32618", "affine": {"doubleMatrix": affine}},
    "patchDimensions": [256, 192], "patchesPerRow": side, "totalPatches": side * 64,
}
folder = sys.argv[1]
with open(f"{folder}/m-mixer.json", "w") as file:
    json.dump(mixer, file)
record = bytes(_core.frame([encode_example({"p": np.zeros(256 * 192, np.float32)})]))
with open(f"{folder}/m-00000.tfrecord.gz", "wb") as file:
    for _ in range(64):
        file.write(gzip.compress(record * side, 1))
base = peak()
report = import_image(f"{folder}/m-00000.tfrecord.gz", f"{folder}/m.tif")
with rasterio.open(f"{folder}/m.tif") as image:
    assert (image.width, image.height, image.dtypes) == (256 * side, 192 * 64, ("float32",))
print(peak() - base)
"""
    assert grown(code, tmp_path) < 300_000_000  # the mosaic has 604 MB


def test_a_scene_of_380_mb_is_exported_window_by_window(tmp_path: Path) -> None:
    code = """
import rasterio
from tfrio.geo import export_image
folder = sys.argv[1]
with rasterio.open(
    f"{folder}/scene.tif", "w", driver="GTiff", count=4, height=5760, width=8192, dtype="uint16",
    crs="EPSG:32618", transform=rasterio.Affine(10, 0, 5e5, 0, -10, 4.5e6),
    tiled=True, compress="deflate", sparse_ok=True,
):
    pass
base = peak()
report = export_image(f"{folder}/scene.tif", f"{folder}/s", patch=(256, 192))
assert report.patches == 32 * 30
print(peak() - base)
"""
    assert grown(code, tmp_path) < 300_000_000  # as float32 the patches have 755 MB

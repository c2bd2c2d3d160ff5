"""Five hundred grids out and back, each held against the pixels that rasterio reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import rasterio

from tests.geo.rasters import write_raster
from tfrio.geo import export_image, import_image

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("uint8", "int16", "uint16", "int32", "float32")


def round_trip(folder: Path, seed: int) -> None:
    """Draw a grid, export it, import it, and compare both rasters where patches cover them."""
    rng = np.random.default_rng(seed)
    patch = (int(rng.integers(1, 10)), int(rng.integers(1, 10)))
    kernel = (int(rng.integers(1, 8)), int(rng.integers(1, 8)))
    width, height = int(rng.integers(patch[0], 41)), int(rng.integers(patch[1], 41))
    pixel = (float(rng.choice([30, -30, 0.25, -0.25])), float(rng.choice([-20, 20, -0.5, 0.5])))
    left, top = float(rng.integers(-90, 90)), float(rng.integers(-45, 45))
    affine = (pixel[0], 0.0, left, 0.0, pixel[1], top)
    values = rng.integers(0, 120, (int(rng.integers(1, 3)), height, width))
    source = write_raster(folder / "in.tif", values.astype(KINDS[seed % 5]), affine=affine)
    stored = (patch[0] + 6) * (patch[1] + 6) * 10 * len(values) + 200
    report = export_image(
        source,
        folder / "s",
        patch=patch,
        kernel=kernel,
        dtype="native" if seed % 2 else "float",
        compressed=False,
        max_file_size=stored * int(rng.integers(1, 30)),
        workers=1,
    )
    # A mixer alone tells neither kernel nor dtype; a margin is inferred where only one fits.
    export = report.manifest if seed % 3 else report.mixer
    import_image(
        list(report.shards),
        folder / "map.tif",
        mixer=export,
        kernel=kernel,
        orientation="keep",
        compress="none",
    )
    with rasterio.open(source) as before, rasterio.open(folder / "map.tif") as after:
        assert after.width == width // patch[0] * patch[0], seed
        assert after.height == height // patch[1] * patch[1], seed
        assert after.transform == before.transform, seed
        assert after.crs == before.crs, seed
        window = rasterio.windows.Window(0, 0, after.width, after.height)
        np.testing.assert_array_equal(after.read(), before.read(window=window), str(seed))


@pytest.mark.parametrize("block", range(10))
def test_five_hundred_grids_come_back(tmp_path: Path, block: int) -> None:
    for seed in range(block * 50, block * 50 + 50):
        folder = tmp_path / str(seed)
        folder.mkdir()
        round_trip(folder, seed)

"""There and back: whatever the options, each pixel returns to its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.geo.rasters import geo_a, write_raster
from tfrio.errors import GeoError
from tfrio.geo import array_source, export_image, import_image
from tfrio.geo.report import ExportReport


def back(report: ExportReport, path: Path, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Import an export; return values (bands, height, width) and where they are valid."""
    source = report.mixer if options.pop("by_mixer", False) else report.manifest
    import_image(list(report.shards), path, mixer=source, overwrite=True, **options)
    with rasterio.open(path) as image:
        return image.read(), image.read_masks() > 0


@pytest.mark.parametrize(
    ("options", "covered"),
    [
        ({}, (6, 8)),
        ({"kernel": (4, 2)}, (6, 8)),
        ({"kernel": (3, 5)}, (6, 8)),
        ({"dtype": "native"}, (6, 8)),
        ({"compressed": False, "max_file_size": 200}, (6, 8)),
        ({"naming": "gcs"}, (6, 8)),
        ({"naming": "gcs", "max_file_size": 150}, (6, 8)),
        ({"edge": "pad"}, (7, 10)),
        ({"edge": "shift", "kernel": (2, 4)}, (7, 10)),
        ({"stride": (2, 3)}, (6, 10)),
        ({"stride": (3, 2), "edge": "shift"}, (7, 10)),
        ({"patch_index": "n"}, (6, 8)),
    ],
)
def test_every_option_comes_back(
    tmp_path: Path, options: dict[str, Any], covered: tuple[int, int]
) -> None:
    path = write_raster(tmp_path / "a.tif", geo_a(), names=["b"])
    report = export_image(path, tmp_path / "s", patch=(4, 3), **options)
    values, valid = back(report, tmp_path / "back.tif", bands=["b"])
    height, width = covered
    assert values.shape == (1, height, width)
    assert valid.all()
    assert np.array_equal(values[0], geo_a()[:height, :width])


@pytest.mark.parametrize("by_mixer", [True, False])
def test_mixer_and_manifest_say_the_same(tmp_path: Path, by_mixer: bool) -> None:
    path = write_raster(tmp_path / "a.tif", geo_a(), names=["b"])
    report = export_image(path, tmp_path / "s", patch=(4, 3), kernel=(4, 2))
    values, _ = back(report, tmp_path / "back.tif", by_mixer=by_mixer)
    assert np.array_equal(values[0], geo_a()[:6, :8])


def test_patches_left_out_become_nodata(tmp_path: Path) -> None:
    source = geo_a()
    source[3:6, :3] = -1
    path = write_raster(tmp_path / "a.tif", source, names=["b"], nodata=-1)
    report = export_image(path, tmp_path / "s", patch=(4, 3), masked_threshold=0.5)
    values, valid = back(report, tmp_path / "back.tif")
    assert not valid[0, 3:6, :4].any()
    assert valid.sum() == 36
    assert np.array_equal(values[valid], geo_a()[:6, :8][valid[0]])


def test_masks_come_back_though_the_fill_is_a_value(tmp_path: Path) -> None:
    source = (np.arange(42) % 9).astype("uint8").reshape(6, 7)
    source[:2, :3] = 255
    path = write_raster(tmp_path / "a.tif", source, names=["b"], nodata=255)
    with pytest.warns(UserWarning, match="which valid pixels have"):
        report = export_image(path, tmp_path / "s", patch=(7, 3), default_value=0, dtype="native")
    values, valid = back(report, tmp_path / "back.tif")
    assert np.array_equal(valid[0], source != 255)
    assert (values[valid] == 0).sum() == (source == 0).sum()


def test_all_bands_in_one_tensor(tmp_path: Path) -> None:
    stack = np.stack([geo_a(), geo_a() + 1, geo_a() + 2])
    path = write_raster(tmp_path / "a.tif", stack, names=["r", "g", "n"])
    report = export_image(path, tmp_path / "s", patch=(4, 3), collapse_bands=True, kernel=(2, 4))
    values, _ = back(report, tmp_path / "back.tif")
    assert np.array_equal(values, stack[:, :6, :8])


def test_tensors_of_array_bands(tmp_path: Path) -> None:
    stack = np.stack([geo_a() + n for n in range(5)])
    path = write_raster(tmp_path / "a.tif", stack)
    report = export_image(
        path, tmp_path / "s", patch=(4, 3), bands={"first": 1, "series": "2:5"},
        tensor_depths={"series": 3},
    )  # fmt: skip
    values, _ = back(report, tmp_path / "back.tif", bands=["first", "series"])
    assert np.array_equal(values, stack[:4, :6, :8])


@given(
    size=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    patch=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    kernel=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    signs=st.tuples(st.sampled_from([1, -1]), st.sampled_from([1, -1])),
    per_shard=st.integers(1, 30),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_grid_comes_back_with_the_same_mixer(
    tmp_path: Path,
    size: tuple[int, int],
    patch: tuple[int, int],
    kernel: tuple[int, int],
    signs: tuple[int, int],
    per_shard: int,
) -> None:
    width, height = size
    values = (1000 * np.arange(height)[:, None] + np.arange(width)).astype("int32")
    affine = (30.0 * signs[0], 0.0, 500000.0, 0.0, 20.0 * signs[1], 4500000.0)
    source = array_source({"b": values}, affine, crs="EPSG:32618")
    stored = (patch[0] + 2 * (kernel[0] // 2)) * (patch[1] + 2 * (kernel[1] // 2))
    options: dict[str, Any] = {
        "patch": patch, "kernel": kernel, "dtype": "native", "workers": 1, "overwrite": True,
        "compressed": False, "max_file_size": per_shard * (10 * stored + 40),
    }  # fmt: skip
    try:
        report = export_image(source, tmp_path / "s", **options)
    except GeoError:
        assert patch[0] > width or patch[1] > height
        return
    found, _ = back(report, tmp_path / "back.tif", orientation="keep")
    rows, columns = height // patch[1] * patch[1], width // patch[0] * patch[0]
    assert np.array_equal(found[0], values[:rows, :columns])
    again = export_image(tmp_path / "back.tif", tmp_path / "t", **{**options, "kernel": (1, 1)})
    assert Path(str(again.mixer)).read_bytes() == Path(str(report.mixer)).read_bytes()

"""Array bands and time series: tensors, and one record per pixel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.geo.rasters import AFFINE, examples, geo_a, payloads, sequences, write_raster
from tfrio.errors import UsageError
from tfrio.geo import array_source, export_image


@pytest.fixture
def raster(tmp_path: Path) -> Path:
    return write_raster(tmp_path / "geo-a.tif", geo_a(), names=["b"])


def _lengths() -> np.ndarray:
    """Return an array band (5, 2, 2) whose pixels have 2, 3, 1 and 5 valid steps."""
    values = np.arange(20, dtype="float32").reshape(5, 2, 2) + 1
    for (row, column), length in {(0, 0): 2, (0, 1): 3, (1, 0): 1, (1, 1): 5}.items():
        values[length:, row, column] = np.nan
    return values


def test_tensor_depths_cut_and_pad_depth_major(tmp_path: Path) -> None:
    source = array_source({"ndvi": _lengths()}, AFFINE, crs="EPSG:32618")
    report = export_image(
        source, tmp_path / "s", patch=(2, 2), tensor_depths={"ndvi": 3}, drop_masked=True
    )
    tensor = np.array(examples(report.shards)[0]["ndvi"]).reshape(3, 2, 2)
    assert tensor.tolist() == [[[1, 2], [3, 4]], [[5, 6], [0, 8]], [[0, 10], [0, 12]]]
    assert report.content.bands[0].depth == 3
    deeper = export_image(source, tmp_path / "t", patch=(2, 2), tensor_depths=[7], default_value=-1)
    tensor = np.array(examples(deeper.shards)[0]["ndvi"]).reshape(7, 2, 2)
    assert tensor[5:].tolist() == [[[-1, -1], [-1, -1]]] * 2


def test_masked_steps_in_the_middle_close_up(tmp_path: Path) -> None:
    values = np.array([[[1, 2]], [[np.nan, 4]], [[5, np.nan]]], "float32")
    source = array_source({"a": values}, AFFINE, crs="EPSG:32618")
    kept = export_image(source, tmp_path / "k", patch=(2, 1), default_value=-9)
    assert examples(kept.shards)[0]["a"] == [1, 2, -9, 4, 5, -9]
    closed = export_image(source, tmp_path / "c", patch=(2, 1), default_value=-9, drop_masked=True)
    assert examples(closed.shards)[0]["a"] == [1, 2, 5, 4, -9, -9]


@pytest.mark.parametrize(
    ("depths", "message"),
    [
        ({}, "misses a"),
        ({"a": 2, "x": 3}, "names x, no array band"),
        ([2, 3], "does not fit the array bands"),
        ({"a": 0}, "must be a whole number >= 1"),
        ({"a": 1.5}, "must be a whole number >= 1"),
    ],
)
def test_wrong_tensor_depths(tmp_path: Path, depths: object, message: str) -> None:
    arrays = {"b": geo_a(), "a": np.stack([geo_a(), geo_a()])}
    source = array_source(arrays, AFFINE, crs="EPSG:32618")
    with pytest.raises(UsageError, match=message):
        export_image(source, tmp_path / "s", patch=(4, 3), tensor_depths=depths)  # type: ignore[arg-type]


def test_sequence_data_is_one_record_per_pixel(tmp_path: Path) -> None:
    arrays = {"b": geo_a(), "a": np.stack([geo_a(), geo_a() + 1])}
    source = array_source(arrays, AFFINE, crs="EPSG:32618")
    report = export_image(source, tmp_path / "s", patch=(4, 3), sequence_data=True)
    found = sequences(report.shards)
    assert len(found) == 48
    assert found[5] == ({"b": [101]}, {"a": [[101], [102]]})
    assert found[12] == ({"b": [4]}, {"a": [[4], [5]]})
    assert report.content.layout == "pixel"
    native = export_image(source, tmp_path / "n", patch=(4, 3), sequence_data=True, dtype="native")
    assert sequences(native.shards)[5] == ({"b": [101]}, {"a": [[101], [102]]})


def test_sequence_shards_may_end_within_a_patch(tmp_path: Path) -> None:
    source = array_source({"b": geo_a(), "a": geo_a()[None]}, AFFINE, crs="EPSG:32618")
    whole = export_image(source, tmp_path / "w", patch=(4, 3), sequence_data=True, compressed=False)
    size = Path(whole.shards[0]).stat().st_size // 48
    parts = export_image(
        source, tmp_path / "p", patch=(4, 3), sequence_data=True, compressed=False,
        max_file_size=7 * size, workers=2,
    )  # fmt: skip
    assert [row.records for row in parts.content.shards] == [7] * 6 + [6]
    assert payloads(parts.shards) == payloads(whole.shards)


def test_sequence_lengths_vary_when_masked_steps_are_dropped(tmp_path: Path) -> None:
    source = array_source({"ndvi": _lengths()}, AFFINE, crs="EPSG:32618")
    report = export_image(
        source, tmp_path / "s", patch=(2, 2), sequence_data=True, drop_masked=True
    )
    lengths = [len(lists["ndvi"]) for _, lists in sequences(report.shards)]
    assert lengths == [2, 3, 1, 5]
    assert report.content.bands[0].depth == 0


def test_sequence_and_collapse_make_one_series_per_pixel(tmp_path: Path) -> None:
    arrays = {"x": geo_a(), "y": geo_a() + 1, "z": np.stack([geo_a() + 2, geo_a() + 3])}
    source = array_source(arrays, AFFINE, crs="EPSG:32618")
    report = export_image(
        source, tmp_path / "s", patch=(4, 3), sequence_data=True, collapse_bands=True
    )
    assert sequences(report.shards)[5] == ({}, {"x": [[101], [102], [103], [104]]})


def test_bytes_in_sequences_are_one_value_per_step(tmp_path: Path) -> None:
    values = np.arange(24, dtype="uint8").reshape(2, 3, 4)
    source = array_source({"s": values[0], "a": values}, AFFINE, crs="EPSG:32618")
    report = export_image(source, tmp_path / "s", patch=(4, 3), sequence_data=True, dtype="native")
    assert sequences(report.shards)[5] == ({"s": [b"\x05"]}, {"a": [[b"\x05"], [b"\x11"]]})


def test_a_kernel_has_no_meaning_for_pixels(raster: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no room for a kernel"):
        export_image(raster, tmp_path / "s", patch=(4, 3), kernel=(3, 1), sequence_data=True)

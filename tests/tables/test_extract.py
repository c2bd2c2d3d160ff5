"""Images out of records, with rasterio's PNG reader as the oracle."""

from __future__ import annotations

import io
import warnings
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp
from PIL import Image

import tfrio
from tfrio.errors import MissingFeatureError, SchemaError, UsageError
from tfrio.tables import extract_images
from tfrio.tables.png import png_bytes, stretched

if TYPE_CHECKING:
    from pathlib import Path

RAW = np.arange(4 * 3 * 3, dtype=np.uint8).reshape(3, 4, 3)


def opened(data: bytes) -> np.ndarray[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(Image.open(io.BytesIO(data)))


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    with tfrio.Writer(path) as writer:
        for row in rows:
            writer.write(row)
    return path


@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9)))
def test_png_of_grey_levels(pixels: np.ndarray[Any, Any]) -> None:
    np.testing.assert_array_equal(opened(png_bytes(pixels)), pixels)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_of_every_channel_count(channels: int) -> None:
    pixels = np.arange(5 * 7 * channels, dtype=np.uint8).reshape(5, 7, channels)
    found = opened(png_bytes(pixels)).reshape(pixels.shape)
    np.testing.assert_array_equal(found, pixels)


@pytest.mark.parametrize("pixels", [np.zeros((2, 3, 5), np.uint8), np.zeros((2, 3))])
def test_what_is_no_png(pixels: np.ndarray[Any, Any]) -> None:
    with pytest.raises(UsageError, match="a PNG is uint8"):
        png_bytes(pixels)


def test_levels() -> None:
    values = np.array([[-1.0, 0.0], [1.0, np.nan]])
    assert stretched(values).tolist() == [[0, 127], [255, 0]]
    assert stretched(np.full((2, 2), 7)).tolist() == [[0, 0], [0, 0]]
    assert stretched(np.array([[np.nan]])).tolist() == [[0]]
    assert stretched(RAW) is RAW


def test_encoded_images_are_written_as_they_are(tmp_path: Path) -> None:
    png = png_bytes(RAW)
    jpeg = b"\xff\xd8\xff\xe0" + bytes(20)
    webp = b"RIFF\x00\x00\x00\x00WEBPVP8 "
    path = written(tmp_path / "t.tfrecord", [{"i": png}, {"i": jpeg}, {"i": webp}])
    report = extract_images(path, tmp_path / "out", image="i")
    assert report.images == ("000000.png", "000001.jpg", "000002.webp")
    assert (tmp_path / "out" / "000001.jpg").read_bytes() == jpeg
    assert str(report).startswith("3 images")


def test_raw_images_become_png(tmp_path: Path) -> None:
    band = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    rows = [{"rgb": RAW.tobytes(), "band": band.ravel(), "m": np.eye(3, 4, dtype=np.int64)}]
    path = written(tmp_path / "t.tfrecord", rows)
    extract_images(path, tmp_path / "rgb", image="rgb", shape=(3, 4, 3))
    np.testing.assert_array_equal(opened((tmp_path / "rgb" / "000000.png").read_bytes()), RAW)
    extract_images(path, tmp_path / "chw", image="rgb", shape=(3, 3, 4), layout="chw")
    expected = np.moveaxis(RAW.reshape(3, 3, 4), 0, -1)
    np.testing.assert_array_equal(opened((tmp_path / "chw" / "000000.png").read_bytes()), expected)
    extract_images(path, tmp_path / "band", image="band", shape=(3, 4))
    assert opened((tmp_path / "band" / "000000.png").read_bytes())[2, 3] == 255
    extract_images(path, tmp_path / "tint", image="band", shape=(3, 4), mask="m")
    tinted = opened((tmp_path / "tint" / "000000.png").read_bytes())
    assert tinted.shape == (3, 4, 3)
    assert tinted[0, 0].tolist() == [127, 0, 0]
    assert tinted[0, 1, 0] == tinted[0, 1, 1]


def test_some_records_into_a_zip(tmp_path: Path) -> None:
    rows = [{"i": np.full(9, k, np.uint8).tobytes()} for k in range(20)]
    path = written(tmp_path / "t.tfrecord.gz", rows)
    report = extract_images(path, tmp_path / "out.zip", image="i", records=(5, 8))
    assert report.images == ("000005.png", "000006.png", "000007.png")
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert tuple(archive.namelist()) == report.images
        assert opened(archive.read("000006.png")).tolist() == [[6] * 3] * 3


def test_what_does_not_fit(tmp_path: Path) -> None:
    path = written(tmp_path / "t.tfrecord", [{"i": bytes(12), "j": 1}])
    with pytest.raises(SchemaError, match=r"record 0: feature 'i': 12 values form no square"):
        extract_images(path, tmp_path / "out", image="i")
    with pytest.raises(SchemaError, match=r"record 0: feature 'i': 12 values cannot form \(2, 5\)"):
        extract_images(path, tmp_path / "o.zip", image="i", shape=(2, 5))
    with pytest.raises(UsageError, match=r"shape is \(height, width\)"):
        extract_images(path, tmp_path / "o.zip", image="i", shape=(12,))
    with pytest.raises(MissingFeatureError, match="record 0 has no feature 'k'; it has i, j"):
        extract_images(path, tmp_path / "o.zip", image="k")
    assert not (tmp_path / "o.zip").exists()


@pytest.mark.parametrize("out", ["images", "images.zip"])
def test_nothing_is_left_where_nothing_can_be_extracted(tmp_path: Path, out: str) -> None:
    path = written(tmp_path / "r.tfrecord", [{"raw": RAW.tobytes()}] * 2)
    with pytest.raises(UsageError, match="there are no records 2:5, counted from 0"):
        extract_images(path, tmp_path / out, image="raw", shape=RAW.shape, records=(2, 5))
    with pytest.raises(MissingFeatureError, match="record 0 has no feature 'nope'"):
        extract_images(path, tmp_path / out, image="nope")
    assert not (tmp_path / out).exists()

"""convert and extract on the command line."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tfrio
from tests.support.samples import write_shards
from tfrio.geo import array_source, export_image

pytest.importorskip("pyarrow")
rasterio = pytest.importorskip("rasterio")
Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    return write_shards(tmp_path / "with space ç")


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".npz"])
def test_there_and_back_is_the_same_bytes(cli, shards, tmp_path, ending: str) -> None:
    middle, back = tmp_path / f"all{ending}", tmp_path / "back.tfrecord.gz"
    done = cli("convert", *shards, middle)
    assert done.code == 0
    assert done.out.startswith(f"60 rows -> {middle}")
    assert cli("convert", "--json", middle, back).json["rows"] == 60
    assert list(tfrio.read_records(back)) == list(tfrio.read_records(shards))


def test_only_some_features(cli, shards, tmp_path) -> None:
    out = tmp_path / "some.npz"
    assert cli("convert", shards[0], out, "-k", "x,id").code == 0
    with np.load(out) as arrays:
        assert {name for name in arrays if "/" not in name} >= {"x", "id"}
        assert "ragged" not in arrays


def test_bytes_that_were_stored_as_text_are_restored(cli, tmp_path) -> None:
    jpeg = b"\xff\xd8\xff\xe0" + bytes(range(256))
    with tfrio.Writer(tmp_path / "a.tfrecord") as writer:
        writer.write({"image": jpeg.decode("latin-1")})
    assert "looks like UTF-8-encoded JPEG" in cli("head", tmp_path / "a.tfrecord").out
    done = cli("convert", "--unmangle", "image", tmp_path / "a.tfrecord", tmp_path / "b.tfrecord")
    assert done.code == 0
    assert [row["image"] for row in tfrio.read(tmp_path / "b.tfrecord")] == [jpeg]


def test_a_level_makes_smaller_files(cli, tmp_path) -> None:
    plain = tmp_path / "plain.tfrecord"
    with tfrio.Writer(plain) as writer:
        for k in range(2000):
            writer.write({"text": f"plot {k * k % 977} of field {k // 7}, seen on day {k % 365}"})
    sizes = [
        cli("convert", "--json", plain, tmp_path / f"{level}.gz", "--level", level).json["size"]
        for level in (1, 9)
    ]
    assert sizes[1] < sizes[0] < plain.stat().st_size


def test_tables_on_both_sides_are_wrong_use(cli, tmp_path) -> None:
    done = cli("convert", tmp_path / "a.parquet", tmp_path / "b.arrow")
    assert done.code == 2
    assert "both tables" in done.err


def test_images_come_out(cli, tmp_path) -> None:
    path = tmp_path / "raw.tfrecord"
    with tfrio.Writer(path) as writer:
        for k in range(4):
            writer.write({"band": np.full((2, 3), k, np.uint8).tobytes()})
    out = tmp_path / "new.zip"
    done = cli("extract", path, out, "--image", "band", "--shape", "2,3", "--records", "1:3")
    assert done.code == 0
    assert "2 images" in done.out
    with zipfile.ZipFile(out) as archive:
        assert archive.namelist() == ["000001.png", "000002.png"]
        image = Image.open(io.BytesIO(archive.read("000002.png")))
        assert image.size == (3, 2)


def test_patches_of_an_export_come_out_in_their_places(cli, tmp_path) -> None:
    values = np.arange(70, dtype=np.int16).reshape(7, 10)
    affine = (30, 0, 500_000, 0, -30, 4_500_000)
    source = array_source(values, affine, crs="EPSG:32618")
    export_image(source, tmp_path / "a", patch=(4, 3), kernel=(2, 4), dtype="native")
    asked = ("extract", tmp_path / "a-00000.tfrecord.gz", tmp_path / "out", "--image", "b1")
    done = cli(*asked, "--geotiff", tmp_path / "a", "--records", "1:3")
    assert done.code == 0
    assert "2 images" in done.out
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["patch-000001.tif", "patch-000002.tif"]
    with rasterio.open(tmp_path / "out" / names[0]) as dataset:
        assert dataset.transform[2:6:3] == (500_120, 4_500_000)
        np.testing.assert_array_equal(dataset.read(1), values[:3, 4:8])
    done = cli(*asked, "--geotiff", tmp_path / "a", "--shape", "3,4")
    assert done.code == 2
    assert "without --mask and --shape" in done.err


@pytest.mark.parametrize(
    "options", [("--shape", "2x3"), ("--shape", "2,3", "--records", "1"), ("--records", "a:b")]
)
def test_wrong_numbers_are_wrong_use(cli, tmp_path, options: tuple[str, ...]) -> None:
    done = cli("extract", tmp_path / "x", tmp_path / "y", "--image", "band", *options)
    assert done.code == 2
    assert "whole numbers" in done.err


def test_a_missing_feature_is_named(cli, shards, tmp_path) -> None:
    done = cli("extract", shards[0], tmp_path / "out", "--image", "photo")
    assert done.code == 1
    assert "photo" in done.err

"""`tfrio import image`: predictions back on the map, wrong ones refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tfrio
from tests.support.samples import write_scene

rasterio = pytest.importorskip("rasterio")


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    """Export a scene and write its infrared band and a class as predictions."""
    folder = tmp_path / "with space ç"
    (folder / "pred").mkdir(parents=True)
    write_scene(folder / "scene.tif")
    report = tfrio.geo.export_image(
        folder / "scene.tif", folder / "out" / "scene", patch=(72, 48), max_file_size=400_000
    )
    for number, shard in enumerate(report.shards):
        with tfrio.Writer(folder / "pred" / f"p-{number:05d}.tfrecord.gz") as writer:
            for row in tfrio.read(shard):
                writer.write({"nir": row["B8"], "class": (row["B8"] > 900).astype(np.int64)})
    return folder


def test_the_map_equals_the_scene_where_covered(cli, predictions: Path) -> None:
    out = predictions / "map.tif"
    mixer = predictions / "out" / "scene-mixer.json"
    options = ("--mixer", mixer, "--bands", "nir", "--nodata", "0")
    done = cli("import", "image", predictions / "pred", out, *options)
    assert done.code == 0
    assert "16 of 16 placed" in done.out
    with rasterio.open(out) as file, rasterio.open(predictions / "scene.tif") as scene:
        np.testing.assert_array_equal(file.read(1), scene.read(4)[:192, :288])
        assert file.transform == scene.transform


def test_classes_have_names_and_areas(cli, predictions: Path) -> None:
    out = predictions / "classes.tif"
    done = cli(
        *("import", "image", "--json", predictions / "pred", out, "--whole"),
        *("--mixer", predictions / "out", "--bands", "class", "--dtype", "uint8"),
        *("--nodata", "255", "--class-name", "0=dark", "--class-name", "1=bright"),
        *("--color", "0=#101010", "--color", "1=#f0f0f0"),
        *("--quicklook", predictions / "look.png"),
    )
    assert done.code == 0
    assert done.json["size"] == [300, 200]
    areas = {row["name"]: row["pixels"] for row in done.json["classes"]}
    assert sum(areas.values()) == 288 * 192 - 600
    assert (predictions / "look.png").read_bytes().startswith(b"\x89PNG")
    with rasterio.open(out) as file:
        assert file.colormap(1)[1] == (240, 240, 240, 255)


def test_a_lost_file_is_told_and_nothing_is_written(cli, predictions: Path) -> None:
    max((predictions / "pred").iterdir()).unlink()
    out = predictions / "map.tif"
    command = ("import", "image", predictions / "pred", out, "--mixer", predictions / "out")
    done = cli(*command)
    assert done.code == 1
    assert "16" in done.err
    assert done.err.count("\n") == 1
    assert not out.exists()
    assert cli(*command, "--partial").code == 0


def test_classes_are_given_by_number(cli, predictions: Path) -> None:
    done = cli(
        *("import", "image", predictions / "pred", predictions / "x.tif"),
        *("--class-name", "water=1"),
    )
    assert done.code == 2
    assert "by number" in done.err

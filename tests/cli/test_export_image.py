"""`tfrio export image`: every option reaches the export, wrong ones are told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tfrio
from tests.support.samples import write_scene

pytest.importorskip("rasterio")


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    path = tmp_path / "with space ç" / "scene.tif"
    path.parent.mkdir()
    write_scene(path)
    return path


def test_export_tells_its_account_and_files(cli, scene) -> None:
    prefix = scene.parent / "out" / "scene"
    done = cli("export", "image", scene, prefix, "--patch", "72,48", "--kernel", "33x17")
    assert done.code == 0
    assert "16 patches in 1 shard" in done.out
    assert "4,704 of 60,000 pixels dropped (right 12 cols, bottom 8 rows)" in done.out
    assert f"{prefix}-00000.tfrecord.gz, scene-mixer.json, scene-manifest.json" in done.out
    row = next(tfrio.read(f"{prefix}-00000.tfrecord.gz"))
    assert row["B4"].shape == (104 * 64,)


def test_options_reach_the_export(cli, scene) -> None:
    prefix = scene.parent / "native"
    done = cli(
        *("export", "image", scene, prefix, "--patch", "40", "--json", "--dtype", "native"),
        *("--bands", "B8,2", "--uncompressed", "--edge", "pad", "--max-file-size", "100000"),
        *("--patch-index", "index", "--statistics", "--workers", "1"),
    )
    assert done.code == 0
    assert done.json["patches"] == 40
    assert len(done.json["shards"]) > 1
    rows = list(tfrio.read(done.json["shards"]))
    assert [int(row["index"][0]) for row in rows] == list(range(40))
    assert set(rows[0]) == {"B8", "B3", "index"}
    assert rows[0]["B8"].dtype == np.int64
    manifest = json.loads(Path(done.json["manifest"]).read_text())
    assert manifest["statistics"]["B8"]["count"] == 60_000 - 600


def test_the_prefix_is_not_overwritten_unasked(cli, scene) -> None:
    prefix = scene.parent / "scene"
    assert cli("export", "image", scene, prefix, "--patch", "72,48").code == 0
    again = cli("export", "image", scene, prefix, "--patch", "36,24")
    assert again.code == 2
    assert "overwrite" in again.err
    assert cli("export", "image", scene, prefix, "--patch", "36,24", "--overwrite").code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--patch", "0,5"), "at least 1"),
        (("--patch", "1,2,3"), "pair of whole numbers"),
        (("--patch", "72,48", "--edge", "fold"), "fold"),
        (("--patch", "72,48", "--bands", "1,1"), "take B2 twice"),
        (("--patch", "72,48", "--bands", "a=1,a=2"), "first=1,second=1"),
        ((), "--patch"),
    ],
)
def test_wrong_options_are_one_line_and_2(cli, scene, options, words: str) -> None:
    done = cli("export", "image", scene, scene.parent / "x", *options)
    assert done.code == 2
    assert words in done.err
    assert done.err.count("\n") == 1
    assert list(scene.parent.glob("x*")) == []


def test_a_source_without_grid_is_refused(cli, scene) -> None:
    junk = scene.parent / "junk.tif"
    junk.write_bytes(b"not a raster")
    done = cli("export", "image", junk, scene.parent / "x", "--patch", "72,48")
    assert done.code == 1
    assert "junk.tif" in done.err
    assert done.err.count("\n") == 1


def square(path: Path, *, value: int = 3) -> Path:
    """Write a square of 600 m in the middle of the scene, as GeoJSON in its CRS."""
    ring = [[5.01e5, 4.499e6], [5.016e5, 4.499e6], [5.016e5, 4.4996e6], [5.01e5, 4.4996e6]]
    feature = {
        "type": "Feature",
        "properties": {"kind": value},
        "geometry": {"type": "Polygon", "coordinates": [[*ring, ring[0]]]},
    }
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    return path


def values(shards: list[str], name: str) -> np.ndarray:
    return np.concatenate([row[name] for row in tfrio.read(shards)])


def test_labels_masks_and_renamed_bands(cli, scene) -> None:
    done = cli(
        *("export", "image", scene, scene.parent / "l", "--json", "--patch", "72,48"),
        *("--bands", "red=3,nir=B8,all=1:3", "--mask-band", "nir", "--drop-masked"),
        *("--labels", square(scene.parent / "f.geojson"), "--labels-attribute", "kind"),
        *("--labels-crs", "EPSG:32618", "--labels-name", "field", "--labels-background", "9"),
    )
    assert done.code == 0
    shards = done.json["shards"]
    assert set(next(tfrio.read(shards[0]))) == {"red", "all", "field"}
    labels = values(shards, "field")
    assert set(np.unique(labels)) == {3, 9, 0}  # 0 where the mask band masks
    assert (labels == 3).sum() == 60 * 60
    assert values(shards, "all").size == 3 * values(shards, "red").size


def test_patches_at_polygons_and_a_split(cli, scene) -> None:
    where = square(scene.parent / "f.geojson")
    done = cli(
        *("export", "image", scene, scene.parent / "p", "--json", "--patch", "72,48"),
        *("--at", where, "--at-crs", "EPSG:32618"),
    )
    assert (done.code, done.json["patches"]) == (0, 6)
    done = cli(
        *("export", "image", scene, scene.parent / "s", "--patch", "20,10"),
        *("--validation", "0.3", "--split-block", "40,30", "--split-seed", "4", "--no-masks"),
    )
    assert done.code == 0
    assert "s-train-manifest.json" in done.out
    assert "s-validation-manifest.json" in done.out
    parts = [
        tfrio.geo.read_manifest(scene.parent / f"s-{n}-manifest.json")
        for n in ("train", "validation")
    ]
    assert sum(len(part.written) for part in parts) == 300
    assert not parts[0].masks
    wrong = cli("export", "image", scene, scene.parent / "w", "--patch", "9", "--validation", "2")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)


def test_a_region_from_a_file_and_a_crs_that_is_missing(cli, scene) -> None:
    where = square(scene.parent / "f.geojson")
    done = cli(
        *("export", "image", scene, scene.parent / "r", "--json", "--patch", "30,20"),
        *("--region", where, "--region-crs", "EPSG:32618", "--mask-outside"),
    )
    assert (done.code, done.json["patches"]) == (0, 6)
    gone = cli(
        *("export", "image", scene, scene.parent / "g", "--patch", "9", "--region", "no.json")
    )
    assert gone.code == 2
    assert "no.json" in gone.err
    rasterio = pytest.importorskip("rasterio")
    with rasterio.open(scene, "r+") as file:
        file.crs = rasterio.crs.CRS()
    refused = cli("export", "image", scene, scene.parent / "c", "--patch", "72,48")
    assert refused.code == 1
    taken = cli(
        *("export", "image", scene, scene.parent / "c", "--patch", "72,48"),
        *("--source-crs", "EPSG:32618"),
    )
    assert taken.code == 0

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

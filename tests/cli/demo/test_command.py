"""`tfrio demo` walks the whole road, and stops where something is not as it must be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tfrio
from tfrio.cli.demo import result, road, scene
from tfrio.errors import TfrioError

rasterio = pytest.importorskip("rasterio")
pytest.importorskip("pyarrow")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "with space ç"


def test_the_road_ends_at_a_map(cli, folder: Path) -> None:
    done = cli("demo", folder)
    assert (done.code, done.err) == (0, "")
    steps = [line for line in done.out.splitlines() if line[1:3] == "/8"]
    assert len(steps) == 8
    assert "nominal" in steps[0]
    assert "found in scene-00001.tfrecord.gz" in steps[3]
    assert "shard 00002 is named as missing" in steps[3]
    with rasterio.open(folder / "landcover.tif") as file:
        classes = file.read(1)
        assert (file.width, file.height, file.nodata) == (300, 300, 0)
        assert file.transform[:6] == (10, 0, 600_000, 0, -10, 7_700_000)
    assert set(np.unique(classes)) == {0, 1, 2, 3}
    assert not classes[288:].any()
    assert not classes[:, 288:].any()
    assert not classes[scene.load_scene()[0] == 0].any()
    assert (folder / "demo.png").stat().st_size > 50_000
    hectares = sum(1 for value in classes.ravel() if value) / 100
    told = [line for line in done.out.splitlines() if line.endswith(" ha")]
    assert sum(float(line.split()[-2]) for line in told) == pytest.approx(hectares, abs=0.2)


def test_a_second_walk_replaces_the_first(cli, folder: Path) -> None:
    first = cli("demo", "--json", folder).json
    second = cli("demo", "--json", folder).json
    assert first["account"] == second["account"]
    account = first["account"]
    assert account["covered"] + account["dropped"] == account["pixels"] == 90_000
    assert account["patches"] == 24
    assert account["masked"] == 36 * 37 // 2  # what of the triangle lies in whole patches


def test_a_prediction_that_differs_stops_the_demo(folder: Path) -> None:
    walk = road.Road(folder)
    for step in (walk.make_inputs, walk.table_there_and_back, walk.cut_patches, walk.train):
        step()
    walk.predict()
    path = folder / "predictions" / "landcover-00001.tfrecord.gz"
    rows = list(tfrio.read(path))
    rows[2]["class"] = rows[2]["class"].copy()
    rows[2]["class"][100] += 1
    with tfrio.Writer(path) as writer:
        for row in rows:
            writer.write(row)
    with pytest.raises(TfrioError, match="difference where there must be none: classes"):
        result.back_to_the_map(walk)


def test_damage_that_nobody_finds_stops_the_demo(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = road.Road(folder)
    walk.make_inputs()
    walk.cut_patches()
    monkeypatch.setattr(road.damage, "findings", lambda _folder: [])
    with pytest.raises(TfrioError, match="flipped bit"):
        walk.find_damage()

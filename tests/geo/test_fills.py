"""What marks masked pixels in shards, as manifests beside them tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tfrio
from tests.support.samples import write_points, write_scene
from tfrio.errors import GeoError
from tfrio.geo.fills import exports_beside, fills_beside


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two exports of one scene, the second with another fill."""
    write_scene(tmp_path / "scene.tif")
    for name, fill in (("a", None), ("b", 7)):
        tfrio.geo.export_image(
            tmp_path / "scene.tif",
            tmp_path / "out" / name,
            patch=(72, 48),
            kernel=(5, 3),
            default_value=fill,
            max_file_size=400_000,
        )
    return tmp_path / "out"


def shards(folder: Path, name: str) -> list[str]:
    return [str(path) for path in sorted(folder.glob(f"{name}-*.tfrecord.gz"))]


def test_the_exports_of_files_are_found(folder: Path) -> None:
    (only,) = exports_beside(shards(folder, "b")[:1])
    assert (only.prefix, len(only.shards)) == (str(folder / "b"), len(shards(folder, "b")))
    assert len(list(exports_beside([*shards(folder, "a"), *shards(folder, "b")]))) == 2
    assert list(exports_beside(["/dev/stdin", str(folder / "other.tfrecord")])) == []


def test_the_fill_of_each_feature_is_told(folder: Path) -> None:
    first, second = fills_beside([*shards(folder, "a"), *shards(folder, "b")])
    assert first.values == dict.fromkeys(("B2", "B3", "B4", "B8"), 0.0)
    assert first.shared == ()  # 0 is the nodata value of the source
    assert first.manifest == str(folder / "a-manifest.json")
    assert second.values == dict.fromkeys(("B2", "B3", "B4", "B8"), 7.0)
    assert second.shared == ("B2", "B3", "B4", "B8")  # a pixel may well be 7


def test_bytes_and_nan_have_no_number_to_leave_out(folder: Path) -> None:
    path = folder / "a-manifest.json"
    told = json.loads(path.read_text())
    told["bands"][0]["kind"] = "bytes"
    told["bands"][1]["fill"] = "nan"
    path.write_text(json.dumps(told))
    (only,) = fills_beside(shards(folder, "a"))
    assert set(only.values) == {"B4", "B8"}


def test_tables_are_passed_over_and_damage_is_an_error(folder: Path) -> None:
    write_points(folder / "points.geojson")
    tfrio.tables.export_table(folder / "points.geojson", folder / "table", xy=("x", "y"))
    assert fills_beside([str(folder / "table.tfrecord.gz")]) == []
    (folder / "a-manifest.json").write_text("{")
    with pytest.raises(GeoError, match=r"a-manifest\.json"):
        fills_beside(shards(folder, "a"))

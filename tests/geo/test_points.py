"""Patches at points and under polygons, splits by block, label bands from vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rasterio.warp import transform as transform_points

from tests.geo.rasters import examples, geo_a, tiles, write_raster
from tfrio.errors import GeoError, TfrioWarning, UsageError
from tfrio.geo import Labels, PatchesAt, Split, array_source, export_image, read_manifest
from tfrio.geo.points import centred_origin, is_validation
from tfrio.types import XY

X, Y = 500000, 4500000


@pytest.fixture
def raster(tmp_path: Path) -> Path:
    return write_raster(tmp_path / "a.tif", geo_a(), names=["b"])


def centre(column: int, row: int) -> tuple[float, float]:
    return X + 30 * column + 15, Y - 30 * row - 15


def square(column: int, row: int, width: int, height: int) -> dict[str, Any]:
    left, top = X + 30 * column, Y - 30 * row
    right, bottom = left + 30 * width, top - 30 * height
    ring = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
    return {"type": "Polygon", "coordinates": [ring]}


def collection(*members: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    features = [{"type": "Feature", "geometry": g, "properties": p} for g, p in members]
    return {"type": "FeatureCollection", "features": features}


def test_the_middle_pixel_holds_the_point() -> None:
    assert centred_origin(5.5, 3.5, XY(3, 5)) == (4, 1)
    assert centred_origin(5.0, 3.99, XY(4, 2)) == (3, 2)


def test_patches_at_points(raster: Path, tmp_path: Path) -> None:
    at = PatchesAt(where=[centre(5, 3), centre(2, 2), centre(0, 0)], crs="EPSG:32618")
    with pytest.warns(UserWarning, match="1 points gave no whole patch"):
        report = export_image(raster, tmp_path / "s", patch=(3, 5), at=at)
    first, second = tiles(report.shards, "b", 5, 3)
    assert first[2, 1] == 305
    assert second[2, 1] == 202
    assert report.mixer is None
    manifest = read_manifest(report.manifest)
    assert manifest.grid.origins == [(4, 1), (1, 0)]
    assert manifest.written == [0, 1]
    pad = export_image(raster, tmp_path / "p", patch=(3, 5), at=at, edge="pad", default_value=-1)
    assert tiles(pad.shards, "b", 5, 3)[2].tolist() == [
        [-1, -1, -1], [-1, -1, -1], [-1, 0, 1], [-1, 100, 101], [-1, 200, 201],
    ]  # fmt: skip
    moved = export_image(raster, tmp_path / "m", patch=(3, 5), at=at, edge="shift")
    assert tiles(moved.shards, "b", 5, 3)[2][0, 0] == 0


def test_points_are_longitude_and_latitude_by_default(raster: Path, tmp_path: Path) -> None:
    x, y = centre(5, 3)
    (lon,), (lat,) = transform_points("EPSG:32618", "EPSG:4326", [x], [y])
    at = PatchesAt(where=[(lon, lat)])
    report = export_image(raster, tmp_path / "s", patch=(3, 5), at=at)
    assert tiles(report.shards, "b", 5, 3)[0][2, 1] == 305
    with pytest.raises(GeoError, match="none of the 1 points"):
        export_image(raster, tmp_path / "t", patch=(3, 5), at=PatchesAt(where=[(lat, lon)]))


def test_polygons_keep_the_patches_they_touch(raster: Path, tmp_path: Path) -> None:
    at = PatchesAt(where=square(5, 1, 2, 1), crs="EPSG:32618")
    report = export_image(raster, tmp_path / "s", patch=(4, 3), at=at)
    assert report.content.kept == [1]
    assert report.left_out == 3
    everything = PatchesAt(where=square(3, 2, 2, 2), crs="EPSG:32618")
    report = export_image(raster, tmp_path / "t", patch=(4, 3), at=everything)
    assert report.content.kept == [0, 1, 2, 3]
    far = PatchesAt(where=square(90, 90, 1, 1), crs="EPSG:32618")
    with pytest.raises(GeoError, match="no patch of the grid touches"):
        export_image(raster, tmp_path / "u", patch=(4, 3), at=far)
    both = collection(
        (square(1, 1, 1, 1), {}), ({"type": "Point", "coordinates": centre(1, 1)}, {})
    )
    with pytest.raises(UsageError, match="not both"):
        export_image(
            raster, tmp_path / "v", patch=(4, 3), at=PatchesAt(where=both, crs="EPSG:32618")
        )


def test_split_by_block_is_disjoint_and_complete(raster: Path, tmp_path: Path) -> None:
    split = Split(validation=0.5, block=XY(4, 2), seed=3)
    report = export_image(raster, tmp_path / "s", patch=(2, 1), split=split)
    assert report.validation is not None
    train, validation = report.content.kept or [], report.validation.content.kept or []
    assert sorted([*train, *validation]) == list(range(35))
    for indices, side in ((train, False), (validation, True)):
        for index in indices:
            row, column = divmod(index, 5)
            assert is_validation(column * 2 // 4, row // 2, 0.5, 3) is side
    names = {p.name for p in tmp_path.glob("s-*")}
    assert {"s-train-00000.tfrecord.gz", "s-validation-00000.tfrecord.gz"} <= names
    with pytest.raises(GeoError, match="puts all 4 patches on one side"):
        export_image(
            raster, tmp_path / "t", patch=(4, 3), split=Split(validation=0.5, block=XY(90, 90))
        )
    with pytest.raises(UsageError, match="between 0 and 1"):
        Split(validation=1.5)


def test_shares_are_kept_roughly() -> None:
    chosen = sum(is_validation(c, r, 0.2, 1) for c in range(60) for r in range(50))
    assert 500 < chosen < 700


def test_labels_are_burnt_with_margins(raster: Path, tmp_path: Path) -> None:
    where = collection((square(1, 1, 3, 2), {"class": 3}), (square(9, 5, 4, 4), {"class": 4}))
    path = tmp_path / "labels.geojson"
    path.write_text(
        json.dumps({**where, "crs": {"type": "name", "properties": {"name": "EPSG:32618"}}})
    )
    labels = Labels(where=str(path), attribute="class", name="landcover")
    report = export_image(
        raster, tmp_path / "s", patch=(4, 3), kernel=(2, 2), labels=labels, dtype="native",
        edge="pad", default_value=0,
    )  # fmt: skip
    expected = np.zeros((9 + 2, 12 + 2), "uint8")
    expected[2:4, 2:5] = 3
    expected[6:10, 10:14] = 4
    for index, row in enumerate(examples(report.shards)):
        top, left = divmod(index, 3)
        tile = np.frombuffer(row["landcover"][0], "uint8").reshape(5, 6)
        assert np.array_equal(tile, expected[top * 3 : top * 3 + 5, left * 4 : left * 4 + 6])
    assert [band.name for band in report.content.bands] == ["b", "landcover"]


def test_labels_may_have_nodata(raster: Path, tmp_path: Path) -> None:
    labels = Labels(
        where=square(1, 1, 3, 2), background=255, nodata=255, crs="EPSG:32618", all_touched=False
    )
    report = export_image(raster, tmp_path / "s", patch=(4, 3), labels=[labels], dtype="native")
    assert examples(report.shards)[3]["label"] == [b"\xff" * 12]
    assert report.masked == 48 - 6


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            Labels(where=square(1, 1, 1, 1), attribute="class", crs="EPSG:32618"),
            "attribute 'class' is None",
        ),
        (
            Labels(
                where=collection((square(1, 1, 1, 1), {"c": 300})), attribute="c", crs="EPSG:32618"
            ),
            "is 300, which is no uint8",
        ),
        (Labels(where=square(1, 1, 1, 1)), "has no place in EPSG:32618 when read as EPSG:4326"),
        (Labels(where=collection()), "hold no feature"),
        (Labels(where=7), "expected a vector file"),
    ],
)
def test_wrong_labels(raster: Path, tmp_path: Path, labels: Labels, message: str) -> None:
    with pytest.raises((UsageError, GeoError), match=message):
        export_image(raster, tmp_path / "s", patch=(4, 3), labels=labels)


def test_vector_files(raster: Path, tmp_path: Path) -> None:
    pyogrio = pytest.importorskip("pyogrio")
    shapely = pytest.importorskip("shapely")
    wkb = shapely.to_wkb(shapely.geometry.shape(square(1, 1, 3, 2)))
    path = tmp_path / "labels.gpkg"
    pyogrio.raw.write(
        path, geometry=np.array([wkb], object), field_data=[np.array([5])], fields=["class"],
        geometry_type="Polygon", crs="EPSG:32618",
    )  # fmt: skip
    labels = Labels(where=path, attribute="class")
    report = export_image(raster, tmp_path / "s", patch=(4, 3), labels=labels)
    assert np.array(examples(report.shards)[0]["label"]).reshape(3, 4)[1].tolist() == [0, 5, 5, 5]
    with pytest.raises(FileNotFoundError, match="no such file"):
        export_image(raster, tmp_path / "t", patch=(4, 3), labels=Labels(where="nowhere.gpkg"))
    bad = tmp_path / "bad.geojson"
    bad.write_text("{")
    with pytest.raises(GeoError, match="not GeoJSON"):
        export_image(raster, tmp_path / "t", patch=(4, 3), labels=Labels(where=bad))


def test_real_shapefile(shared: Path, tmp_path: Path) -> None:
    pyogrio = pytest.importorskip("pyogrio")
    path = shared / "data" / "inputs" / "rasterio" / "box.shp"
    info = pyogrio.read_info(path, force_total_bounds=True)
    left, bottom, right, top = info["total_bounds"]
    across, down = (right - left) / 16, (top - bottom) / 12
    affine = (across, 0, left - 2 * across, 0, -down, top + 3 * down)
    source = array_source(np.zeros((18, 20), "uint8"), affine, crs=info["crs"])
    report = export_image(source, tmp_path / "s", patch=(20, 18), labels=Labels(where=path))
    (tile,) = tiles(report.shards, "label", 18, 20)
    assert tile[3:15, 2:18].mean() > 0.4
    assert tile.sum() == tile[3:15, 2:18].sum()


def test_labels_beside_the_grid_are_noted(raster: Path, tmp_path: Path) -> None:
    far = Labels(where=square(12, 3, 2, 4), crs="EPSG:32618")
    with pytest.warns(TfrioWarning, match="none of the 1 features lies on the grid.*is 0 every"):
        report = export_image(raster, tmp_path / "s", patch=(4, 3), labels=far)
    assert [note for note in report.notes if "band label is 0" in note]
    near = Labels(where=square(1, 2, 3, 2), crs="EPSG:32618")
    assert export_image(raster, tmp_path / "t", patch=(4, 3), labels=near).notes == ()
    with pytest.raises(UsageError, match="label.*labels a name= of their own"):
        export_image(raster, tmp_path / "u", patch=(4, 3), labels=[near, near])


def test_blocks_of_a_split_may_be_any_pair(raster: Path, tmp_path: Path) -> None:
    plain = Split(validation=0.5, block=XY(4, 3), seed=2)
    tuple_ = Split(validation=0.5, block=(4, 3), seed=2)
    one = export_image(raster, tmp_path / "s", patch=(2, 1), split=plain)
    other = export_image(raster, tmp_path / "t", patch=(2, 1), split=tuple_)
    assert one.content.kept == other.content.kept
    with pytest.raises(UsageError, match="block must be two whole numbers"):
        Split(block=(4, 0))

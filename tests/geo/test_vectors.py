"""Vector features: GeoJSON of every kind, GeoParquet, other files, plain pairs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tfrio.errors import GeoError, UsageError
from tfrio.geo import Labels, PatchesAt, array_source, export_image
from tfrio.geo.vectors import read_features

POINT = {"type": "Point", "coordinates": [500100.0, 4499900.0]}
BOX = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 3], [0, 3], [0, 0]]]}
UTM = "EPSG:32618"


def feature(geometry: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def collection(*members: Any) -> dict[str, Any]:
    return {"type": "FeatureCollection", "features": list(members)}


def test_every_kind_of_geojson_gives_its_features() -> None:
    whole = collection(feature(POINT, a=1), feature(None, a=2), feature(BOX))
    found = read_features(whole, crs=UTM, target=UTM)
    assert [member.geometry["type"] for member in found] == ["Point", "Polygon"]
    assert [dict(member.properties) for member in found] == [{"a": 1}, {}]
    assert read_features(feature(POINT), crs=UTM, target=UTM)[0].geometry == POINT
    assert read_features(BOX, crs=UTM, target=UTM)[0].properties == {}
    both = {"type": "GeometryCollection", "geometries": [POINT, BOX]}
    assert read_features(both, crs=UTM, target=UTM)[0].geometry == both
    assert read_features(collection(), crs=UTM, target=UTM) == []


def test_pairs_and_shapes_are_features() -> None:
    pairs = [(1, 2), np.array([3.0, 4.0]), SimpleNamespace(__geo_interface__=POINT)]
    found = [member.geometry["coordinates"] for member in read_features(pairs, crs=UTM, target=UTM)]
    assert found == [[1.0, 2.0], [3.0, 4.0], POINT["coordinates"]]
    table = read_features(np.array([[1, 2], [3, 4]]), crs=UTM, target=UTM)
    assert [member.geometry["coordinates"] for member in table] == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (7, "expected a vector file, GeoJSON or"),
        ([1, 2], "a location must be a pair"),
        ([(1, 2, 3)], "a location must be a pair"),
        ([("a", "b")], "a location must be a pair"),
        ({"type": "Topology"}, "'Topology' is no GeoJSON type"),
    ],
)
def test_what_is_no_feature_is_told(where: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_features(where, crs=None, target=UTM)


def test_longitude_and_latitude_unless_something_says_otherwise(tmp_path: Path) -> None:
    there = {"type": "Point", "coordinates": [-75.0, 40.0]}
    (found,) = read_features(there, crs=None, target=UTM)
    assert found.geometry["coordinates"] == pytest.approx((500000, 4427757.218), abs=1e-3)
    old = {**collection(feature(POINT)), "crs": {"type": "name", "properties": {"name": UTM}}}
    path = tmp_path / "old.geojson"
    path.write_text(json.dumps(old))
    assert read_features(path, crs=None, target=UTM)[0].geometry == POINT
    owner = SimpleNamespace(__geo_interface__=POINT, crs=UTM)
    assert read_features(owner, crs=None, target=UTM)[0].geometry == POINT
    with pytest.raises(GeoError, match="no place .* Check its CRS, and that x .longitude. comes"):
        read_features({"type": "Point", "coordinates": [40.0, 4e6]}, crs=None, target=UTM)


@pytest.mark.parametrize("name", ["a.geojson", "a.json", "a.gpkg", "a.parquet"])
def test_missing_and_foreign_files_are_told(tmp_path: Path, name: str) -> None:
    pytest.importorskip("pyogrio")
    pytest.importorskip("pyarrow")
    with pytest.raises(FileNotFoundError, match=f"{name}: no such file"):
        read_features(tmp_path / name, crs=None, target=UTM)
    (tmp_path / name).write_bytes(b"\x00nothing of the kind")
    with pytest.raises(GeoError, match=f"{name}: not .*Give another file"):
        read_features(tmp_path / name, crs=None, target=UTM)


def write_geoparquet(path: Path, about: dict[str, Any] | None) -> Path:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    shapely = pytest.importorskip("shapely")
    shapes = [shapely.to_wkb(shapely.Point(500100, 4499900)), None]
    table = pa.table({"class": [3, 4], "where": pa.array(shapes, pa.binary())})
    if about is not None:
        geo = {"version": "1.1.0", "primary_column": "where", "columns": {"where": about}}
        table = table.replace_schema_metadata({"geo": json.dumps(geo)})
    parquet.write_table(table, path)
    return path


def test_geoparquet(tmp_path: Path) -> None:
    crs = pytest.importorskip("pyproj").CRS.from_epsg(32618).to_json_dict()
    path = write_geoparquet(tmp_path / "a.parquet", {"encoding": "WKB", "crs": crs})
    (found,) = read_features(path, crs=None, target=UTM)
    assert found.geometry["coordinates"] == (500100.0, 4499900.0)
    assert found.properties == {"class": 3}
    path = write_geoparquet(tmp_path / "b.parquet", {"encoding": "point", "crs": crs})
    with pytest.raises(GeoError, match="stored as 'point'; only WKB can be read"):
        read_features(path, crs=None, target=UTM)
    path = write_geoparquet(tmp_path / "c.parquet", None)
    with pytest.raises(GeoError, match=r"c.parquet: not GeoParquet"):
        read_features(path, crs=None, target=UTM)
    path = write_geoparquet(tmp_path / "d.parquet", {"encoding": "WKB", "crs": None})
    assert read_features(path, crs=UTM, target=UTM)[0].geometry["type"] == "Point"


@pytest.mark.parametrize("suffix", ["gpkg", "shp", "fgb"])
def test_other_files(tmp_path: Path, suffix: str) -> None:
    pyogrio = pytest.importorskip("pyogrio")
    shapely = pytest.importorskip("shapely")
    path = tmp_path / f"a.{suffix}"
    wkb = np.array([shapely.to_wkb(shapely.box(500000, 4499800, 500040, 4499830))], object)
    pyogrio.raw.write(
        path, wkb, [np.array([5], "int32")], ["class"], geometry_type="Polygon", crs=UTM
    )
    (found,) = read_features(path, crs=None, target=UTM)
    assert found.geometry["type"] == "Polygon"
    assert found.properties["class"] == 5


def test_a_table_without_geometry_is_told(tmp_path: Path) -> None:
    pytest.importorskip("pyogrio")
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(GeoError, match="have no geometry"):
        read_features(path, crs=None, target=UTM)


def test_real_geoparquet_makes_labels_and_places(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "inputs" / "geoparquet"
    values = np.zeros((60, 80), "uint8")
    source = array_source({"b": values}, (1, 0, 0, 0, -1, 60), crs="OGC:CRS84")
    labels = Labels(where=folder / "data-polygon-encoding_wkb.parquet")
    report = export_image(source, tmp_path / "s", patch=(20, 15), labels=labels, statistics=True)
    assert report.statistics["label"].max == 1
    at = PatchesAt(where=folder / "data-point-encoding_wkb.parquet")
    assert export_image(source, tmp_path / "t", patch=(8, 6), at=at).patches >= 1

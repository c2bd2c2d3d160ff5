"""Tables out: what Earth Engine's table export writes, and an account of what it loses."""

from __future__ import annotations

import gzip
import json
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely

import tfrio
from tfrio.errors import EncodeError, GeoError, SchemaError, TfrioWarning, UsageError
from tfrio.tables import export_table

if TYPE_CHECKING:
    from pathlib import Path

POINTS = [(-104.5, 20.25), None, (2.0, -33.125)]
PROPERTIES = [
    {"name": "a", "B2": 1, "B3": 0.5, "arr": [[1, 2, 3], [4, 5, 6]]},
    {"name": "é", "B2": 2, "B3": None, "arr": [[7, 8, 9], [10, 11, 12]]},
    {"name": None, "B2": 3, "B3": -2.5, "arr": None},
]


def geojson(path: Path) -> Path:
    """Write the rows as GeoJSON."""
    features = [
        {
            "type": "Feature",
            "geometry": None if p is None else {"type": "Point", "coordinates": list(p)},
            "properties": properties,
        }
        for p, properties in zip(POINTS, PROPERTIES, strict=True)
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def flat_table() -> pa.Table:
    """Return the rows without array as an Arrow table."""
    return pa.table({name: [row[name] for row in PROPERTIES] for name in ("name", "B2", "B3")})


def as_geoparquet(path: Path) -> Path:
    geometry = [None if p is None else shapely.to_wkb(shapely.Point(p)) for p in POINTS]
    about = {"encoding": "WKB", "geometry_types": ["Point"]}
    geo = {"version": "1.1.0", "primary_column": "geom", "columns": {"geom": about}}
    table = flat_table().append_column("geom", pa.array(geometry, pa.binary()))
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), path)
    return path


def as_vector(path: Path) -> Path:
    shapes = np.array([None if p is None else shapely.Point(p) for p in POINTS])
    table = flat_table().append_column("wkb_geometry", pa.array(shapely.to_wkb(shapes)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Shapefile's own remarks on field names and types
        pyogrio.write_arrow(
            table, path, geometry_name="wkb_geometry", geometry_type="Point", crs="EPSG:4326"
        )
    return path


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as Python values."""
    return {n: v if isinstance(v, bytes) else v.tolist() for n, v in row.items()}


def rows_of(path: str) -> list[dict[str, Any]]:
    return [plain(row) for row in tfrio.read(path)]


def test_numbers_text_arrays_and_nulls(tmp_path: Path) -> None:
    with pytest.warns(TfrioWarning, match="geometry dropped"):
        report = export_table(geojson(tmp_path / "t.geojson"), tmp_path / "out")
    assert report.path == str(tmp_path / "out.tfrecord.gz")
    assert rows_of(report.path) == [
        {"name": b"a", "B2": [1.0], "B3": [0.5], "arr": [1, 2, 3, 4, 5, 6]},
        {"name": "é".encode(), "B2": [2.0], "arr": [7, 8, 9, 10, 11, 12]},
        {"B2": [3.0], "B3": [-2.5]},
    ]
    kinds = {name: feature.kind for name, feature in tfrio.infer_schema(report.path).items()}
    assert kinds == {"name": "bytes", "B2": "float", "B3": "float", "arr": "float"}
    assert report.nulls == {"name": 1, "B3": 1, "arr": 1}
    assert (report.rows, report.columns) == (3, ("name", "B2", "B3", "arr"))


def test_exactly_one_gzip_file(tmp_path: Path) -> None:
    report = export_table([{"a": 1}] * 3, tmp_path / "out.tfrecord.gz")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out-manifest.json", "out.tfrecord.gz"]
    data = (tmp_path / "out.tfrecord.gz").read_bytes()
    assert data[:2] == b"\x1f\x8b"
    framed = gzip.decompress(data)
    assert framed == framed[: len(framed) // 3] * 3
    assert rows_of(report.path) == [{"a": [1.0]}] * 3


def test_the_manifest_gives_arrays_back_in_their_shape(tmp_path: Path) -> None:
    rows = [{"B2": 1, "arr": [[1, 2, 3], [4, 5, 6]]}, {"B2": 2, "arr": [[0, 0, 0], [7, 8, 9]]}]
    report = export_table(rows, tmp_path / "out")
    manifest = tfrio.tables.manifest.read_manifest(report.manifest)
    (first, second) = tfrio.read(report.path, schema=manifest.schema())
    assert first["arr"].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert second["arr"].shape == (2, 3)
    assert first["B2"] == 1.0


@pytest.mark.parametrize("suffix", ["parquet", "gpkg", "shp"])
def test_every_vector_format_gives_the_same_records(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    source = as_geoparquet(path) if suffix == "parquet" else as_vector(path)
    report = export_table(source, tmp_path / "out", xy=("lon", "lat"))
    found = {row["B2"][0]: row for row in rows_of(report.path)}
    assert found[1.0] == {"name": b"a", "B2": [1.0], "B3": [0.5], "lon": [-104.5], "lat": [20.25]}
    assert found[3.0] == {"B2": [3.0], "B3": [-2.5], "lon": [2.0], "lat": [-33.125]}
    assert "lon" not in found[2.0]
    assert report.nulls["lon"] == 1


def test_csv_and_data_frames(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("name,B2,B3\na,1,0.5\né,2,\n,3,-2.5\n", encoding="utf-8")
    from_csv = export_table(tmp_path / "t.csv", tmp_path / "csv")
    from_arrow = export_table(flat_table(), tmp_path / "arrow")
    expected = [
        {"name": b"a", "B2": [1.0], "B3": [0.5]},
        {"name": "é".encode(), "B2": [2.0]},
        {"B2": [3.0], "B3": [-2.5]},
    ]
    assert rows_of(from_csv.path) == rows_of(from_arrow.path) == expected


def test_points_of_another_crs_become_degrees(tmp_path: Path) -> None:
    table = pa.table({"a": [1], "g": [shapely.to_wkb(shapely.Point(500_000, 4_500_000))]})
    path = tmp_path / "t.gpkg"
    pyogrio.write_arrow(table, path, geometry_name="g", geometry_type="Point", crs="EPSG:32618")
    report = export_table(path, tmp_path / "out", xy=("lon", "lat"))
    (row,) = rows_of(report.path)
    assert row["lon"][0] == pytest.approx(-75.0)
    assert row["lat"][0] == pytest.approx(40.650895)
    assert report.xy_error is not None
    assert 0 < report.xy_error < 1


@pytest.mark.parametrize(
    ("text", "encoding", "mark"),
    [
        ("id;val\n1;2\n3;4\n", None, "';'"),
        ("id;val\n1;2,5\n", None, "';'"),
        ("id;h\xf6he\r\n1;2\r\n", "latin-1", "';'"),
        ("id\tval\n1\t2\n", "utf-16", "a tab"),
    ],
)
def test_cells_without_commas_are_refused(
    tmp_path: Path, text: str, encoding: str | None, mark: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding or "utf-8"))
    with pytest.raises(SchemaError, match=rf"separated by {mark}.*Save the table with commas"):
        export_table(path, tmp_path / "out", encoding=encoding)
    assert list(tmp_path.iterdir()) == [path]


def test_one_column_may_bear_any_name_in_quotes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('"id;val"\n1\n')
    assert rows_of(export_table(path, tmp_path / "out").path)[0]["id;val"][0] == 1
    path.write_text("a;b,c\n1,2\n")
    assert rows_of(export_table(path, tmp_path / "two").path)[0]["a;b"][0] == 1


def test_xy_of_columns_names_the_next_step(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("lon,lat\n1.5,2.5\n")
    with pytest.raises(UsageError, match="the columns 'lon' and 'lat' are written as they are"):
        export_table(path, tmp_path / "out", xy=("lon", "lat"))
    with pytest.raises(UsageError, match="GeoJSON, GeoParquet or GeoPackage"):
        export_table(path, tmp_path / "out", xy=("x", "y"))


def test_what_xy_needs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="xy= needs a geometry"):
        export_table([{"a": 1}], tmp_path / "out", xy=("lon", "lat"))
    source = geojson(tmp_path / "t.geojson")
    with pytest.raises(UsageError, match="has a column 'B2' already"):
        export_table(source, tmp_path / "out", xy=("B2", "lat"))
    table = pa.table({"g": [shapely.to_wkb(shapely.box(0, 0, 1, 1))]})
    path = tmp_path / "p.gpkg"
    pyogrio.write_arrow(table, path, geometry_name="g", geometry_type="Polygon", crs="EPSG:4326")
    with pytest.raises(GeoError, match="row 0: the geometry is Polygon"):
        export_table(path, tmp_path / "out", xy=("lon", "lat"))
    assert not list(tmp_path.glob("out*"))


def test_selectors_fill_and_types(tmp_path: Path) -> None:
    rows = [{"a": 1, "b": None, "c": "x"}, {"a": 2, "b": 3, "c": None}]
    report = export_table(rows, tmp_path / "out", selectors="b,a", fill=-9999)
    assert rows_of(report.path) == [{"a": [1], "b": [-9999]}, {"a": [2], "b": [3]}]
    by_name = export_table(
        rows, tmp_path / "out", fill={"c": "none"}, types={"a": "bytes"}, overwrite=True
    )
    assert rows_of(by_name.path) == [{"a": b"1", "c": b"x"}, {"a": b"2", "b": [3], "c": b"none"}]
    with pytest.raises(UsageError, match="fill: 'x' does not fit column 'a'"):
        export_table(rows, tmp_path / "out", fill={"a": "x"}, overwrite=True)
    with pytest.raises(UsageError, match="fill: no column 'z'"):
        export_table(rows, tmp_path / "out", fill={"z": 0}, overwrite=True)


def test_identifiers_that_float32_changes(tmp_path: Path) -> None:
    rows = [{"id": 16_777_216}, {"id": 16_777_217}, {"id": None}]
    with pytest.warns(TfrioWarning, match="float32 changed 1 whole numbers of column 'id'"):
        report = export_table(rows, tmp_path / "out")
    assert report.rounded == {"id": 1}
    with pytest.raises(EncodeError, match="row 1: float32 changes 16777217 of column 'id'"):
        export_table(rows, tmp_path / "strict", strict=True)
    exact = export_table(rows, tmp_path / "native", dtype="native")
    assert [row.get("id") for row in rows_of(exact.path)] == [[16_777_216], [16_777_217], None]
    assert not list(tmp_path.glob("strict*"))


def test_an_error_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "t.geojson"
    feature = {"type": "Feature", "geometry": None, "properties": {"a": 1}}
    text = {**feature, "properties": {"a": "x"}}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature, text]}))
    with pytest.raises(SchemaError, match="int in row 0 and text in row 1"):
        export_table(path, tmp_path / "out")
    with pytest.raises(EncodeError, match="does not fit float32"):
        export_table([{"a": 1.0}, {"a": 1e300}], tmp_path / "out")
    with pytest.raises(EncodeError, match="'a' holds a whole number of more than 308 digits"):
        export_table([{"a": 10**310}], tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["t.geojson"]


def test_warnings_turned_into_errors_leave_no_file(tmp_path: Path) -> None:
    source = geojson(tmp_path / "t.geojson")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TfrioWarning, match="geometry dropped"):
            export_table(source, tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["t.geojson"]


def test_a_missing_or_foreign_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        export_table(tmp_path / "none.csv", tmp_path / "out")
    (tmp_path / "x.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(tfrio.TfrioError, match=r"x\.parquet: not readable as a table"):
        export_table(tmp_path / "x.parquet", tmp_path / "out")
    (tmp_path / "x.gpkg").write_bytes(b"nor a GeoPackage")
    with pytest.raises(tfrio.TfrioError, match=r"x\.gpkg: no table that can be read"):
        export_table(tmp_path / "x.gpkg", tmp_path / "out")
    with pytest.raises(UsageError, match="a table is a file"):
        export_table(5, tmp_path / "out")  # type: ignore[arg-type]


def test_real_geoparquet(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "inputs" / "geoparquet"
    report = export_table(
        folder / "data-point-encoding_wkb.parquet", tmp_path / "out", xy=("longitude", "latitude")
    )
    rows = rows_of(report.path)
    assert [row["col"] for row in rows] == [[0.0], [1.0], [2.0], [3.0]]
    assert rows[0]["longitude"] == [30.0]
    assert rows[0]["latitude"] == [10.0]
    with pytest.raises(GeoError, match="Polygon"):
        export_table(
            folder / "data-polygon-encoding_wkb.parquet", tmp_path / "p", xy=("lon", "lat")
        )

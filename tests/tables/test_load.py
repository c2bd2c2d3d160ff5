"""Tables back: types, points, arrays and nulls, in each format."""

from __future__ import annotations

import csv
import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pyogrio
import pyproj
import pytest
import shapely

import tfrio
from tfrio.errors import FeatureKindError, GeoError, SchemaError, UsageError
from tfrio.tables import export_table, import_table

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [
    {"name": b"a", "class": 1.0, "longitude": -104.5, "latitude": 20.25, "tags": [b"x", b"y"]},
    {"name": "é".encode(), "longitude": 2.1, "latitude": -33.125},
    {"class": 3.0, "tags": [b"z"]},
]


def written(path: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    with tfrio.Writer(path) as writer:
        for row in rows:
            writer.write(row)
    return path


def test_geoparquet_as_others_read_it(tmp_path: Path) -> None:
    out = tmp_path / "t.parquet"
    report = import_table(written(tmp_path / "t.tfrecord.gz"), out)
    assert (report.rows, report.points) == (3, 2)
    table = pq.read_table(out)
    assert table.column("name").to_pylist() == ["a", "é", None]
    assert table.column("class").to_pylist() == [1.0, None, 3.0]
    assert table.column("tags").to_pylist() == [["x", "y"], None, ["z"]]
    assert table.schema.field("class").type == pa.float32()
    geo = json.loads(table.schema.metadata[b"geo"])
    assert geo["columns"]["geometry"]["bbox"] == pytest.approx([-104.5, -33.125, 2.1, 20.25])
    points = shapely.from_wkb(table.column("geometry").to_pylist())
    assert shapely.get_x(points[:2]) == pytest.approx([-104.5, 2.1])
    assert points[2] is None
    meta, _ = pyogrio.read_arrow(out) if "Parquet" in pyogrio.list_drivers() else ({}, None)
    assert meta.get("crs", "OGC:CRS84") in ("OGC:CRS84", "EPSG:4326")


def test_csv_and_geojson_are_short_and_exact(tmp_path: Path) -> None:
    path = written(tmp_path / "t.tfrecord")
    import_table(path, tmp_path / "t.csv")
    lines = list(csv.reader((tmp_path / "t.csv").read_text(encoding="utf-8").splitlines()))
    assert lines[0] == ["class", "latitude", "longitude", "name", "tags"]
    assert lines[2] == ["", "-33.125", "2.1", "é", ""]
    assert lines[1][4] == '["x", "y"]'
    import_table(path, tmp_path / "t.geojson")
    features = json.loads((tmp_path / "t.geojson").read_text(encoding="utf-8"))["features"]
    assert features[1]["geometry"] == {"type": "Point", "coordinates": [2.1, -33.125]}
    assert features[1]["properties"]["name"] == "é"
    assert features[2]["geometry"] is None
    assert features[2]["properties"]["longitude"] is None


def test_arrow_file(tmp_path: Path) -> None:
    import_table(written(tmp_path / "t.tfrecord"), tmp_path / "t.arrow", xy=None)
    table = pyarrow.feather.read_table(tmp_path / "t.arrow")
    assert table.column("class").to_pylist() == [1.0, None, 3.0]
    assert "geometry" not in table.column_names


def test_geojson_is_in_degrees_whatever_the_crs_of_the_points(tmp_path: Path) -> None:
    """RFC 7946 knows longitude and latitude only; eastings would lie far off the globe."""
    rows: list[dict[str, Any]] = [{"E": 500000.0, "N": 4500000.0}, {"E": 512345.0}]
    path, out = written(tmp_path / "t.tfrecord", rows), tmp_path / "t.geojson"
    report = import_table(path, out, xy=("E", "N"), crs="EPSG:32618")
    assert str(report).startswith("2 rows, 2 columns, 1 point -> ")
    first, second = json.loads(out.read_text(encoding="utf-8"))["features"]
    move = pyproj.Transformer.from_crs(32618, 4326, always_xy=True)
    expected = move.transform(500000.0, 4500000.0)
    assert first["geometry"]["coordinates"] == pytest.approx(expected, abs=1e-12)
    assert second["geometry"] is None
    assert first["properties"] == rows[0]


@pytest.mark.parametrize("suffix", ["geojson", "parquet"])
def test_an_unknown_crs_is_one_clear_error(tmp_path: Path, suffix: str) -> None:
    path, out = written(tmp_path / "t.tfrecord"), tmp_path / f"t.{suffix}"
    with pytest.raises(GeoError, match=rf"t\.{suffix}: CRS not understood .*NOPE:1"):
        import_table(path, out, crs="NOPE:1")
    assert not out.exists()


@pytest.mark.parametrize("suffix", ["parquet", "csv", "geojson"])
def test_a_table_comes_back_as_it_was(tmp_path: Path, suffix: str) -> None:
    table = pa.table(
        {
            "id": pa.array([1, 2, None], pa.int32()),
            "ok": pa.array([True, None, False]),
            "share": pa.array([0.5, None, 0.25], pa.float32()),
            "day": pa.array([dt.date(2020, 1, 2), None, dt.date(1999, 12, 31)]),
            "at": pa.array([dt.datetime(2020, 1, 2, 3, 4, 5), None, None], pa.timestamp("us")),
            "note": pa.array(["x", None, "ü"]),
            "arr": pa.array([[[1, 2, 3], [4, 5, 6]], None, [[7, 8, 9], [0, 1, 2]]]),
        }
    )
    path = export_table(table, tmp_path / "t", dtype="native").path
    out = tmp_path / f"out.{suffix}"
    import_table(path, out)
    if suffix == "parquet":
        back = pq.read_table(out)
        assert back.to_pylist() == table.to_pylist()
        assert back.schema.field("id").type == pa.int32()
        assert back.schema.field("day").type == pa.date32()
        return
    again = export_table(out, tmp_path / "again", dtype="native").path
    assert first_columns(again) == first_columns(path)


def first_columns(path: str) -> list[tuple[Any, ...]]:
    """Return id, share and note, which plain text formats carry without further notes."""
    rows = tfrio.read(path)
    return [tuple(str(row.get(name)) for name in ("id", "share", "note")) for row in rows]


def test_points_made_at_export_turn_back_into_geometry(tmp_path: Path) -> None:
    source = tmp_path / "s.gpkg"
    places = shapely.points([[1.5, 2.5], [3.5, -4.5]])
    table = pa.table({"a": [1, 2], "g": shapely.to_wkb(places)})
    pyogrio.write_arrow(table, source, geometry_name="g", geometry_type="Point", crs="EPSG:4326")
    path = export_table(source, tmp_path / "t", xy=("lon", "lat")).path
    report = import_table(path, tmp_path / "back.parquet")
    back = pq.read_table(report.path)
    assert back.column_names == ["a", "geometry"]
    assert (shapely.from_wkb(back.column("geometry").to_pylist()) == places).all()
    import_table(path, tmp_path / "back.csv")
    assert (tmp_path / "back.csv").read_text().splitlines()[:2] == ["a,lon,lat", "1,1.5,2.5"]


def test_other_columns_as_points(tmp_path: Path) -> None:
    path = written(tmp_path / "t.tfrecord", [{"e": 500_000, "n": 4_500_000}])
    import_table(path, tmp_path / "t.parquet", xy=("e", "n"), crs="EPSG:32618")
    geo = json.loads(pq.read_schema(tmp_path / "t.parquet").metadata[b"geo"])
    assert geo["columns"]["geometry"]["crs"]["id"]["code"] == 32618
    (point,) = shapely.from_wkb(pq.read_table(tmp_path / "t.parquet")["geometry"].to_pylist())
    assert (point.x, point.y) == (500_000, 4_500_000)
    with pytest.raises(UsageError, match="xy: no column 'x'; there are e, n"):
        import_table(path, tmp_path / "x.parquet", xy=("x", "n"))


def test_types_shapes_and_dates(tmp_path: Path) -> None:
    rows = [
        {"c": 7.0, "a": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "d": b"02/01/2020", "t": 1_577_934_245_000},
        {"c": 8.0, "a": [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]},
    ]
    out = tmp_path / "t.parquet"
    import_table(
        written(tmp_path / "t.tfrecord", rows),
        out,
        types={"c": "uint8"},
        shapes={"a": (2, 3)},
        dates={"d": "%d/%m/%Y", "t": "ms"},
    )
    assert pq.read_table(out).to_pylist() == [
        {
            "c": 7,
            "a": [[1, 2, 3], [4, 5, 6]],
            "d": dt.date(2020, 1, 2),
            "t": dt.datetime(2020, 1, 2, 3, 4, 5),
        },
        {"c": 8, "a": [[6, 5, 4], [3, 2, 1]], "d": None, "t": None},
    ]


def test_a_free_axis(tmp_path: Path) -> None:
    rows = [{"a": np.arange(12.0)}, {"a": np.arange(4.0)}]
    path = written(tmp_path / "t.tfrecord", rows)
    import_table(path, tmp_path / "t.parquet", shapes={"a": (-1, 4)})
    (first, second) = pq.read_table(tmp_path / "t.parquet")["a"].to_pylist()
    assert first == np.arange(12.0).reshape(3, 4).tolist()
    assert second == [[0, 1, 2, 3]]
    for shape in ((2, 5), (-1, 5)):
        with pytest.raises(SchemaError, match="'a'.*12"):
            import_table(path, tmp_path / "bad.parquet", shapes={"a": shape})
    assert not (tmp_path / "bad.parquet").exists()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"types": {"c": "uint8"}}, SchemaError, "record 1: 300.0 of column 'c' is no uint8"),
        ({"types": {"c": "tiny"}}, UsageError, "'tiny' of column 'c' is no Arrow type"),
        ({"types": {"z": "int8"}}, UsageError, "no column 'z'; there are c, d"),
        ({"dates": {"d": "%Y"}}, SchemaError, "record 0: b'x' of column 'd' is no date32"),
        ({"columns": "c,z"}, UsageError, "columns: no column 'z'"),
        ({"shapes": {"z": (2,)}}, UsageError, "shapes: no feature 'z'"),
        ({"xy": ("c", "d")}, UsageError, "column 'd' is not one number a row"),
    ],
)
def test_wrong_options(tmp_path: Path, options: Any, error: type[Exception], text: str) -> None:
    path = written(tmp_path / "t.tfrecord", [{"c": 1.0, "d": b"x"}, {"c": 300.0, "d": b"y"}])
    with pytest.raises(error, match=text):
        import_table(path, tmp_path / "out.parquet", **options)
    assert not (tmp_path / "out.parquet").exists()


def test_the_ending_chooses_the_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in one of \.parquet"):
        import_table(written(tmp_path / "t.tfrecord"), tmp_path / "t.xlsx")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = written(tmp_path / "t.tfrecord", [{"b": b"ok", "s": b"t"}, {"b": b"\xff", "s": b"u"}])
    import_table(path, tmp_path / "t.parquet")
    table = pq.read_table(tmp_path / "t.parquet")
    assert table["b"].to_pylist() == [b"ok", b"\xff"]
    assert table["s"].to_pylist() == ["t", "u"]
    with pytest.raises(SchemaError, match="column 'b' holds bytes that are no text"):
        import_table(path, tmp_path / "t.csv")
    assert not (tmp_path / "t.csv").exists()
    import_table(path, tmp_path / "t.csv", columns=["s"])
    assert (tmp_path / "t.csv").read_text() == "s\nt\nu\n"


def test_the_first_record_does_not_decide(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"v": [1.0]}] * 1500 + [{"v": [1.0, 2.0], "late": 5}]
    out = tmp_path / "t.parquet"
    import_table(written(tmp_path / "t.tfrecord", rows), out, batch_size=400)
    table = pq.read_table(out)
    assert table["v"].to_pylist()[-2:] == [[1.0], [1.0, 2.0]]
    assert table["late"].to_pylist()[-2:] == [None, 5]


def test_two_kinds_of_one_feature(tmp_path: Path) -> None:
    first = written(tmp_path / "a.tfrecord", [{"v": 1}])
    second = written(tmp_path / "b.tfrecord", [{"v": b"x"}])
    with pytest.raises(FeatureKindError, match="'v' has more than one kind"):
        import_table([first, second], tmp_path / "t.parquet")


def test_several_files_in_small_batches(tmp_path: Path) -> None:
    paths = [
        written(tmp_path / f"p-{n:05d}.tfrecord", [{"i": n * 10 + k} for k in range(7)])
        for n in range(3)
    ]
    report = import_table(paths, tmp_path / "t.csv", batch_size=3)
    expected = [str(n * 10 + k) for n in range(3) for k in range(7)]
    assert (tmp_path / "t.csv").read_text().split() == ["i", *expected]
    assert report.rows == 21


@pytest.mark.parametrize(
    ("array", "back"),
    [
        (pa.array([["a", "b"], None, ["é", ""]]), None),
        (pa.array([[[b"\xff", b""], [b"x", b"y"]], None]), None),
        (pa.array([[], None, []], pa.list_(pa.int64())), None),
        (pa.array([["2020-01-02", "x"], ["y"]]), None),
        (pa.array([dt.time(1, 2, 3, 4), None]), None),
        (pa.array([dt.time(1, 2), None], pa.time32("s")), None),
        (pa.array([dt.datetime(2020, 1, 2, 3, tzinfo=dt.UTC), None]), None),
        (pa.array([5, None], pa.timestamp("ms", "Europe/Vienna")), None),
        (pa.array([dt.date(1960, 1, 2), None]), None),
        (pa.array([[dt.date(2020, 1, 2)], None]), [["2020-01-02"], None]),
    ],
)
def test_columns_of_every_type_come_back(tmp_path: Path, array: pa.Array, back: Any) -> None:
    table = pa.table({"v": array, "n": pa.array(range(len(array)), pa.int16())})
    report = export_table(table, tmp_path / "t", dtype="native")
    import_table(report.path, tmp_path / "t.parquet")
    found = pq.read_table(tmp_path / "t.parquet")
    assert found["v"].to_pylist() == (array.to_pylist() if back is None else back)
    if pa.types.is_temporal(array.type):
        assert found["v"].type == (array.type if array.type != pa.time32("s") else pa.time32("ms"))


def test_times_that_float32_rounded_are_told(tmp_path: Path) -> None:
    with tfrio.Writer(tmp_path / "a.tfrecord") as writer:
        for i in range(2):
            writer.write({"ms": np.float32(1715953559123 + i), "day": np.float32(19860 + i)})
    path, out = tmp_path / "a.tfrecord", tmp_path / "a.parquet"
    with pytest.warns(tfrio.TfrioWarning, match="'ms' is stored as float32, .* every 131,072th"):
        import_table(path, out, types={"ms": "timestamp[ms]", "day": "date32"}, batch_size=1)
    assert pq.read_table(out)["day"].to_pylist() == [dt.date(2024, 5, 17), dt.date(2024, 5, 18)]
    with pytest.warns(tfrio.TfrioWarning, match=r"dtype='native'"):
        import_table(path, tmp_path / "b.parquet", dates={"ms": "ms"})
    import_table(path, tmp_path / "c.parquet", types={"day": "timestamp[s]"})

"""GeoJSON and CSV read with the standard library."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tfrio.errors import SchemaError
from tfrio.tables.rows import CsvRows, GeoJsonRows

if TYPE_CHECKING:
    from pathlib import Path


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def feature(properties: object, geometry: object = None) -> dict[str, object]:
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def collection(*features: object, **more: object) -> str:
    return json.dumps({"type": "FeatureCollection", "features": list(features), **more})


def test_geojson(tmp_path: Path) -> None:
    point = {"type": "Point", "coordinates": [1.5, 2.5]}
    text = collection(feature({"a": 1, "n": None}, point), feature(None), feature({"a": 2.5}))
    rows = GeoJsonRows(written(tmp_path / "t.geojson", text))
    assert [(f.name, f.form) for f in rows.fields] == [("a", "float"), ("n", "null")]
    assert rows.geometry
    assert rows.crs == "EPSG:4326"
    assert list(rows) == [({"a": 1, "n": None}, point), ({}, None), ({"a": 2.5}, None)]


def test_geojson_lines_and_a_single_feature(tmp_path: Path) -> None:
    lines = "\x1e" + json.dumps(feature({"a": 1})) + "\n\n" + json.dumps(feature({"a": "x"}))
    rows = GeoJsonRows(written(tmp_path / "t.geojsonl", lines), text=frozenset({"a"}))
    assert [properties for properties, _ in rows] == [{"a": 1}, {"a": "x"}]
    alone = GeoJsonRows(written(tmp_path / "t.json", json.dumps(feature({"b": True}))))
    assert [f.form for f in alone.fields] == ["bool"]
    assert not alone.geometry


def test_the_crs_of_older_geojson(tmp_path: Path) -> None:
    def crs(name: str) -> str | None:
        named = {"type": "name", "properties": {"name": name}}
        text = collection(feature({"a": 1}), crs=named)
        return GeoJsonRows(written(tmp_path / "c.geojson", text)).crs

    assert crs("urn:ogc:def:crs:EPSG::32618") == "urn:ogc:def:crs:EPSG::32618"
    assert crs("urn:ogc:def:crs:OGC:1.3:CRS84") == "EPSG:4326"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"type": "FeatureCollection"', "not JSON"),
        ('{"type": "Topology"}', "not a GeoJSON FeatureCollection"),
        (collection({"type": "Point"}), "element 0 is not a GeoJSON Feature"),
        (collection(feature({"a": 1}), feature({"a": "x"})), "int in row 0 and text in row 1"),
    ],
)
def test_what_is_no_geojson_table(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path / "bad.geojson", text)
    with pytest.raises(SchemaError, match=message) as caught:
        GeoJsonRows(path)
    assert "bad.geojson" in str(caught.value)


def test_csv(tmp_path: Path) -> None:
    text = '\ufeffid,zip,b,note\n1,007,,"a, ""b"""\n\n2,08001,2.5,\n'
    rows = CsvRows(written(tmp_path / "t.csv", text))
    assert [(f.name, f.form) for f in rows.fields] == [
        ("id", "int"),
        ("zip", "text"),
        ("b", "float"),
        ("note", "text"),
    ]
    (part,) = rows.columns(8)
    assert part == {
        "id": [1, 2],
        "zip": ["007", "08001"],
        "b": [None, 2.5],
        "note": ['a, "b"', None],
    }
    assert [len(part["id"]) for part in rows.columns(1)] == [1, 1]


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        (["1", "2"], "int"),
        (["1", "-2.5e3"], "float"),
        (["1", "nan"], "float"),
        (["-inf"], "float"),
        (["1", "infinity"], "text"),
        (["1_000"], "text"),
        (["0.5", "0"], "float"),
        (["00.5"], "text"),
        (["1e999"], "text"),
        (["1" * 310], "text"),
        (["1", "x", "2"], "text"),
        (["", ""], "null"),
    ],
)
def test_the_type_of_a_csv_column_is_that_of_all_its_cells(
    tmp_path: Path, cells: list[str], form: str
) -> None:
    text = "k,v\n" + "".join(f"k,{cell}\n" for cell in cells)
    rows = CsvRows(written(tmp_path / "t.csv", text))
    assert rows.fields[1].form == form
    kept = CsvRows(written(tmp_path / "t.csv", text), text=frozenset({"v"}))
    (part,) = kept.columns(100)
    assert part["v"] == [cell or None for cell in cells]


def test_csv_without_rows(tmp_path: Path) -> None:
    rows = CsvRows(written(tmp_path / "t.csv", "a,b\n"))
    assert [(f.name, f.form) for f in rows.fields] == [("a", "null"), ("b", "null")]
    assert list(rows.columns(8)) == []
    empty = CsvRows(written(tmp_path / "e.csv", ""))
    assert (empty.fields, list(empty.columns(8))) == ([], [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,a\n1,2\n", "names column 'a' twice"),
        ("a,b\n1,2\n3\n", "line 3: 1 cells under a header of 2"),
    ],
)
def test_what_is_no_csv_table(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        CsvRows(written(tmp_path / "t.csv", text))


def test_another_text_encoding_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "a\nété\n", "latin-1")
    with pytest.raises(SchemaError, match="Pass encoding="):
        CsvRows(path)
    assert list(CsvRows(path, encoding="latin-1").columns(8)) == [{"a": ["été"]}]

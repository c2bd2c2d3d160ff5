"""`tfrio export` and `tfrio import`: rasters and tables out and back."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import tfrio
from tests.support.samples import write_points

pytest.importorskip("pyarrow")


@pytest.fixture
def points(tmp_path: Path) -> Path:
    path = tmp_path / "with space ç" / "points.geojson"
    path.parent.mkdir()
    write_points(path)
    return path


def test_table_there_and_back(cli, points) -> None:
    prefix, out = points.parent / "out" / "points", points.parent / "back.csv"
    done = cli("export", "table", points, prefix, "--xy", "lon,lat", "--selectors", "class,name")
    assert done.code == 0
    assert done.out.startswith("12 rows, 4 columns -> ")
    done = cli("import", "table", f"{prefix}.tfrecord.gz", out, "--columns", "name,class")
    assert done.code == 0
    with out.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert (rows[5]["name"], float(rows[5]["class"])) == ("plot 5", 2)


def test_table_reports_as_json(cli, points) -> None:
    prefix = points.parent / "points"
    report = cli("export", "table", "--json", points, prefix, "--xy", "lon,lat").json
    assert report["rows"] == 12
    assert report["nulls"] == {"ndvi": 2}
    out = points.parent / "back.geojson"
    done = cli("import", "table", "--json", f"{prefix}.tfrecord.gz", out, "--type", "class=int32")
    assert done.json["rows"] == 12
    features = json.loads(out.read_text(encoding="utf-8"))["features"]
    assert features[4]["properties"]["class"] == 1


@pytest.mark.parametrize(
    ("fills", "first"),
    [
        ((), {"b": "x"}),
        (("-9999",), {"a": -9999.0, "b": "x", "n": -9999.0}),
        (("none",), {"b": "x", "c": "none"}),
        (("a=0.5", "c=none"), {"a": 0.5, "b": "x", "c": "none"}),
    ],
)
def test_fill_takes_the_place_of_nulls_in_columns_of_its_kind(
    cli, tmp_path, fills: tuple[str, ...], first: dict[str, object]
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,b,c,n\n,x,,\n2,y,z,3\n")
    options = [word for fill in fills for word in ("--fill", fill)]
    assert cli("export", "table", table, tmp_path / "out", *options).code == 0
    row = next(iter(tfrio.read(tmp_path / "out.tfrecord.gz")))
    found = {k: v.decode() if isinstance(v, bytes) else v.tolist()[0] for k, v in row.items()}
    assert found == first


def test_a_fill_that_does_not_fit_its_column_is_wrong_use(cli, tmp_path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,b\n,x\n2,y\n")
    done = cli("export", "table", table, tmp_path / "out", "--fill", "a=none")
    assert done.code == 2
    assert "fill: 'none' does not fit column 'a'" in done.err


@pytest.mark.parametrize("command", ["export", "import"])
def test_xy_takes_two_names(cli, points, command: str) -> None:
    done = cli(command, "table", points, points.parent / "x.csv", "--xy", "lon")
    assert done.code == 2
    assert "--xy takes two names" in done.err


def test_an_unknown_column_is_named(cli, points) -> None:
    done = cli("export", "table", points, points.parent / "x", "--selectors", "class,nope")
    assert done.code == 2
    assert "nope" in done.err
    assert not (points.parent / "x.tfrecord.gz").exists()


def test_an_unknown_ending_is_wrong_use(cli, points) -> None:
    prefix = points.parent / "points"
    cli("export", "table", points, prefix, "--xy", "lon,lat")
    done = cli("import", "table", f"{prefix}.tfrecord.gz", points.parent / "x.docx")
    assert done.code == 2
    assert ".parquet" in done.err

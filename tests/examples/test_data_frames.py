"""Record files go to pandas, polars and duckdb through Arrow, and come back the same."""

from __future__ import annotations

import pytest

import tfrio
from tfrio.examples.encode import encode_example

BIG = 2**60 + 1  # no float holds it
ROWS = [{"id": BIG, "name": b"a", "v": [1.5, 2.5]}, {"id": 7, "v": []}]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "rows.tfrecord"
    with tfrio.Writer(path) as writer:
        for row in ROWS:
            writer.write(row)
    return path


def copied(frame, path):
    """Write a data frame as records, and return the payloads."""
    with tfrio.Writer(path) as writer:
        for batch in tfrio.from_arrow(frame):
            writer.write_batch(batch)
    return list(tfrio.read_records(path))


def test_polars(path, tmp_path):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(tfrio.to_arrow(path))
    assert frame["id"].to_list() == [BIG, 7]
    assert frame["name"].to_list() == [b"a", None]
    assert frame["v"].to_list() == [[1.5, 2.5], []]
    assert copied(frame, tmp_path / "copy") == list(tfrio.read_records(path))


def test_pandas(path, tmp_path):
    pandas = pytest.importorskip("pandas", minversion="3.0")
    frame = pandas.DataFrame.from_arrow(tfrio.to_arrow(path))
    assert frame["id"].tolist() == [BIG, 7]
    assert frame["name"].isna().tolist() == [False, True]
    assert [list(v) for v in frame["v"]] == [[1.5, 2.5], []]
    numbers = frame[["id"]]
    assert copied(numbers, tmp_path / "copy") == [encode_example({"id": n}) for n in (BIG, 7)]


def test_duckdb(path):
    duckdb = pytest.importorskip("duckdb")
    table_of_rows = tfrio.to_arrow(path)
    found = duckdb.sql("select max(id), count(name), sum(len(v)) from table_of_rows").fetchall()
    assert found == [(BIG, 1, 2)]
    del table_of_rows  # duckdb finds it by its name

"""Conversions there and back: values, nulls and payloads exactly as they were."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrio
from tfrio.errors import EncodeError, SchemaError, TfrioWarning, UsageError
from tfrio.tables import convert

if TYPE_CHECKING:
    from pathlib import Path

THREE = [{"id": 10 * k, "v": 10 * k + 0.5} for k in (1, 2, 3)]


def written(path: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    with tfrio.Writer(path, **options) as writer:
        for row in rows:
            writer.write(row)
    return path


def payloads(path: Path) -> list[bytes]:
    return list(tfrio.read_records(path))


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "npz"])
def test_three_records_there_and_back(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path / "three.tfrecord", THREE)
    report = convert(path, tmp_path / f"t.{suffix}")
    assert (report.rows, report.source_size) == (3, path.stat().st_size)
    convert(tmp_path / f"t.{suffix}", tmp_path / "back.tfrecord")
    assert payloads(tmp_path / "back.tfrecord") == payloads(path)


def test_parquet_has_the_plain_types(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": 1, "v": [1.5, 2.5], "b": b"\x00\xff", "w": [b"a", b""]},
        {"v": [], "w": [b"c"]},
    ]
    convert(written(tmp_path / "t.tfrecord.gz", rows), tmp_path / "t.parquet")
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.to_pylist() == [
        {"b": b"\x00\xff", "id": 1, "v": [1.5, 2.5], "w": [b"a", b""]},
        {"b": None, "id": None, "v": [], "w": [b"c"]},
    ]
    assert table.schema.field("id").type == pa.int64()
    assert table.schema.field("v").type.value_type == pa.float32()


values = {
    "int": st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
    "float": st.one_of(st.none(), st.floats(width=32)),
    "bytes": st.one_of(st.none(), st.binary(max_size=5)),
    "ints": st.one_of(st.none(), st.lists(st.integers(-9, 9), max_size=4)),
    "words": st.one_of(st.none(), st.lists(st.binary(max_size=3), max_size=3)),
}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.fixed_dictionaries(values), min_size=1, max_size=12).filter(
        lambda rows: any(value is not None for row in rows for value in row.values())
    ),
    st.integers(1, 5),
)
def test_random_rows_come_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], batch: int
) -> None:
    folder = tmp_path_factory.mktemp("convert")
    # An empty list has no kind of its own in a row, so the schema says it.
    schema = {"int": "int64", "float": "float", "bytes": "bytes", "ints": "int64", "words": "bytes"}
    features = {n: tfrio.Feature(k, required=False) for n, k in schema.items()}  # type: ignore[arg-type]
    path = written(folder / "a.tfrecord", rows, schema=features)
    convert(path, folder / "t.parquet", batch_size=batch)
    convert(folder / "t.parquet", folder / "b.tfrecord", batch_size=batch + 1)
    assert payloads(folder / "b.tfrecord") == payloads(path)


def test_the_order_of_features_is_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "t.tfrecord", [{"z": 1, "a": 2.0}], sort=False)
    convert(path, tmp_path / "t.parquet")
    convert(tmp_path / "t.parquet", tmp_path / "b.tfrecord")
    assert payloads(tmp_path / "b.tfrecord") == payloads(path)
    assert pq.read_schema(tmp_path / "t.parquet").names == ["z", "a"]


def test_sequences_there_and_back(tmp_path: Path) -> None:
    path = tmp_path / "s.tfrecord"
    with tfrio.Writer(path) as writer:
        writer.write_sequence({"n": 3}, {"tok": [[1, 2], [], [3]], "im": [b"\xff", b""]})
        writer.write_sequence({"n": 1}, {"tok": [[7]], "im": [b"abc"]})
    convert(path, tmp_path / "s.parquet")
    table = pq.read_table(tmp_path / "s.parquet")
    assert table["tok"].to_pylist() == [[[1, 2], [], [3]], [[7]]]
    assert table["n"].to_pylist() == [3, 1]
    convert(tmp_path / "s.parquet", tmp_path / "b.tfrecord")
    assert list(map(str, tfrio.read(tmp_path / "b.tfrecord"))) == list(map(str, tfrio.read(path)))


def test_kindless_features_are_warned_of(tmp_path: Path) -> None:
    payload = bytes.fromhex("0a130a050a017812000a0a0a017912051a030a0107")
    path = tmp_path / "k.tfrecord"
    with tfrio.RecordWriter(path) as writer:
        writer.write(payload)
    with pytest.warns(TfrioWarning, match="feature 'x' is named without a kind"):
        convert(path, tmp_path / "k.parquet")
    assert pq.read_table(tmp_path / "k.parquet").to_pylist() == [{"x": None, "y": 7}]


def test_feature_lists_without_a_kind_go_there_and_back(tmp_path: Path) -> None:
    path = tmp_path / "k.tfrecord"
    with tfrio.RecordWriter(path) as writer:  # n = 7; list b of one step, which has no kind
        writer.write(bytes.fromhex("0a0c0a0a0a016e12051a030a0107" + "12090a070a016212020a00"))
    convert(path, tmp_path / "k.parquet")
    assert pq.read_table(tmp_path / "k.parquet").to_pylist() == [{"b": [None], "n": 7}]
    convert(tmp_path / "k.parquet", tmp_path / "again.tfrecord")
    (row,) = tfrio.read(tmp_path / "again.tfrecord")
    assert (row["n"].tolist(), row["b"]) == ([7], [None])


class TestArchive:
    """NumPy archives."""

    def test_arrays_keep_shape_and_dtype(self, tmp_path: Path) -> None:
        arrays = {
            "x": np.arange(12, dtype=np.float32).reshape(3, 2, 2),
            "y": np.array([1, 2**62, 3]),
            "u": np.arange(6, dtype=np.uint8).reshape(3, 2),
            "ok": np.array([True, False, True]),
            "h": np.array([0.5, 1.5, 2.5], np.float16),
            "name": np.array(["a", "é", ""]),
        }
        np.savez(tmp_path / "a.npz", **arrays)
        convert(tmp_path / "a.npz", tmp_path / "a.tfrecord")
        (first, *_) = tfrio.read(tmp_path / "a.tfrecord")
        assert np.asarray(first["x"]).ravel().tolist() == [0, 1, 2, 3]
        assert first["name"] == b"a"
        convert(tmp_path / "a.tfrecord", tmp_path / "b.npz")
        with np.load(tmp_path / "b.npz") as back:
            for name in ("x", "y", "u", "ok", "h"):
                assert back[name].dtype == arrays[name].dtype
                np.testing.assert_array_equal(back[name], arrays[name])
            assert back["name.data"].tobytes() == "aé".encode()
            assert back["name.offsets"].tolist() == [0, 1, 3, 3]

    def test_ragged_and_absent_values(self, tmp_path: Path) -> None:
        rows = [{"v": [1.0, 2.0], "k": 5}, {"v": []}, {"v": [3.0], "k": 6, "b": b"x"}]
        path = written(tmp_path / "t.tfrecord", rows)
        convert(path, tmp_path / "t.npz", batch_size=2)
        with np.load(tmp_path / "t.npz") as archive:
            assert archive["v.values"].tolist() == [1, 2, 3]
            assert archive["v.offsets"].tolist() == [0, 2, 2, 3]
            assert archive["k"].tolist() == [5, 0, 6]
            assert archive["k.present"].tolist() == [True, False, True]
        convert(tmp_path / "t.npz", tmp_path / "b.tfrecord", batch_size=2)
        assert payloads(tmp_path / "b.tfrecord") == payloads(path)

    def test_what_is_no_table(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", x=np.zeros(3), y=np.zeros(4), z=np.zeros(3, complex))
        with pytest.raises(EncodeError, match="differ in length along their first axis: x 3, y 4"):
            convert(tmp_path / "a.npz", tmp_path / "a.tfrecord", features=["x", "y"])
        with pytest.raises(SchemaError, match="array 'z' is complex128"):
            convert(tmp_path / "a.npz", tmp_path / "a.tfrecord")
        with pytest.raises(UsageError, match="no array 'q'; there are x, y, z"):
            convert(tmp_path / "a.npz", tmp_path / "a.tfrecord", features=["q"])
        np.savez(tmp_path / "o.npz", o=np.array([{1: 2}], object))
        with pytest.raises(SchemaError, match="array 'o' cannot be read .*leave it out with fea"):
            convert(tmp_path / "o.npz", tmp_path / "a.tfrecord")
        (tmp_path / "b.npz").write_bytes(b"no archive")
        with pytest.raises(SchemaError, match="not a NumPy archive"):
            convert(tmp_path / "b.npz", tmp_path / "a.tfrecord")
        path = written(tmp_path / "w.tfrecord", [{"w": [b"a", b"b"]}, {"w": [b"c"]}])
        with pytest.raises(SchemaError, match="'w' holds lists of byte strings"):
            convert(path, tmp_path / "w.npz")
        assert not (tmp_path / "a.tfrecord").exists()
        assert not (tmp_path / "w.npz").exists()


def test_recompression_leaves_payloads_alone(tmp_path: Path) -> None:
    path = written(tmp_path / "t.tfrecord", THREE * 500)
    small = convert(path, tmp_path / "t.tfrecord.gz", level=9)
    fast = convert(path, tmp_path / "f.tfrecord.gz", level=1)
    assert small.size <= fast.size < path.stat().st_size
    assert payloads(tmp_path / "t.tfrecord.gz") == payloads(path)
    assert "1,500 rows" in str(small)
    assert small.as_dict()["source_size"] == path.stat().st_size


def test_wrong_uses(tmp_path: Path) -> None:
    path = written(tmp_path / "t.tfrecord", THREE)
    convert(path, tmp_path / "t.parquet")
    with pytest.raises(UsageError, match="are both tables"):
        convert(tmp_path / "t.parquet", tmp_path / "t.arrow")
    with pytest.raises(UsageError, match="no column 'z'; there are id, v"):
        convert(tmp_path / "t.parquet", tmp_path / "b.tfrecord", features=["z"])
    with pytest.raises(UsageError, match="features= needs"):
        convert(path, tmp_path / "b.tfrecord", features=["id"])
    assert not (tmp_path / "b.tfrecord").exists()


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "t.json", "t.csv.gz", "t.txt"])
def test_names_that_say_something_else(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / "three.tfrecord", THREE)
    text = r"must end in \.tfrecord, \.tfrecord\.gz, \.parquet"
    with pytest.raises(UsageError, match=text) as caught:
        convert(path, tmp_path / name)
    assert ("import_table" in str(caught.value)) == ("csv" in name or "json" in name)
    assert [file.name for file in tmp_path.iterdir()] == ["three.tfrecord"]


@pytest.mark.parametrize("name", ["t", "t.gz", "t.rec", "t-00000-of-00001", "t.tfrec.gz"])
def test_names_of_records(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / "three.tfrecord", THREE)
    convert(path, tmp_path / name)
    assert payloads(tmp_path / name) == payloads(path)


def test_records_without_features_have_no_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "t.tfrecord", [{}, {}])
    with pytest.raises(SchemaError, match="no features, so there are no columns"):
        convert(path, tmp_path / "t.parquet")


def test_some_features_in_another_order(tmp_path: Path) -> None:
    path = written(tmp_path / "t.tfrecord", THREE)
    convert(path, tmp_path / "t.parquet", features=["v", "id"])
    assert pq.read_schema(tmp_path / "t.parquet").names == ["v", "id"]
    convert(tmp_path / "t.parquet", tmp_path / "b.tfrecord", features=["id"])
    assert [list(row) for row in tfrio.read(tmp_path / "b.tfrecord")] == [["id"]] * 3


def test_a_real_shard_survives(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "ee" / "phen_asynch"
    (shard,) = folder.glob("*.tfrecord")
    convert(shard, tmp_path / "t.parquet")
    convert(tmp_path / "t.parquet", tmp_path / "b.tfrecord")
    assert payloads(tmp_path / "b.tfrecord") == payloads(shard)


@pytest.mark.parametrize("name", ["o.parquet", "o.npz", "o.tfrecord.gz"])
def test_a_file_that_exists_is_replaced_only_when_asked(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / "t.tfrecord", [{"id": 1}, {"id": 2}])
    out = tmp_path / name
    out.write_bytes(b"precious")
    with pytest.raises(FileExistsError, match="exists already; name another, or set overwrite"):
        convert(path, out)
    assert out.read_bytes() == b"precious"
    assert convert(path, out, overwrite=True).rows == 2


def test_a_pipe_is_refused_instead_of_read_twice(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    target = tmp_path / "out.parquet"
    for work in (lambda: convert(pipe, target), lambda: tfrio.to_arrow(pipe)):
        with pytest.raises(UsageError, match="save it to a file first"):
            work()
    assert not target.exists()


@pytest.mark.parametrize("suffix", ["parquet", "npz", "tfrecord.gz"])
def test_progress_tells_records(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path / "three.tfrecord", THREE)
    there: list[tuple[int, int]] = []
    convert(path, tmp_path / f"t.{suffix}", progress=lambda *now: there.append(now))
    assert there[-1][0] in (1, 3)
    assert there[-1][1] == (3 if suffix == "parquet" else 0)
    back: list[tuple[int, int]] = []
    convert(tmp_path / f"t.{suffix}", tmp_path / "b.tfrecord", progress=lambda *n: back.append(n))
    assert back

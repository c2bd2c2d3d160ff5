"""Shapes taken from other features, lists of arrays, and where errors point."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.examples.helpers import Empty, example, put, sequence
from tfrio.errors import DecodeError, SchemaError
from tfrio.examples.decode import read, read_batches
from tfrio.examples.schema import Feature


def test_numbers_with_named_axes(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a",
        example({"m": [float(i) for i in range(6)], "h": [2]}),
        example({"m": [float(i) for i in range(9)], "h": [3]}),
        example({"h": [1]}),
    )
    schema = {"m": Feature("float", ("h", 3), required=False), "h": Feature("int64")}
    (batch,) = read_batches(path, 5, schema=schema)
    assert [None if a is None else a.shape for a in batch["m"]] == [(2, 3), (3, 3), None]
    assert batch["m"][1][2].tolist() == [6, 7, 8]
    wrong = put(tmp_path / "b", example({"m": [1.0, 2.0], "h": [2]}))
    with pytest.raises(SchemaError, match=r"2 values cannot form \(2,3\); 2 = 1.2, record 0"):
        list(read(wrong, schema=schema))
    two = put(tmp_path / "c", example({"m": [1.0], "h": [1, 1]}))
    with pytest.raises(SchemaError, match="axis from 'h', which has no single length"):
        list(read(two, schema=schema))


def test_many_arrays_with_named_axes(tmp_path: Path) -> None:
    path = put(tmp_path / "a", example({"px": [b"\x01\x02", b"\x03\x04"], "w": [2]}))
    schema = {"px": Feature("bytes", (1, "w"), codec="raw", dtype="uint8", many=True)}
    (row,) = read(path, schema=schema)
    assert [a.tolist() for a in row["px"]] == [[[1, 2]], [[3, 4]]]
    negative = put(tmp_path / "b", example({"px": [b"\x01"], "w": [-1]}))
    with pytest.raises(SchemaError, match="no single length"):
        list(read(negative, schema=schema))


def test_errors_in_lists_point_to_the_step(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a",
        sequence({}, {"w": [[b"ok"]]}),
        sequence({}, {"w": [[b"ok"], [b"ok"], [b"\xff"]]}),
    )
    with pytest.raises(DecodeError, match=r"no UTF-8 text .*step 2 of record 1 of") as caught:
        list(read(path, schema={"w": Feature("bytes", (), dtype="str", place="list")}))
    assert (caught.value.path, caught.value.record, caught.value.feature) == (path, 1, "w")
    lists = put(tmp_path / "b", example({"w": [b"a"]}), example({"w": [b"a", b"\xff"]}))
    with pytest.raises(DecodeError, match="step 1 of record 1 of"):
        list(read(lists, schema={"w": Feature("bytes", dtype="str")}))
    large = put(tmp_path / "c", sequence({}, {"n": [[1], [2, 300]]}))
    with pytest.raises(SchemaError, match="300 does not fit uint8, step 1 of record 0 of"):
        list(read(large, schema={"n": Feature("int64", dtype="uint8", place="list")}))


def test_an_empty_file_of_arrays(tmp_path: Path) -> None:
    path = put(tmp_path / "a", example({"m": Empty("bytes_list")}))
    schema = {"m": Feature("bytes", (2,), codec="raw", dtype="uint8", many=True)}
    (batch,) = read_batches(path, 5, schema=schema)
    assert batch["m"].values.shape == (0, 2)
    assert batch["m"].lengths.tolist() == [0]


def test_free_axes_of_no_values(tmp_path: Path) -> None:
    path = put(tmp_path / "a", example({"x": Empty("float_list")}), example({"x": [1.0, 2.0]}))
    (batch,) = read_batches(path, 5, schema={"x": Feature("float", (-1, 2))})
    assert batch["x"].lengths.tolist() == [0, 1]
    with pytest.raises(SchemaError, match=r"2 values cannot form \(-1,0\)"):
        list(read(path, schema={"x": Feature("float", (-1, 0))}))


def test_row_lengths_must_be_lists(tmp_path: Path) -> None:
    path = put(tmp_path / "a", example({"x": [1, 2], "n": [1, 1]}))
    with pytest.raises(SchemaError, match="needs lists of free length"):
        list(read(path, schema={"x": Feature("int64", (2,), row_lengths=("n",))}))
    negative = put(tmp_path / "b", example({"x": [1], "n": [2, -1]}))
    with pytest.raises(SchemaError, match="do not add up"):
        list(read(negative, schema={"x": Feature("int64", row_lengths=("n",))}))


def test_big_and_small_bytes_of_arrays(tmp_path: Path) -> None:
    array = np.arange(3, dtype=np.int32)
    path = put(
        tmp_path / "a",
        example({"a": [array.astype(">i4").tobytes()]}),
        example({"a": [(array * 7).astype(">i4").tobytes()]}),
    )
    schema = {"a": Feature("bytes", (3,), codec="raw", dtype="int32", byte_order="big")}
    (batch,) = read_batches(path, 5, schema=schema)
    assert batch["a"].dtype == np.int32
    assert batch["a"].tolist() == [[0, 1, 2], [0, 7, 14]]

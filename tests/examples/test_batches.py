"""Columns of every making: codecs, nested lists, masks, mixtures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.examples.helpers import parse, payloads
from tfrio.errors import EncodeError, MissingFeatureError
from tfrio.examples.columns import BytesColumn, Ragged
from tfrio.examples.decode import read, read_batches
from tfrio.examples.schema import Feature
from tfrio.examples.writer import Writer


def written(path: Path, columns: dict, **options: object) -> list[dict]:
    with Writer(path, **options) as writer:  # type: ignore[arg-type]
        writer.write_batch(columns)
    return [parse(p) for p in payloads(path)]


def test_arrays_under_a_codec(tmp_path: Path) -> None:
    schema = {
        "a": Feature("bytes", (2, 3), codec="raw", dtype="uint16", required=False),
        "m": Feature("bytes", (2,), codec="raw", dtype="int8", many=True),
    }
    arrays = np.arange(18, dtype=np.uint16).reshape(3, 2, 3)
    columns = {
        "a": [arrays[0], None, arrays[2]],
        "m": [[np.array([1, 2], np.int8)], [], [[3, 4], [5, 6]]],
    }
    written(tmp_path / "a", columns, schema=schema)
    (batch,) = read_batches(tmp_path / "a", 5, schema=schema)
    assert batch["a"].tolist() == [
        arrays[0].tolist(),
        np.zeros((2, 3)).tolist(),
        arrays[2].tolist(),
    ]
    assert batch.present["a"].tolist() == [True, False, True]
    assert batch["m"].tolist() == [[[1, 2]], [], [[3, 4], [5, 6]]]
    with Writer(tmp_path / "b", schema={"a": schema["a"]}) as writer:
        writer.write_batch({"a": arrays})
        with pytest.raises(EncodeError, match=r"feature 'a': shape \(3,\) is not the schema's"):
            writer.write_batch({"a": [np.zeros(3, np.uint16)]})
    with (
        Writer(tmp_path / "c", schema={"m": schema["m"]}) as writer,
        pytest.raises(MissingFeatureError, match="absent in row 1"),
    ):
        writer.write_batch({"m": [[[1, 2]], None]})


def test_nested_lists_are_split(tmp_path: Path) -> None:
    nested = Ragged(Ragged(np.arange(6), np.array([0, 2, 3, 6])), np.array([0, 1, 3]))
    first, second = written(tmp_path / "a", {"k": nested}, ragged="split")
    assert first == {"k/values": ("int64_list", [0, 1]), "k/lengths": ("int64_list", [2])}
    assert second["k/lengths"] == ("int64_list", [1, 3])
    assert [[v.tolist() for v in row["k"]] for row in read(tmp_path / "a")] == [
        [[0, 1]],
        [[2], [3, 4, 5]],
    ]
    schema = {"k": Feature("int64", name="flat", row_lengths=("outer", "inner"))}
    deep = Ragged(nested, np.array([0, 0, 2]))
    first, second = written(tmp_path / "b", {"k": deep}, schema=schema)
    assert first == {
        "flat": ("int64_list", []),
        "outer": ("int64_list", []),
        "inner": ("int64_list", []),
    }
    assert second == {
        "flat": ("int64_list", [0, 1, 2, 3, 4, 5]),
        "outer": ("int64_list", [1, 2]),
        "inner": ("int64_list", [2, 1, 3]),
    }
    with (
        Writer(tmp_path / "c", schema=schema) as writer,
        pytest.raises(EncodeError, match="'k' needs lists of lists"),
    ):
        writer.write_batch({"k": np.zeros((2, 3), np.int64)})


def test_lists_of_any_value_become_columns(tmp_path: Path) -> None:
    columns = {
        "mix": [1, 2.5, [3]],
        "same": [np.zeros((2, 2)), np.ones((2, 2)), [[1, 2], [3, 4]]],
        "some": [b"a", None, b"c"],
        "empty": [[], [1.5], []],
        "texts": [["a", "b"], "c", []],
    }
    rows = written(tmp_path / "a", columns)
    assert [row["mix"] for row in rows] == [
        ("float_list", [1]),
        ("float_list", [2.5]),
        ("float_list", [3]),
    ]
    assert rows[2]["same"] == ("float_list", [1, 2, 3, 4])
    assert [row.get("some") for row in rows] == [
        ("bytes_list", [b"a"]),
        None,
        ("bytes_list", [b"c"]),
    ]
    assert [row["empty"] for row in rows] == [
        ("float_list", []),
        ("float_list", [1.5]),
        ("float_list", []),
    ]
    assert [row["texts"][1] for row in rows] == [[b"a", b"b"], [b"c"], []]


def test_what_columns_cannot_be(tmp_path: Path) -> None:
    with Writer(
        tmp_path / "a", schema={"b": "bytes", "s": Feature("float", (), place="list")}
    ) as writer:
        with pytest.raises(EncodeError, match="'b' is bytes but"):
            writer.write_batch({"b": np.zeros(2), "s": [[1], [2]]})
        with pytest.raises(EncodeError, match="feature list 's' needs rows of steps"):
            writer.write_batch({"b": [b"", b""], "s": np.zeros(2)})
    with (
        Writer(tmp_path / "b", schema={"f": "float"}) as writer,
        pytest.raises(EncodeError, match="'f' is float but bytes was given"),
    ):
        writer.write_batch({"f": BytesColumn.of([b""])})
    with Writer(tmp_path / "c") as writer:
        with pytest.raises(EncodeError, match="empty lists have no kind"):
            writer.write_batch({"x": [[], []]})
        with pytest.raises(EncodeError, match="use write_sequence or ragged='split'"):
            writer.write_batch({"x": [[[1], [2, 3]]]})
        writer.write_batch({"x": [None, None], "y": [1, 2]})
    assert [sorted(parse(p)) for p in payloads(tmp_path / "c")] == [["y"], ["y"]]


def test_required_lists_are_empty_where_masked(tmp_path: Path) -> None:
    schema = {"b": Feature("bytes"), "r": Feature("int64"), "w": Feature("bytes")}
    columns = {
        "b": BytesColumn.of([b"a", b"gone"]),
        "r": Ragged(np.array([1]), np.array([0, 1, 1])),
        "w": [None, [b"x"]],
    }
    mask = {"b": np.array([True, False]), "r": np.array([True, False])}
    with Writer(tmp_path / "a", schema=schema) as writer:
        writer.write_batch(columns, present=mask)
    first, second = (parse(p) for p in payloads(tmp_path / "a"))
    assert first == {"b": ("bytes_list", [b"a"]), "r": ("int64_list", [1]), "w": ("bytes_list", [])}
    assert second == {"b": ("bytes_list", []), "r": ("int64_list", []), "w": ("bytes_list", [b"x"])}


def test_steps_as_arrays(tmp_path: Path) -> None:
    schema = {"s": Feature("float", (2,), place="list")}
    steps = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    with Writer(tmp_path / "a", schema=schema) as writer:
        writer.write_batch({"s": steps})
    rows = list(read(tmp_path / "a", schema=schema))
    assert [row["s"].tolist() for row in rows] == steps.tolist()


def test_a_record_with_a_prediction_added_keeps_its_other_features(tmp_path: Path) -> None:
    rows = [{"id": i, "dem": np.random.default_rng(i).random(5), "b": b"\x00"} for i in range(4)]
    with Writer(tmp_path / "a") as writer:
        for row in rows:
            writer.write(row)
    with Writer(tmp_path / "b") as writer:
        for row in read(tmp_path / "a"):
            writer.write({**row, "pred": row["dem"].mean()})
    for before, after in zip(payloads(tmp_path / "a"), payloads(tmp_path / "b"), strict=True):
        old, new = parse(before), parse(after)
        assert new.pop("pred")[0] == "float_list"
        assert new == old

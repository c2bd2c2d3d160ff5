"""Arrays with several axes come back with them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.examples.helpers import example, put
from tfrio.errors import SchemaError, TfrioWarning
from tfrio.examples.decode import read, read_batches
from tfrio.examples.opened import open as tfrio_open
from tfrio.examples.schema import Feature
from tfrio.examples.sidecar import load_sidecar
from tfrio.examples.writer import Writer


def test_arrays_come_back_with_their_axes(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    with Writer(tmp_path / "a.tfrecord.gz") as writer:
        writer.write({"x": array, "y": [1, 2], "free": np.zeros((2, 3), np.int64)})
        writer.write({"x": array + 1, "y": [3, 4], "free": np.zeros((5, 3), np.int64)})
        writer.write_batch(
            {"x": array[None] + 2, "y": [[5, 6]], "free": np.ones((1, 1, 3), np.int64)}
        )
    rows = list(read(tmp_path / "a.tfrecord.gz"))
    assert [row["x"].tolist() for row in rows] == [(array + k).tolist() for k in range(3)]
    assert [row["free"].shape for row in rows] == [(2, 3), (5, 3), (1, 3)]
    assert rows[0]["y"].shape == (2,)
    (batch,) = read_batches(tmp_path / "a.tfrecord.gz", 5)
    assert batch["x"].shape == (3, 2, 3)


def test_plain_rows_make_no_sidecar_and_remove_a_stale_one(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.write({"x": np.zeros((2, 3))})
    assert (tmp_path / "a.schema.json").exists()
    with Writer(tmp_path / "a") as writer:
        writer.write({"x": np.zeros(6)})
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    with Writer(tmp_path / "b", sidecar=False) as writer:
        writer.write({"x": np.zeros((2, 3))})
    assert next(read(tmp_path / "b"))["x"].shape == (6,)


def test_shapes_that_never_agree_are_not_noted(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.write({"x": np.zeros((2, 3))})
        writer.write({"x": np.zeros((3, 5))})
    assert [row["x"].shape for row in read(tmp_path / "a")] == [(6,), (15,)]


def test_appending_joins(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.write({"x": np.zeros((2, 3))})
    with Writer(tmp_path / "a", mode="a") as writer:
        writer.write({"x": np.ones((2, 3)), "y": np.ones((1, 2))})
    first, second = read(tmp_path / "a")
    assert first["x"].shape == second["x"].shape == (2, 3)
    assert second["y"].shape == (1, 2)


def test_a_sidecar_of_another_file_is_not_believed(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.write({"x": np.zeros((2, 3))})
    put(tmp_path / "a", example({"x": [0.5] * 7}))
    assert load_sidecar(tmp_path / "a") is None
    assert next(read(tmp_path / "a"))["x"].shape == (7,)
    (tmp_path / "a.schema.json").write_text("{")
    with pytest.raises(SchemaError, match="remove the file to go on"):
        list(read(tmp_path / "a"))


def test_a_hint_that_proves_wrong_gives_way(tmp_path: Path) -> None:
    path = put(tmp_path / "a", example({"x": [0.5] * 6}), example({"x": [0.5] * 7}))
    with Writer(tmp_path / "b") as writer:
        writer.write({"x": np.zeros((2, 3))})
    note = json.loads((tmp_path / "b.schema.json").read_text())
    note["bytes"] = Path(path).stat().st_size
    (tmp_path / "a.schema.json").write_text(json.dumps(note))
    assert [row["x"].shape for row in read(path)] == [(2, 3), (7,)]
    with pytest.warns(TfrioWarning, match="ragged column"):
        (batch,) = read_batches(path, 5)
    assert batch["x"].lengths.tolist() == [6, 7]


def test_a_schema_of_codecs_comes_back(tmp_path: Path) -> None:
    schema = {"a": Feature("bytes", (2, 2), codec="raw", dtype="uint8"), "n": Feature("int64", ())}
    with Writer(tmp_path / "a", schema=schema) as writer:
        writer.write({"a": np.arange(4, dtype=np.uint8).reshape(2, 2), "n": 1})
    (row,) = read(tmp_path / "a")
    assert row["a"].tolist() == [[0, 1], [2, 3]]
    assert row["n"].tolist() == [1]


def test_byte_strings_and_text_have_their_axes_in_rows(tmp_path: Path) -> None:
    names = np.array([[b"a", b"b", b""], [b"c", b"d\0", b"e"]], object)
    with Writer(tmp_path / "a") as writer:
        writer.write({"names": names, "free": [["x", "y"]]})
        writer.write({"names": names.tolist(), "free": [["x", "y"], ["z", "w"]]})
        writer.write_batch({"names": names[None], "free": np.array([[["p", "q"]]])})
    rows = list(read(tmp_path / "a"))
    assert [row["names"].tolist() for row in rows] == [names.tolist()] * 3
    assert [row["free"].shape for row in rows] == [(1, 2), (2, 2), (1, 2)]
    assert rows[1]["free"].tolist() == [[b"x", b"y"], [b"z", b"w"]]
    with tfrio_open(tmp_path / "a", index="memory") as ds:
        assert ds[1]["names"].tolist() == names.tolist()
    text = {"names": Feature("bytes", (2, 3), dtype="str"), "free": Feature("bytes", (-1, 2))}
    assert next(read(tmp_path / "a", schema=text))["names"][1, 2] == "e"
    (batch,) = read_batches(tmp_path / "a", 5)
    assert batch["names"][0] == names.ravel().tolist()
    odd = {"free": Feature("bytes", (-1, 3))}
    with pytest.raises(SchemaError, match="2 values cannot form.*record 0"):
        list(read(tmp_path / "a", schema=odd))


def test_one_free_axis_may_be_any(tmp_path: Path) -> None:
    arrays = [np.arange(2 * n, dtype=np.float32).reshape(2, n) for n in (3, 5, 0)]
    with Writer(tmp_path / "a") as writer:
        for array in arrays:
            writer.write({"x": array})
    for got in (list(read(tmp_path / "a")), [{"x": x} for x in _only_batch(tmp_path / "a")["x"]]):
        assert [row["x"].shape for row in got] == [(2, 3), (2, 5), (2, 0)]
        assert [row["x"].tolist() for row in got] == [array.tolist() for array in arrays]


def _only_batch(path: Path) -> dict:
    (batch,) = read_batches(path, 10)
    return batch


def test_steps_have_their_axes(tmp_path: Path) -> None:
    frames = np.arange(12, dtype=np.int64).reshape(2, 2, 3)
    names = [np.array([[b"a", b"b"]], object)] * 3
    with Writer(tmp_path / "a", sequence=True) as writer:
        writer.write_sequence({"id": 1}, {"frame": list(frames), "names": names})
        writer.write_sequence({"id": 2}, {"frame": list(frames[:1]), "names": []})
    first, second = read(tmp_path / "a")
    np.testing.assert_array_equal(first["frame"], frames)
    assert [step.tolist() for step in first["names"]] == [[[b"a", b"b"]]] * 3
    assert second["frame"].shape == (1, 2, 3)
    assert second["names"] == []


def test_rows_of_free_length_keep_their_inner_axes_through_batches(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        for n in (2, 4):
            writer.write({"x": np.ones((n, 3), np.float32)})
    with Writer(tmp_path / "b") as writer:
        for batch in read_batches(tmp_path / "a", 1):
            writer.write_batch(batch)
    assert [row["x"].shape for row in read(tmp_path / "b")] == [(2, 3), (4, 3)]


def test_a_remote_file_has_no_sidecar_and_says_so() -> None:
    with (
        pytest.warns(TfrioWarning, match=r"axes or types of \['x'\] .* local files"),
        Writer("memory://noted/a.tfrecord") as writer,
    ):
        writer.write({"x": np.zeros((2, 3))})

"""Arrays with several axes come back with them."""

from __future__ import annotations

import json
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.examples.helpers import example, put
from tfrio.errors import EncodeError, SchemaError, TfrioWarning
from tfrio.examples.axes import RowAxes
from tfrio.examples.decode import read, read_batches
from tfrio.examples.opened import open as tfrio_open
from tfrio.examples.schema import Feature
from tfrio.examples.sidecar import load_sidecar
from tfrio.examples.writer import Writer
from tfrio.storage import size_of


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


def test_shapes_that_never_agree_are_noted_row_by_row(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"x": np.arange(6.0).reshape(2, 3), "s": [["a", "b"]], "y": 1},
        {"x": np.arange(15.0).reshape(3, 5), "s": [["a"], ["b"]]},
        {"s": "alone", "y": 2},
        {"x": [1.0, 2.0], "s": ["a", "b"]},
        {"x": np.arange(15.0).reshape(5, 3), "s": [["c"], ["\0"]]},
        {"x": np.arange(15.0).reshape(1, 5, 3)},
    ]
    shapes = [(2, 3), (3, 5), None, (2,), (5, 3), (1, 5, 3)]
    with Writer(tmp_path / "a") as writer:
        for row in rows:
            writer.write(row)
    copies = [tmp_path / "a", tmp_path / "b.gz", tmp_path / "c"]
    with Writer(copies[1]) as writer:
        for row in read(copies[0]):
            writer.write(row)
    for size, columns in ((2, tmp_path / "c"), (9, tmp_path / "d")):
        with Writer(columns) as writer:
            for batch in read_batches(copies[0], size):
                writer.write_batch(batch)
        copies.append(columns)
    for path in copies:
        got = list(read(path))
        assert [row["x"].shape if "x" in row else None for row in got] == shapes
        assert [np.shape(row.get("s", [])) for row in got] == [
            (1, 2),
            (2, 1),
            (),
            (2,),
            (2, 1),
            (0,),
        ]
        assert got[4]["s"].tolist() == [[b"c"], [b"\0"]]
        assert got[2]["s"] == b"alone"
        with tfrio_open(path, index="memory") as ds:
            assert [ds[i]["x"].shape for i in (5, 0)] == [(1, 5, 3), (2, 3)]
            batch = ds.batch([4, 2, 0])
        assert [None if x is None else x.shape for x in batch["x"]] == [(5, 3), None, (2, 3)]
        assert batch.present["x"].tolist() == [True, False, True]


def test_files_that_differ_keep_their_own_axes(tmp_path: Path) -> None:
    arrays = [np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2), np.ones((2, 2, 2))]
    for name, array in zip("abc", arrays, strict=True):
        with Writer(tmp_path / f"{name}.tfrecord") as writer:
            writer.write({"x": array})
            writer.write({"x": array + 1})
    expected = [array.shape for array in arrays for _ in range(2)]
    assert [row["x"].shape for row in read(tmp_path)] == expected
    for size in (1, 2, 3, 6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TfrioWarning)
            batches = list(read_batches(tmp_path, size))
        assert [row.shape for batch in batches for row in batch["x"]] == expected


def test_a_list_of_arrays_is_a_column(tmp_path: Path) -> None:
    arrays = [
        np.ones((2, 3), np.float32),
        None,
        np.zeros((4, 1), np.float32),
        np.ones(2, np.float32),
    ]
    with Writer(tmp_path / "a") as writer:
        writer.write({"n": 1})
        writer.write_batch({"x": arrays, "n": np.arange(4)})
        writer.write({"x": np.zeros((7, 1, 2), np.float32), "n": 5})
    got = list(read(tmp_path / "a"))
    assert [row["x"].shape if "x" in row else None for row in got] == [
        *(None, (2, 3), None, (4, 1), (2,), (7, 1, 2)),
    ]


def test_a_value_refused_leaves_no_axes(tmp_path: Path) -> None:
    with Writer(tmp_path / "a", strict=True) as writer:
        writer.write({"x": np.ones((2, 3))})
        with pytest.raises(EncodeError):
            writer.write({"x": np.ones((3, 3)), "y": object()})
        writer.write({"x": np.ones((3, 2))})
        writer.write({"y": 1})
        writer.write({"x": np.ones((1, 6))})
    assert [row["x"].shape for row in read(tmp_path / "a") if "x" in row] == [
        (2, 3),
        (3, 2),
        (1, 6),
    ]


def test_steps_that_never_agree_are_told(tmp_path: Path) -> None:
    with (
        pytest.warns(TfrioWarning, match="the steps of 'a' differ in more than one axis"),
        Writer(tmp_path / "a", sequence=True) as writer,
    ):
        writer.write_sequence({}, {"a": [np.ones((2, 3)), np.ones((3, 2))], "b": [np.ones((1, 2))]})
    (row,) = read(tmp_path / "a")
    assert [step.shape for step in row["a"]] == [(6,), (6,)]
    assert row["b"].shape == (1, 1, 2)


def test_steps_keep_their_place_and_axes_through_batches(tmp_path: Path) -> None:
    with Writer(tmp_path / "a", sequence=True) as writer:
        for n in (2, 1, 0, 3):
            steps: dict[str, Any] = {
                "frame": np.arange(6 * n).reshape(n, 2, 3),
                "names": [np.array([["a", "b"]], object)] * n,
                "one": list(range(n)),
                "free": [np.ones((i + 1, 2)) for i in range(n)],
            }
            writer.write_sequence({"id": n, "m": np.ones((2, 2))}, steps)
    for size in (1, 3, 9):
        with Writer(tmp_path / "b", sequence=True) as writer:
            for batch in read_batches(tmp_path / "a", size):
                assert batch.lists == {"frame", "names", "one", "free"}
                writer.write_batch(pickle.loads(pickle.dumps(batch)))
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
        first, second = (list(read(tmp_path / name)) for name in "ab")
        for a, b in zip(first, second, strict=True):
            assert [np.shape(a[k]) for k in ("frame", "names", "m")] == [
                np.shape(b[k]) for k in ("frame", "names", "m")
            ]
            assert [np.shape(step) for step in a["free"]] == [np.shape(step) for step in b["free"]]


def test_axes_follow_their_records(tmp_path: Path) -> None:
    axes = RowAxes()
    axes.note(0, (2, 3), 4)
    axes.note(4, (2, 3))
    assert (len(axes), axes.end, axes.common()) == (1, 5, (2, 3))
    axes.note(7, (4, 3))
    axes.note(8, (5, 5), 2)
    assert [axes.at(i) for i in range(11)] == [
        *[(2, 3)] * 5,
        *[None, None, (4, 3), (5, 5), (5, 5), None],
    ]
    assert axes.common() is None
    axes.note(8, (1, 3))
    assert axes.common() == (-1, 3)
    axes.note(3, (9, 9))
    assert [axes.at(i) for i in range(5)] == [*[(2, 3)] * 3, (9, 9), None]
    again = RowAxes.from_json(json.loads(json.dumps(axes.to_json())))
    assert list(again.runs()) == list(axes.runs())
    for odd in ({}, {"shapes": [[1]], "runs": [[0, 1, 3]]}, {"shapes": 3, "runs": []}, []):
        with pytest.raises(ValueError, match="no runs of axes"):
            RowAxes.from_json(odd)  # type: ignore[arg-type]


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


@pytest.mark.filterwarnings("ignore:feature .* ragged column:tfrio.TfrioWarning")
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize(
    "shapes",
    [[(3,), (2, 3)], [(4,), (3, 2, 2)], [(1,), (2, 3)]],
)
def test_only_one_of_two_files_has_axes(
    tmp_path: Path, shapes: list[tuple[int, ...]], order: tuple[int, int]
) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path, shape in zip(paths, shapes, strict=True):
        with Writer(path) as writer:
            writer.write({"x": np.ones(shape, np.int64), "y": np.full(shape, b"y", object)})
    paths, wanted = [paths[i] for i in order], [shapes[i] for i in order]
    (batch,) = read_batches(paths, 5)
    assert batch.rows == 2
    for name in ("x", "y"):
        assert [np.shape(value) for value in batch[name]] in (
            wanted,
            [() if name == "y" and shape == (1,) else shape for shape in wanted],
        )
    assert [row["x"].shape for row in read(paths)] == wanted
    assert [row["x"].shape for row in tfrio_open(paths)] == wanted


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_free_axis_of_one_file_is_not_that_of_another(
    tmp_path: Path, order: tuple[int, int]
) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    with Writer(paths[0]) as writer:
        for count in (3, 2, 6):
            writer.write({"x": np.ones(count)})
    with Writer(paths[1]) as writer:
        for count in (2, 5, 1):
            writer.write({"x": np.ones((count, 3))})
    paths = [paths[i] for i in order]
    wanted = [[(3,), (2,), (6,)], [(2, 3), (5, 3), (1, 3)]]
    shapes = [shape for i in order for shape in wanted[i]]
    assert [row["x"].shape for row in read(paths)] == shapes
    assert [row["x"].shape for row in tfrio_open(paths)] == shapes
    (batch,) = read_batches(paths, 10)
    assert [batch["x"][i].shape for i in range(6)] == shapes


def test_no_row_is_lost_where_the_next_file_tells_another_length(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.write({"x": [0.5, 1.5, 2.5]})
    schema = {"x": Feature("float", (2,), dtype="float64")}
    with Writer(tmp_path / "b", schema=schema) as writer:
        writer.write({"x": [3.5, 4.5]})
    (batch,) = read_batches([tmp_path / "a", tmp_path / "b"], 5)
    assert [values.tolist() for values in batch["x"]] == [[0.5, 1.5, 2.5], [3.5, 4.5]]


@pytest.mark.parametrize("shapes", [[(0, 2), (0, 5)], [(2, 0), (5, 0)]])
def test_axes_without_any_value_come_back(tmp_path: Path, shapes: list[tuple[int, ...]]) -> None:
    with Writer(tmp_path / "a") as writer:
        for shape in shapes:
            writer.write({"x": np.zeros(shape)})
    assert [row["x"].shape for row in read(tmp_path / "a")] == shapes
    (batch,) = read_batches(tmp_path / "a", 5)
    assert [value.shape for value in batch["x"]] == shapes


def test_batches_without_a_value_can_be_written_back(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.write({"id": 1})
        writer.write({"id": 2, "x": np.full((2, 3), "y", object)})
        writer.write({"id": 3, "x": np.full((1, 3), "z", object)})
    with Writer(tmp_path / "b") as writer:
        for batch in read_batches(tmp_path / "a", 1):
            writer.write_batch(batch)
    found = [row["x"].tolist() if "x" in row else None for row in read(tmp_path / "b")]
    assert found == [None, [[b"y"] * 3] * 2, [[b"z"] * 3]]


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
    assert batch["names"].shape == (3, 2, 3)
    assert batch["names"][2].tolist() == names.tolist()
    assert [batch["free"][i].shape for i in range(3)] == [(1, 2), (2, 2), (1, 2)]
    assert batch["free"][1].tolist() == [[b"x", b"y"], [b"z", b"w"]]
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
    assert second["names"].shape == (0, 1, 2)


def test_rows_of_free_length_keep_their_inner_axes_through_batches(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        for n in (2, 4):
            writer.write({"x": np.ones((n, 3), np.float32)})
    with Writer(tmp_path / "b") as writer:
        for batch in read_batches(tmp_path / "a", 1):
            writer.write_batch(batch)
    assert [row["x"].shape for row in read(tmp_path / "b")] == [(2, 3), (4, 3)]


def test_a_remote_file_has_its_sidecar_beside_it() -> None:
    url = "memory://noted/a.tfrecord"
    with Writer(url) as writer:
        writer.write({"x": np.zeros((2, 3))})
        writer.write({"x": np.zeros((4, 5))})
    assert [row["x"].shape for row in read(url)] == [(2, 3), (4, 5)]
    with Writer(url) as writer:
        writer.write({"x": np.zeros(6)})
    assert [row["x"].shape for row in read(url)] == [(6,)]


def test_a_remote_sidecar_goes_with_its_file() -> None:
    url = "memory://noted/same.tfrecord"
    with Writer(url) as writer:
        writer.write({"x": np.zeros((2, 3))})
    size = size_of(url)
    with Writer(url) as writer:
        writer.write({"x": np.zeros(6)})
    assert size_of(url) == size, "so the old sidecar would be believed"
    assert [row["x"].shape for row in read(url)] == [(6,)]


def test_a_store_that_keeps_an_old_sidecar_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "no right to remove", path)

    with Writer("memory://noted/c.tfrecord") as writer:
        writer.write({"x": np.zeros((2, 3))})
    monkeypatch.setattr("tfrio.examples.sidecar.remove", refuse)
    with (
        pytest.warns(TfrioWarning, match=r"c\.tfrecord\.schema\.json: .* remove it"),
        Writer("memory://noted/c.tfrecord") as writer,
    ):
        writer.write({"x": np.zeros(6)})


def test_a_store_that_takes_no_sidecar_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "no right to write", path)

    monkeypatch.setattr("tfrio.examples.sidecar.atomic_write", refuse)
    with (
        pytest.warns(TfrioWarning, match=r"axes or types of \['x'\] could not be noted"),
        Writer("memory://noted/b.tfrecord") as writer,
    ):
        writer.write({"x": np.zeros((2, 3))})


def test_appending_to_a_file_that_another_writer_made_believes_no_old_sidecar(
    tmp_path: Path,
) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.write({"x": np.zeros((2, 3))})
    put(tmp_path / "a", example({"x": [0.5] * 6}), example({"x": [1.5] * 6}))
    with Writer(tmp_path / "a", mode="a") as writer:
        writer.write({"x": np.ones((2, 3))})
    assert [row["x"].shape for row in read(tmp_path / "a")] == [(6,), (6,), (2, 3)]


@pytest.mark.parametrize("second", [(2, 3), (4, 3), (4, 5), (6,), None])
def test_appending_other_axes_keeps_both(tmp_path: Path, second: tuple[int, ...] | None) -> None:
    for name in ("a", "a.gz"):
        with Writer(tmp_path / name) as writer:
            writer.write({"x": np.zeros((2, 3))})
            writer.write({"n": 1})
        with Writer(tmp_path / name, mode="a") as writer:
            writer.write({"n": 2} if second is None else {"x": np.zeros(second)})
        with Writer(tmp_path / name, mode="a") as writer:
            writer.write({"x": np.zeros((1, 3))})
        got = [row["x"].shape for row in read(tmp_path / name) if "x" in row]
        assert got == [(2, 3), *([] if second is None else [second]), (1, 3)]


@pytest.mark.parametrize("by_batch", [False, True])
def test_steps_keep_their_axes_beside_steps_without_a_kind(tmp_path: Path, by_batch: bool) -> None:
    step = np.arange(6).reshape(2, 3)
    rows = [[step], [None, step + 1], [None], []]
    with Writer(tmp_path / "a", sequence=True) as writer:
        for steps in rows:
            writer.write_sequence({}, {"L": steps})
    path = tmp_path / "a"
    if by_batch:
        path = tmp_path / "b"
        with Writer(path, sequence=True) as writer:
            for batch in read_batches(tmp_path / "a", 3):
                writer.write_batch(batch)
    found = [row["L"] for row in read(path)]
    with tfrio_open(path, index="memory") as data:
        assert repr(data[::-1][::-1]) == repr([{"L": steps} for steps in found])
    shapes = [[None if step is None else step.shape for step in steps] for steps in found]
    assert shapes == [[(2, 3)], [None, (2, 3)], [None], []]


@pytest.mark.filterwarnings("ignore::tfrio.errors.TfrioWarning")
def test_rows_are_rows_where_the_notes_of_one_file_prove_wrong(tmp_path: Path) -> None:
    step = np.arange(6).reshape(2, 3)
    for name in "ab":
        with Writer(tmp_path / name, sequence=True) as writer:
            writer.write_sequence({}, {"L": [step]})
            writer.write_sequence({}, {"L": [step, None] if name == "b" else []})
        note = (tmp_path / f"{name}.schema.json").read_text()
        note = re.sub(r"-1,(\s+)3", r"2,\1 3", note)
        (tmp_path / f"{name}.schema.json").write_text(note)
    with tfrio_open([tmp_path / "a", tmp_path / "b"], index="memory") as data:
        last, *_, first = (row["L"] for row in data[::-1])
    assert [step if step is None else step.tolist() for step in last] == [[0, 1, 2, 3, 4, 5], None]
    assert first.tolist() == [step.tolist()]

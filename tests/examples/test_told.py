"""Over files that note different things of a feature, each record is what its own file says."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfrio.errors import TfrioWarning
from tfrio.examples.arrow import from_arrow, to_arrow
from tfrio.examples.axes import RowAxes
from tfrio.examples.columns import BytesColumn, Ragged
from tfrio.examples.decode import read, read_batches
from tfrio.examples.infer import infer_schema
from tfrio.examples.opened import open as tfrio_open
from tfrio.examples.schema import Feature, Schema
from tfrio.examples.sidecar import Noted
from tfrio.examples.told import Told, outline, shape_only
from tfrio.examples.writer import Writer

SCHEMA = {"x": Feature("float", (3, 2), dtype="float64"), "n": Feature("int64", ())}
RAW = {"b": Feature("bytes", (2, 3), codec="raw", dtype="uint8"), "n": Feature("int64", ())}


def numbers(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 0.5


# What a file holds: its rows, whether it keeps its sidecar, and the schema it is written with.
KINDS: dict[str, tuple[list[dict[str, Any]], bool, Any]] = {
    "2x3": ([{"x": numbers(2, 3)}, {"x": numbers(2, 3) * 2}], True, None),
    "3x2": ([{"x": numbers(3, 2)}, {"n": 1}], True, None),
    "5x3": ([{"x": numbers(5, 3)}] * 2, True, None),
    "free": ([{"x": numbers(2, 3)}, {"x": numbers(4, 3)}], True, None),
    "any": ([{"x": numbers(2, 3)}, {"x": numbers(6, 1)}, {"x": numbers(6)}], True, None),
    "lost": ([{"x": numbers(2, 3)}], False, None),
    "flat": ([{"x": numbers(6)}, {"x": numbers(6)}], True, None),
    "other": ([{"x": numbers(4)}, {"x": numbers(1)}], True, None),
    "without": ([{"n": 5}, {"n": 6}], True, None),
    "nothing": ([], True, None),
    "typed": ([{"x": numbers(3, 2), "n": 4}], True, SCHEMA),
    "raw": ([{"b": np.arange(6, dtype=np.uint8).reshape(2, 3), "n": 7}] * 2, True, RAW),
    "bytes": ([{"b": b"abcdef"}, {"b": b"x"}], True, None),
    "text": ([{"b": np.array([["a", "b"], ["c", "d"]], object)}], True, None),
}
LISTS: dict[str, tuple[list[dict[str, Any]], bool, Any]] = {
    "2x3": ([{"s": numbers(4, 2, 3)}, {"s": numbers(1, 2, 3)}], True, None),
    "3x2": ([{"s": numbers(2, 3, 2), "n": 1}, {"s": []}], True, None),
    "free": ([{"s": [numbers(2, 3), numbers(1, 3)]}, {"n": 3}], True, None),
    "lost": ([{"s": numbers(2, 2, 3)}], False, None),
    "flat": ([{"s": [numbers(6), numbers(6)]}, {"s": [numbers(2), None]}], True, None),
    "without": ([{"n": 5}], True, None),
}


def made(folder: Path, kinds: dict[str, Any], names: list[str]) -> list[str]:
    """Write a file of each kind."""
    paths = []
    for number, name in enumerate(names):
        rows, noted, schema = kinds[name]
        path = folder / f"{number:02d}-{name}"
        with Writer(path, schema=schema, sidecar=noted, sequence=kinds is LISTS) as writer:
            for row in rows:
                writer.write(row)
        paths.append(str(path))
    return paths


def plain(value: Any) -> Any:
    """Return a value with its axes and type in a form that compares."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.shape, value.dtype.name, value.tolist()
    if isinstance(value, np.ndarray):
        return value.shape, value.tolist()
    if isinstance(value, list | BytesColumn):
        return [plain(one) for one in value]
    return value


def loose(value: Any) -> Any:
    """The same where a column has no bare byte strings, nor steps of None."""
    if isinstance(value, list | tuple | BytesColumn | Ragged):
        items = [loose(one) for one in value]
        return items[0] if len(items) == 1 and isinstance(items[0], bytes) else items
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim < 2:
        return loose(value.tolist())
    if isinstance(value, np.ndarray) and value.ndim > 1 and value.dtype != object:
        return value.shape, value.tolist()
    return value.tolist() if isinstance(value, np.ndarray) else value


def check_rows(paths: list[str], alone: list[dict[str, Any]]) -> None:
    wanted = [{k: plain(v) for k, v in row.items()} for row in alone]
    assert [{k: plain(v) for k, v in row.items()} for row in read(paths)] == wanted
    with tfrio_open(paths, index="memory") as data:
        assert [{k: plain(v) for k, v in row.items()} for row in data] == wanted
        order = random.Random(len(paths)).sample(range(len(data)), len(data))
        assert [{k: plain(v) for k, v in data[i].items()} for i in order] == [
            wanted[i] for i in order
        ]


def check_batch(batch: Any, alone: list[dict[str, Any]]) -> None:
    assert batch.rows == len(alone)
    for i, row in enumerate(alone):
        assert {name for name in batch if batch.present[name][i]} == row.keys()
        for name, value in row.items():
            got = batch[name][i]
            if name == "s":
                steps = [np.zeros(0) if step is None else step for step in value]
                assert loose([*got]) == loose(steps)
            else:
                assert loose(got) == loose(value), name


def check_columns(paths: list[str], alone: list[dict[str, Any]]) -> None:
    for size in (1, 2, 3, 50):
        done = 0
        for batch in read_batches(paths, size):
            check_batch(batch, alone[done : done + batch.rows])
            done += batch.rows
        assert done == len(alone)
    with tfrio_open(paths, index="memory") as data:
        order = random.Random(3).sample(range(len(data)), len(data))
        if order:
            check_batch(data.batch(order), [alone[i] for i in order])


@pytest.mark.parametrize("kinds", [KINDS, LISTS], ids=["examples", "lists"])
@pytest.mark.parametrize("check", [check_rows, check_columns])
@pytest.mark.parametrize("seed", range(25))
def test_each_record_is_what_its_file_says(
    tmp_path: Path, seed: int, check: Callable[..., None], kinds: dict[str, Any]
) -> None:
    rng = random.Random(seed)
    paths = made(tmp_path, kinds, [rng.choice([*kinds]) for _ in range(rng.randint(2, 4))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TfrioWarning)
        check(paths, [row for path in paths for row in read(path)])


def only(paths: list[str]) -> Any:
    (batch,) = read_batches(paths, 50)
    return batch


@pytest.mark.filterwarnings("ignore::tfrio.errors.TfrioWarning")
def test_a_column_has_the_form_that_its_files_agree_on(tmp_path: Path) -> None:
    paths = made(tmp_path, KINDS, ["2x3", "without", "nothing", "2x3"])
    assert only(paths)["x"].shape == (6, 2, 3)
    paths = made(tmp_path, KINDS, ["2x3", "5x3"])
    assert [value.shape for value in only(paths)["x"]] == [(2, 3)] * 2 + [(5, 3)] * 2
    paths = made(tmp_path, KINDS, ["2x3", "lost"])
    assert [value.shape for value in only(paths)["x"]] == [(2, 3), (2, 3), (6,)]
    paths = made(tmp_path, LISTS, ["2x3", "without", "2x3"])
    assert [steps.shape for steps in only(paths)["s"]] == [
        *[(4, 2, 3), (1, 2, 3), (0, 2, 3)],
        *[(4, 2, 3), (1, 2, 3)],
    ]


def test_what_files_tell_together() -> None:
    wide, tall = Feature("float", (2, 3)), Feature("float", (3, 2))
    told = Told()
    told.add("a", Noted(Schema({"x": wide, "y": wide}), {}))
    told.add("a", None)  # the same file again
    assert told.agreed() == {"x": wide, "y": wide}
    told.add("b", Noted(Schema({"x": wide}), {"z": RowAxes.same((1, 1))}))
    assert told.agreed() == {"x": wide}
    assert told.apart() == {"y": "context", "z": "context"}
    assert told.note("b", "y") is None
    told.add("c", Noted(Schema({"x": tall, "k": Feature("int64", name="k/values")}), {}))
    assert told.agreed() == {}
    assert told.apart().keys() == {
        "x",
        "y",
        "z",
    }  # what is no stored feature of its name is not read apart
    told.deny("c", "x")
    told.deny("b", "x")
    told.deny("a", "x")
    assert told.apart().keys() == {"y", "z"}


def test_files_alike_share_their_way_to_be_read() -> None:
    wide = Schema({"x": Feature("float", (2, 3))})
    first, second = (Noted(wide, {"z": RowAxes.same((1, n))}) for n in (1, 2))
    assert outline(first) == outline(second) != outline(Noted(wide, {}))
    assert outline(None) != outline(Noted(wide, {}))
    assert shape_only(None)
    assert shape_only(RowAxes())
    assert not shape_only(Feature("bytes", (2,), codec="raw", dtype="uint8"))


@pytest.mark.parametrize("kinds", [KINDS, LISTS], ids=["examples", "lists"])
@pytest.mark.parametrize("seed", range(25))
def test_a_schema_learned_carries_what_holds_for_all_records(
    tmp_path: Path, seed: int, kinds: dict[str, Any]
) -> None:
    rng = random.Random(seed)
    names = [name for name in kinds if name not in ("raw", "bytes", "text")]
    paths = made(tmp_path, kinds, [rng.choice(names) for _ in range(rng.randint(1, 3))])
    schema = infer_schema(paths)
    for row, alone in zip(read(paths, schema=schema), read(paths), strict=True):
        for name, value in alone.items():
            many, shape = name == "s", schema[name].shape or ()
            old = [one for one in (value if many else [value]) if one is not None]
            new = [one for one in (row[name] if many else [row[name]]) if one is not None]
            assert [np.ravel(one).tolist() for one in new] == [
                np.ravel(one).tolist() for one in old
            ]
            if len(shape) > 1:
                assert [np.shape(one) for one in new] == [np.shape(one) for one in old]


def test_a_schema_learned_has_the_axes_noted(tmp_path: Path) -> None:
    def shapes(*names: str, sample: int | None = None, kinds: Any = KINDS) -> Any:
        schema = infer_schema(made(tmp_path, kinds, [*names]), sample=sample)
        return schema["x" if kinds is KINDS else "s"].shape

    assert shapes("2x3") == shapes("2x3", "without", "nothing", "2x3") == (2, 3)
    assert shapes("2x3", "5x3") == shapes("free") == (-1, 3)
    assert shapes("2x3", "3x2") == shapes("any") == (6,)
    assert shapes("2x3", "other") is None
    assert shapes("2x3", "lost") == shapes("lost", "2x3") == (6,)
    assert shapes("2x3", sample=1) == shapes("2x3", "2x3", sample=1) == (2, 3)
    assert shapes("2x3", "lost", sample=1) is None
    assert shapes("2x3", "without", sample=1) is None  # not looked at, so it may have the feature
    assert shapes("2x3", "without", kinds=LISTS) == (2, 3)
    (path,) = made(tmp_path, KINDS, ["raw"])
    assert infer_schema(path)["b"] == RAW["b"]


def test_arrow_has_the_axes_noted(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    paths = made(tmp_path, KINDS, ["2x3", "without", "2x3"])
    table = pa.table(to_arrow(paths))
    assert table.schema.field("x").type == pa.list_(pa.list_(pa.float32(), 3), 2)
    with Writer(tmp_path / "again") as writer:
        for batch in from_arrow(table):
            writer.write_batch(batch)
    wanted = [{k: plain(v) for k, v in row.items()} for row in read(paths)]
    assert [{k: plain(v) for k, v in row.items()} for row in read(tmp_path / "again")] == wanted
    mixed = pa.table(to_arrow(made(tmp_path, KINDS, ["2x3", "lost"])))
    assert mixed.schema.field("x").type == pa.list_(pa.float32(), 6)

"""Random access to decoded rows."""

from __future__ import annotations

import multiprocessing
import pickle
from pathlib import Path

import numpy as np
import pytest

from tests.examples.helpers import example, put
from tfrio import _core
from tfrio.errors import CorruptRecordError, FeatureKindError, MissingFeatureError, TfrioWarning
from tfrio.examples.columns import Ragged
from tfrio.examples.opened import open as tfrio_open
from tfrio.examples.schema import Feature
from tfrio.examples.writer import Writer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for k in range(3):
        with Writer(tmp_path / f"p-{k}.tfrecord{'.gz' if k == 1 else ''}") as writer:
            for i in range(10):
                writer.write({"id": 10 * k + i, "v": [float(i)] * 3})
    return tmp_path


def test_rows_by_number(folder: Path) -> None:
    with tfrio_open(str(folder / "p-*"), index="memory") as ds:
        assert len(ds) == 30
        assert int(ds[2]["id"][0]) == 2
        assert int(ds[-1]["id"][0]) == 29
        assert [int(r["id"][0]) for r in ds[9:12]] == [9, 10, 11]
        assert [int(r["id"][0]) for r in ds[[25, 3, 3, -30, 14]]] == [25, 3, 3, 0, 14]
        assert [int(r["id"][0]) for r in ds] == list(range(30))
        assert ds[[]] == []
        with pytest.raises(IndexError, match="record 30 asked of 30"):
            ds[30]
        assert list(ds[5]) == ["id", "v"]


def test_batches_by_number(folder: Path) -> None:
    ds = tfrio_open(str(folder), index="memory")
    batch = ds.batch([21, 0, 11])
    assert batch["id"].ravel().tolist() == [21, 0, 11]
    assert batch["v"].shape == (3, 3)
    schema = {"id": Feature("int64", ()), "v": Feature("float", (3,))}
    bound = tfrio_open(str(folder), schema=schema, features=["id"], index="memory")
    assert bound.batch(slice(28, None))["id"].tolist() == [28, 29]
    assert bound[7] == {"id": 7}


def test_it_pickles_and_works_in_another_process(folder: Path) -> None:
    ds = tfrio_open(str(folder), index="memory")
    assert ds[1]["v"].tolist() == [1, 1, 1]
    again = pickle.loads(pickle.dumps(ds))
    assert [int(r["id"][0]) for r in again[[4, 15]]] == [4, 15]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_ids, (ds, [29, 1])) == [29, 1]


def _ids(ds: object, numbers: list[int]) -> list[int]:
    return [int(r["id"][0]) for r in ds[numbers]]  # type: ignore[index]


def test_rows_of_any_form_in_any_order(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a",
        example({"x": [1]}),
        example({"x": [1, 2], "y": [b"a"]}),
        example({"x": [0.5]}),
        example({}),
    )
    ds = tfrio_open(path, index="memory")
    rows = ds[[3, 2, 1, 0, 2]]
    assert [sorted(r) for r in rows] == [[], ["x"], ["x", "y"], ["x"], ["x"]]
    assert rows[1]["x"].tolist() == [0.5]
    assert rows[2]["y"] == b"a"
    with pytest.raises(FeatureKindError, match="record 2 of"):
        ds.batch([0, 1, 2])


def test_a_batch_widens_with_a_warning(tmp_path: Path) -> None:
    path = put(tmp_path / "a", *[example({"x": [1]})] * 1000, example({"x": [2, 3]}))
    ds = tfrio_open(path, index="memory")
    with pytest.warns(TfrioWarning, match="record 1000"):
        column = ds.batch([0, 1000, 1])["x"]
    assert isinstance(column, Ragged)
    assert column.tolist() == [[1], [2, 3], [1]]


def test_errors_name_file_and_record(tmp_path: Path) -> None:
    put(tmp_path / "a", example({"x": [1]}))
    second = put(tmp_path / "b", example({"x": [1]}), example({"y": [1]}))
    ds = tfrio_open(
        [str(tmp_path / "a"), second], schema={"x": Feature("int64", ())}, index="memory"
    )
    with pytest.raises(MissingFeatureError, match=r"record 1 of .*present: \['y'\]") as caught:
        ds[2]
    assert (caught.value.path, caught.value.record) == (second, 1)
    with pytest.raises(MissingFeatureError) as caught:
        ds.batch([0, 1, 2])
    assert (caught.value.path, caught.value.record) == (second, 1)
    data = bytearray(_core.frame([example({"x": [k]}) for k in range(3)]))
    data[-6] ^= 1
    (tmp_path / "c").write_bytes(data)
    damaged = tfrio_open(str(tmp_path / "c"), index="memory")
    assert damaged[1]["x"].tolist() == [1]
    with pytest.raises(CorruptRecordError) as corrupt:
        damaged[2]
    assert corrupt.value.record == 2


def test_shapes_from_the_sidecar(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.write({"x": np.arange(6, dtype=np.float32).reshape(2, 3)})
    assert tfrio_open(str(tmp_path / "a"), index="memory")[0]["x"].tolist() == [
        [0, 1, 2],
        [3, 4, 5],
    ]

"""Rows say what records hold: steps without a kind, lists of no byte strings or steps."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.examples.helpers import KINDLESS, Empty, example, payloads, put, sequence
from tfrio.errors import DecodeError, EncodeError, SchemaError
from tfrio.examples.columns import NoBytes, NoSteps
from tfrio.examples.decode import read, read_batches
from tfrio.examples.encode import encode_sequence
from tfrio.examples.infer import infer_schema
from tfrio.examples.opened import open as tfrio_open
from tfrio.examples.schema import Feature
from tfrio.examples.writer import Writer

MIXED = sequence(
    {},
    {
        "i": [[1], KINDLESS, Empty("int64_list"), KINDLESS],
        "f": [KINDLESS, [0.5, 1.5]],
        "b": [[b"x"], KINDLESS, Empty("bytes_list"), [b"y", b""]],
    },
)


def plain(steps: Any) -> Any:
    return [step.tolist() if isinstance(step, np.ndarray) else step for step in steps]


@pytest.mark.parametrize("bound", [False, True])
def test_a_step_without_a_kind_is_none_and_an_empty_one_is_empty(
    tmp_path: Path, bound: bool
) -> None:
    path = put(tmp_path / "a", MIXED, sequence({}, {"i": [[7]]}), MIXED)
    schema = {
        name: Feature(kind, place="list", required=False)
        for name, kind in (("i", "int64"), ("f", "float"), ("b", "bytes"))
    }
    asked: dict[str, Any] = {"schema": schema} if bound else {}
    with tfrio_open(path, index="memory", **asked) as data:
        for rows in (list(read(path, **asked)), [data[0], data[1], data[2]], list(data)):
            for row in (rows[0], rows[2]):
                assert plain(row["i"]) == [[1], None, [], None]
                assert plain(row["f"]) == [None, [0.5, 1.5]]
                assert row["b"] == [[b"x"], None, [], [b"y", b""]]
            assert plain(rows[1]["i"]) == [[7]]


def test_columns_show_such_steps_as_empty_and_tell_them(tmp_path: Path) -> None:
    (batch,) = read_batches(put(tmp_path / "a", MIXED, MIXED), 5)
    assert batch["i"].tolist() == [[[1], [], [], []]] * 2
    assert batch.step_present["i"].tolist() == [True, False, True, False] * 2
    assert batch.step_present.keys() == {"i", "f", "b"}
    again = pickle.loads(pickle.dumps(batch))
    assert again.step_present["f"].tolist() == [False, True] * 2
    (whole,) = read_batches(put(tmp_path / "b", sequence({}, {"i": [[1]]})), 5)
    assert whole.step_present == {}


def test_a_fixed_step_shape_leaves_no_room_for_one(tmp_path: Path) -> None:
    schema = {"x": Feature("float", (2,), place="list")}
    path = put(tmp_path / "a", sequence({}, {"x": [[0.5, 1.5], KINDLESS]}))
    with pytest.raises(SchemaError, match=r"'x': 0 values, expected 2.*step 1"):
        list(read(path, schema=schema))
    with (
        Writer(tmp_path / "b", schema=schema) as writer,
        pytest.raises(EncodeError, match=r"'x': step 1 is None.*\(2,\)\. Leave it out"),
    ):
        writer.write({"x": [[0.5, 1.5], None]})
    found = infer_schema(path, scalars=True)
    assert found["x"].lengths == (0, 2)
    assert len(list(read(path, schema=found))) == 1


def test_rows_with_steps_of_none_are_written_as_they_are() -> None:
    row = {"i": [[1], None, [], None], "f": [None, [0.5, 1.5]], "b": [["x"], None, [], ["y", ""]]}
    assert encode_sequence({}, row) == MIXED
    assert encode_sequence({}, {"n": [None, 1, [2, 3]]}) == sequence(
        {}, {"n": [KINDLESS, [1], [2, 3]]}
    )


def test_a_mask_of_steps_must_fit(tmp_path: Path) -> None:
    (batch,) = read_batches(put(tmp_path / "a", MIXED), 5)
    batch.step_present["i"] = np.array([True, False])
    with (
        Writer(tmp_path / "b", sequence=True) as writer,
        pytest.raises(EncodeError, match=r"step_present\['i'\] has 2 entries for 4 steps"),
    ):
        writer.write_batch(batch)


def test_empty_lists_of_rows_know_what_they_are(tmp_path: Path) -> None:
    payload = sequence({"none": Empty("bytes_list"), "id": [1]}, {"steps": []})
    path = put(tmp_path / "a", payload)
    with tfrio_open(path, index="memory") as data:
        for row in (next(read(path)), data[0], data[:1][0], pickle.loads(pickle.dumps(data[0]))):
            assert (row["none"], row["steps"]) == ([], [])
            assert type(row["none"]) is NoBytes
            assert type(row["steps"]) is NoSteps
            assert json.dumps([row["none"], row["steps"]]) == "[[], []]"
            with Writer(tmp_path / "b", sequence=True) as writer:
                writer.write(row)
            assert payloads(tmp_path / "b") == [payload]
    with Writer(tmp_path / "c") as writer:
        writer.write({"none": row["none"]})
    assert payloads(tmp_path / "c") == [example({"none": Empty("bytes_list")})]


def test_an_empty_list_that_tells_nothing_takes_the_kind_known(tmp_path: Path) -> None:
    schema = {"x": Feature("float", required=False), "s": Feature("bytes", place="list")}
    with Writer(tmp_path / "schema", schema=schema) as writer:
        writer.write({"x": [], "s": []})
    assert payloads(tmp_path / "schema") == [sequence({"x": Empty("float_list")}, {"s": []})]
    with Writer(tmp_path / "earlier", sequence=True) as writer:
        writer.write({"x": [1], "s": [[1.5]]})
        writer.write({"x": [], "s": []})
        writer.write({"x": [], "s": [[], None]})
    assert payloads(tmp_path / "earlier")[1:] == [
        sequence({"x": Empty("int64_list")}, {"s": []}),
        sequence({"x": Empty("int64_list")}, {"s": [Empty("float_list"), KINDLESS]}),
    ]


@pytest.mark.parametrize("lists", [False, True])
def test_an_empty_list_that_nothing_tells_of_is_refused(tmp_path: Path, lists: bool) -> None:
    with Writer(tmp_path / "a", sequence=lists) as writer:
        with pytest.raises(EncodeError, match=r"'x': an empty list has no kind; give an empty"):
            writer.write({"x": []})
        writer.write({"x": np.array([], np.float32)})
        writer.write({"x": []})
    wanted = {"x": Empty("float_list")}
    made = sequence(wanted, {}) if lists else example(wanted)
    assert payloads(tmp_path / "a") == [made, made]


def test_text_that_is_none_is_an_empty_list_too(tmp_path: Path) -> None:
    schema = {"t": Feature("bytes", dtype="str")}
    path = put(tmp_path / "a", example({"t": Empty("bytes_list")}), example({"t": [b"\xff"]}))
    rows = read(path, features=["t"])
    assert next(rows)["t"] == []
    with tfrio_open(path, schema=schema, index="memory") as data:
        assert data[0] == {"t": []}
        with pytest.raises(DecodeError, match="is no UTF-8 text"):
            data[1]

"""Writing SequenceExamples: by row, by batch and by call, steps kept as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.examples.helpers import KINDLESS, Empty, payloads, put, sequence
from tfrio.errors import EncodeError
from tfrio.examples.arrow import from_arrow, to_arrow
from tfrio.examples.columns import Ragged
from tfrio.examples.decode import read, read_batches
from tfrio.examples.schema import Feature
from tfrio.examples.writer import Writer


def test_sequences_by_row_batch_and_call_are_equal(tmp_path: Path) -> None:
    context = {"id": 7, "name": "n"}
    lists = {"tok": [[0, 1], [], [2, 3, 4]], "img": [[b"\xff"], [b""], [b"ab"]]}
    expected = sequence(
        {"id": [7], "name": [b"n"]},
        {"tok": [[0, 1], Empty("int64_list"), [2, 3, 4]], "img": lists["img"]},
    )
    with Writer(tmp_path / "a") as writer:
        writer.write_sequence(context, lists)
    with Writer(tmp_path / "b", sequence=True) as writer:
        writer.write({**context, **lists})
    (batch,) = read_batches(tmp_path / "a", 10)
    with Writer(tmp_path / "c", sequence=True) as writer:
        writer.write_batch(batch)
    for name in "abc":
        assert payloads(tmp_path / name) == [expected], name


@pytest.mark.parametrize("value", [b"a", 1.5, 2])
def test_a_feature_list_without_steps_keeps_its_kind(tmp_path: Path, value: bytes | float) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.write_sequence({"id": 1}, {"v": [value, value]})
        writer.write_sequence({"id": 2}, {"v": []})
        writer.write_sequence({"id": 3}, {"v": [value]})
    steps = [len(row["v"]) for row in read(tmp_path / "a")]
    assert steps == [2, 0, 1]
    assert payloads(tmp_path / "a")[1] == sequence({"id": [2]}, {"v": []})
    schema = {"id": "int64", "v": Feature("bytes", (), place="list")}
    with Writer(tmp_path / "b", schema=schema) as writer:
        writer.write_sequence({"id": 2}, {"v": []})
    assert payloads(tmp_path / "b") == payloads(tmp_path / "a")[1:2]


def test_fixed_steps_as_columns(tmp_path: Path) -> None:
    schema = {"obs": Feature("float", (2,), place="list"), "w": Feature("int64", (), place="list")}
    columns = {
        "obs": Ragged(np.arange(10, dtype=np.float32).reshape(5, 2), np.array([0, 2, 5])),
        "w": Ragged(np.arange(4), np.array([0, 1, 4])),
    }
    with Writer(tmp_path / "a", schema=schema) as writer:
        writer.write_batch(columns)
        writer.write({"obs": np.ones((1, 2)), "w": [9, 9]})
    first, second, third = read(tmp_path / "a", schema=schema)
    assert first["obs"].tolist() == [[0, 1], [2, 3]]
    assert second["w"].tolist() == [1, 2, 3]
    assert third["w"].tolist() == [9, 9]
    nested = Ragged(Ragged(np.arange(2), np.array([0, 2])), np.array([0, 1]))
    with (
        Writer(tmp_path / "b") as writer,
        pytest.raises(EncodeError, match="needs a SequenceExample"),
    ):
        writer.write_batch({"x": nested})


def test_steps_without_a_kind_stay_so(tmp_path: Path) -> None:
    payloads_in = [
        sequence({"n": [1]}, {"a": [KINDLESS], "b": [KINDLESS, KINDLESS], "c": [[1.5]]}),
        sequence({"n": [2]}, {"a": [], "b": [KINDLESS], "c": [[2.5], [3.5]]}),
        sequence({"n": [3]}, {"b": [KINDLESS, KINDLESS], "c": []}),
        sequence({"n": [4]}, {"a": [KINDLESS] * 3, "b": [KINDLESS, KINDLESS], "c": [[4.5]]}),
    ]
    path = put(tmp_path / "a", *payloads_in)
    with Writer(tmp_path / "rows", sequence=True) as writer:
        for row in read(path):
            writer.write(row)
    for size in (1, 2, 4):
        with Writer(tmp_path / f"batches{size}", sequence=True) as writer:
            for batch in read_batches(path, size):
                writer.write_batch(batch)
    with Writer(tmp_path / "arrow", sequence=True) as writer:
        for batch in from_arrow(to_arrow(path)):
            writer.write_batch(batch)
    for name in ("rows", "batches1", "batches2", "batches4", "arrow"):
        assert payloads(tmp_path / name) == payloads_in, name


def test_a_kind_seen_later_is_the_kind(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a",
        sequence({}, {"a": [KINDLESS]}),
        sequence({}, {"a": [[1.5], [2.5]]}),
        sequence({}, {"a": [KINDLESS]}),
    )
    for size in (1, 3):
        with Writer(tmp_path / "b", sequence=True) as writer:
            for batch in read_batches(path, size):
                writer.write_batch(batch)
        assert payloads(tmp_path / "b") == payloads(path)
    with Writer(tmp_path / "c", sequence=True) as writer:
        writer.write_sequence({}, {"a": [1.5]})
        writer.write_sequence({}, {"a": [[]]})
        writer.write_sequence({}, {"a": [None, None]})
        with pytest.raises(EncodeError, match="an empty list has no kind"):
            writer.write_sequence({}, {"b": [[]]})
    assert payloads(tmp_path / "c")[2] == sequence({}, {"a": [KINDLESS, KINDLESS]})
    assert payloads(tmp_path / "c")[1] == sequence({}, {"a": [Empty("float_list")]})


@pytest.mark.parametrize("steps", [3, "abc", b"abc", np.float32(1), np.array(1)])
def test_a_feature_list_needs_steps(tmp_path: Path, steps: object) -> None:
    with Writer(tmp_path / "a", sequence=True) as writer:
        with pytest.raises(EncodeError, match="feature list 'a' needs steps"):
            writer.write_sequence({}, {"a": steps})  # type: ignore[dict-item]
        assert writer.records == 0

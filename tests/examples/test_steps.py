"""Feature lists from whatever holds steps: rows one by one, and columns of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.examples.helpers import KINDLESS, Empty, payloads, put, sequence
from tfrio.errors import EncodeError, MissingFeatureError, TfrioWarning
from tfrio.examples.columns import NoSteps
from tfrio.examples.decode import read, read_batches
from tfrio.examples.encode import encode_sequence
from tfrio.examples.schema import Feature
from tfrio.examples.steps import has_steps
from tfrio.examples.writer import Writer


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([[1], [2]], True),
        ([None, 1], True),
        (np.zeros((2, 3)), True),
        (np.array([np.zeros(2), np.zeros(3)], object), True),
        (NoSteps(), True),
        ([np.zeros(2)], True),
        ([1, 2], False),
        ([], False),
        (np.zeros(3), False),
        ("ab", False),
        (b"ab", False),
        (5, False),
        (None, False),
        ([np.float32(1)], False),
        ({"a": 1}, False),
    ],
)
def test_what_only_steps_are(value: Any, told: bool) -> None:
    assert has_steps(value) is told


def test_steps_of_other_libraries() -> None:
    pa, pl, pd = map(pytest.importorskip, ("pyarrow", "polars", "pandas"))
    wanted = encode_sequence({}, {"s": [[1, 2], [3]]})
    for steps in (
        pa.array([[1, 2], [3]]),
        pl.Series([[1, 2], [3]]),
        pd.Series([[1, 2], [3]]),
        np.array([np.array([1, 2]), np.array([3])], object),
        ((1, 2), (3,)),
        [np.array([1, 2], ">i2"), memoryview(np.array([3]))],
    ):
        assert encode_sequence({}, {"s": steps}) == wanted
    for steps in (pa.array([[1], None]), pl.Series([[1], None])):
        assert encode_sequence({}, {"s": steps}) == sequence({}, {"s": [[1], KINDLESS]})


def test_whole_numbers_among_floats_are_floats() -> None:
    made = encode_sequence({}, {"s": [[1], [2.5], [], None]})
    assert made == sequence({}, {"s": [[1.0], [2.5], Empty("float_list"), KINDLESS]})
    with pytest.raises(EncodeError, match="'s' mixes bytes and int64; convert the steps"):
        encode_sequence({}, {"s": [[1], ["a"]]})


@pytest.mark.parametrize("single", [b"ab", bytearray(b"ab"), memoryview(b"ab"), {1}, {"a": 1}])
def test_a_single_value_is_no_list_of_steps(single: Any) -> None:
    with pytest.raises(EncodeError, match="'s' needs steps"):
        encode_sequence({}, {"s": single})


ROWS: list[Any] = [[[1, 2], [3]], [[4, 5], [6, 7]], None, [[8], None, []], []]
WANTED = [
    sequence({}, {"s": [[1, 2], [3]]}),
    sequence({}, {"s": [[4, 5], [6, 7]]}),
    sequence({}, {}),
    sequence({}, {"s": [[8], KINDLESS, Empty("int64_list")]}),
    sequence({}, {"s": []}),
]


@pytest.mark.parametrize("bound", [False, True])
def test_a_column_of_nested_lists_is_a_feature_list(tmp_path: Path, bound: bool) -> None:
    schema: Any = {"s": Feature("int64", place="list", required=False)} if bound else None
    with Writer(tmp_path / "rows", schema=schema, sequence=True) as writer:
        for row in ROWS:
            writer.write({"s": row})
    with Writer(tmp_path / "batch", schema=schema, sequence=True) as writer:
        writer.write_batch({"s": ROWS})
    assert payloads(tmp_path / "rows") == payloads(tmp_path / "batch") == WANTED


def test_a_schema_makes_even_lists_steps_not_single_values(tmp_path: Path) -> None:
    schema = {"s": Feature("int64", place="list")}
    for column in (
        [[[1, 2], [3, 4]], [[5, 6]]],
        [np.array([[1, 2], [3, 4]]), np.array([[5, 6]])],
    ):
        with Writer(tmp_path / "a", schema=schema) as writer:
            writer.write_batch({"s": column})
        found = [[step.tolist() for step in row["s"]] for row in read(tmp_path / "a")]
        assert found == [np.asarray(row).tolist() for row in column]
    with Writer(tmp_path / "a", schema=schema) as writer:
        writer.write_batch({"s": [[[]], [[], [1]]]})
    assert payloads(tmp_path / "a") == [
        sequence({}, {"s": [Empty("int64_list")]}),
        sequence({}, {"s": [Empty("int64_list"), [1]]}),
    ]


def test_absent_rows_of_a_required_list_are_without_steps(tmp_path: Path) -> None:
    with Writer(tmp_path / "a", schema={"s": Feature("int64", place="list")}) as writer:
        writer.write_batch({"s": [[[1]], None]})
    assert payloads(tmp_path / "a") == [
        sequence({}, {"s": [[1]]}),
        sequence({}, {"s": []}),
    ]
    fixed = {"s": Feature("int64", (2,), place="list")}
    with (
        Writer(tmp_path / "b", schema=fixed) as writer,
        pytest.raises(MissingFeatureError, match="'s' is required.*row 1"),
    ):
        writer.write_batch({"s": [[[1, 2]], None]})


def test_a_column_that_was_steps_before_is_steps(tmp_path: Path) -> None:
    with Writer(tmp_path / "a", sequence=True) as writer:
        writer.write({"s": [[1], [2]]})
        writer.write_batch({"s": [[3, 4], [5]]})
    assert payloads(tmp_path / "a")[1:] == [
        sequence({}, {"s": [[3], [4]]}),
        sequence({}, {"s": [[5]]}),
    ]


def test_steps_in_forms_of_their_own_are_written_back(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path, shape in zip(paths, [(2, 3), (6,)], strict=True):
        with Writer(path, sequence=True) as writer:
            writer.write_sequence({}, {"s": [np.ones(shape), np.zeros(shape)]})
    bare = put(tmp_path / "c", sequence({}, {"s": [KINDLESS, [1.0] * 6]}))
    (batch,) = read_batches([*map(str, paths), bare], 5)
    assert [np.shape(steps[1]) for steps in batch["s"]] == [(2, 3), (6,), (6,)]
    with (
        pytest.warns(TfrioWarning, match="the steps of 's' differ"),
        Writer(tmp_path / "all", sequence=True) as writer,
    ):
        writer.write_batch(batch)
    given = [payload for path in [*paths, bare] for payload in payloads(path)]
    assert payloads(tmp_path / "all") == given

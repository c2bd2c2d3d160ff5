"""Reading feature lists and nested lists, by a schema or without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.helpers import KINDLESS, Empty, example, one_batch, payloads, put, sequence
from tfrio.errors import MissingFeatureError, SchemaError, TfrioWarning
from tfrio.examples.decode import read, read_batches
from tfrio.examples.opened import open as tfrio_open
from tfrio.examples.schema import Feature
from tfrio.examples.writer import Writer

# --- sequences ------------------------------------------------------------------------------------


def test_sequence_examples_are_read_with_empty_steps_kept(tmp_path: Path) -> None:
    payload = sequence(
        {"n": [3]},
        {
            "tok": [[0, 1], Empty("int64_list"), [2, 3, 4]],
            "img": [[b"\xff\xd8"], [b""], [b"ab"]],
        },
    )
    path = put(tmp_path / "a.tfrecord", payload)
    (row,) = read(path)
    assert row["n"].tolist() == [3]
    assert [step.tolist() for step in row["tok"]] == [[0, 1], [], [2, 3, 4]]
    assert row["img"] == [[b"\xff\xd8"], [b""], [b"ab"]]
    (batch,) = read_batches(path, 10)
    assert batch["tok"].tolist() == [[[0, 1], [], [2, 3, 4]]]
    assert batch["img"].tolist() == [[[b"\xff\xd8"], [b""], [b"ab"]]]


def test_steps_of_fixed_length_and_any_number_of_them(tmp_path: Path) -> None:
    def steps(n: int, width: int = 4) -> list[list[float]]:
        return [[float(width * i + k) for k in range(width)] for i in range(n)]

    path = put(
        tmp_path / "a.tfrecord", sequence({}, {"obs": steps(3)}), sequence({}, {"obs": steps(5)})
    )
    schema = {"obs": Feature("float", (4,), place="list")}
    first, second = read(path, schema=schema)
    assert first["obs"].shape == (3, 4)
    assert second["obs"][4].tolist() == [16, 17, 18, 19]
    column = one_batch(path, schema)["obs"]
    assert column.padded().shape == (2, 5, 4)
    assert column.lengths.tolist() == [3, 5]
    wrong = put(tmp_path / "b.tfrecord", sequence({}, {"obs": [[0.0] * 4, [0.0] * 5]}))
    with pytest.raises(SchemaError, match="feature 'obs': 5 values, expected 4, record 0, step 1"):
        one_batch(wrong, schema)


def test_one_name_in_context_and_list_keeps_both(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tfrecord", sequence({"x": [1]}, {"x": [[2], [3]]}))
    (row,) = read(path)
    assert row["context/x"].tolist() == [1]
    assert [s.tolist() for s in row["x"]] == [[2], [3]]


def test_a_schema_without_lists_warns_when_a_file_has_them(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tfrecord", sequence({"n": [1]}, {"tok": [[1]]}))
    with pytest.warns(TfrioWarning, match="feature lists are left out"):
        rows = list(read(path, schema={"n": Feature("int64", ())}))
    assert rows == [{"n": 1}]


def test_a_feature_declared_in_the_other_place_is_told_its_own(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tfrecord", sequence({"n": [1]}, {"s": [[1], [2]]}))
    as_list = {"n": Feature("int64", place="list"), "s": Feature("int64", place="list")}
    with pytest.raises(MissingFeatureError, match="'n' is a feature outside .*place='context'"):
        list(read(path, schema=as_list))
    as_context = {"n": Feature("int64"), "s": Feature("int64")}
    with (
        pytest.warns(TfrioWarning, match="feature lists are left out"),
        pytest.raises(MissingFeatureError, match=r"present: \['n', 's'\]; 's' is a feature list"),
    ):
        list(read_batches(path, 2, schema=as_context))


def test_text_and_arrays_in_steps(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a.tfrecord",
        sequence({}, {"w": [[b"ab"], [b"c"]], "px": [[b"\x01\x02"], [b"\x03\x04"]]}),
    )
    (row,) = read(
        path,
        schema={
            "w": Feature("bytes", (), dtype="str", place="list"),
            "px": Feature("bytes", (2,), codec="raw", dtype="uint8", place="list"),
        },
    )
    assert row["w"] == ["ab", "c"]
    assert row["px"].tolist() == [[1, 2], [3, 4]]


@pytest.mark.filterwarnings("ignore::tfrio.errors.TfrioWarning")
@pytest.mark.parametrize("steps", [[], [KINDLESS], [KINDLESS, KINDLESS]])
def test_byte_strings_after_many_records_without_a_kind_are_not_lost(
    tmp_path: Path, steps: list[object]
) -> None:
    before, after = sequence({}, {"L": steps}), sequence({}, {"L": [[b"ab"], [b"", b"c"]]})
    many = put(tmp_path / "a", *[before] * 1500, after)
    several = [put(tmp_path / "b", before), put(tmp_path / "c", after)]
    for paths in (many, several):
        *_, row = read(paths)
        assert row["L"] == [[b"ab"], [b"", b"c"]]
        *_, batch = read_batches(paths, 7)
        assert batch["L"][-1].tolist() == [[b"ab"], [b"", b"c"]]
        with tfrio_open(paths, index="memory") as data:
            assert list(data)[-1] == data[-1] == row


@pytest.mark.filterwarnings("ignore::tfrio.errors.TfrioWarning")
def test_empty_steps_of_byte_strings_keep_their_kind_after_steps_without_any(
    tmp_path: Path,
) -> None:
    parts = [sequence({}, {"L": [KINDLESS]}), sequence({}, {"L": [Empty("bytes_list"), KINDLESS]})]
    paths = [put(tmp_path / name, part) for name, part in zip("ab", parts, strict=True)]
    for size in (1, 2):
        with Writer(tmp_path / "out", sequence=True) as writer:
            for batch in read_batches(paths, size):
                writer.write_batch(batch)
        assert payloads(tmp_path / "out") == parts


# --- nested rows of TensorFlow Datasets -----------------------------------------------------------


def test_nested_lists_cut_by_row_lengths(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a.tfrecord",
        example({"k/ragged_flat_values": [1, 2, 3, 4, 5, 6], "k/ragged_row_lengths_0": [2, 1, 3]}),
        example(
            {"k/ragged_flat_values": [7], "k/ragged_row_lengths_0": [0, 1]},
        ),
    )
    schema = {
        "k": Feature("int64", name="k/ragged_flat_values", row_lengths=("k/ragged_row_lengths_0",))
    }
    rows = [[inner.tolist() for inner in row["k"]] for row in read(path, schema=schema)]
    assert rows == [[[1, 2], [3], [4, 5, 6]], [[], [7]]]
    assert one_batch(path, schema)["k"].tolist() == rows
    wrong = put(
        tmp_path / "b.tfrecord",
        example({"k/ragged_flat_values": [1, 2], "k/ragged_row_lengths_0": [2, 1]}),
    )
    with pytest.raises(SchemaError, match="do not add up to its 2 values, record 0"):
        list(read(wrong, schema=schema))

"""Columns of other libraries are written with every value and every gap, as one list would be."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tfrio
from tfrio.errors import EncodeError

BIG = 2**60 + 1  # no float holds it


def written(path, column, **options):
    """Write one column, and return its values row by row, None where the feature is absent."""
    with tfrio.Writer(path) as writer:
        writer.write_batch({"row": np.arange(len(column)), "x": column}, **options)
    rows = [row.get("x") for row in tfrio.read(path)]
    return [v if v is None or isinstance(v, bytes) else v.item() for v in map(_single, rows)]


def _single(value):
    """Return the only value of a list."""
    if value is None or isinstance(value, bytes):
        return value
    (only,) = value
    return only


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.tfrecord"


def test_pandas_integers_with_a_gap_stay_exact(path):
    pandas = pytest.importorskip("pandas")
    for dtype in ("Int64", "int64[pyarrow]"):
        if "arrow" in dtype:
            pytest.importorskip("pyarrow")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert written(path, pandas.Series([BIG, None], dtype=dtype)) == [BIG, None]
        assert written(path, pandas.Series([BIG, 3], dtype=dtype)) == [BIG, 3]


def test_pandas_text_and_booleans_with_gaps(path):
    pandas = pytest.importorskip("pandas")
    for text in (
        pandas.Series(["a", None]),
        pandas.Series(["a", None], dtype=object),
        pandas.Series(["a", float("nan")], dtype=object),
        pandas.Series(["a", pandas.NA], dtype="string"),
        ["a", pandas.NA],
    ):
        assert written(path, text) == [b"a", None]
    assert written(path, pandas.Series([True, None], dtype="boolean")) == [1, None]


def test_nan_of_plain_floats_is_a_value(path):
    pandas = pytest.importorskip("pandas")
    first, second = written(path, pandas.Series([0.5, float("nan")]))
    assert first == 0.5
    assert np.isnan(second)


def test_pyarrow_arrays_keep_nulls(path):
    arrow = pytest.importorskip("pyarrow")
    assert written(path, arrow.array([BIG, None])) == [BIG, None]
    assert written(path, arrow.chunked_array([[BIG], [None, 7]])) == [BIG, None, 7]
    assert written(path, arrow.array(["a", None])) == [b"a", None]
    assert written(path, arrow.array([BIG, 2])) == [BIG, 2]


def test_nulls_within_lists_are_refused_not_made_nan(path):
    pandas, arrow, polars = map(pytest.importorskip, ("pandas", "pyarrow", "polars"))
    for column in (arrow.array([[BIG, None]]), polars.Series([[BIG, None]])):
        with pytest.raises(EncodeError, match=r"None inside a list.*\(row 0\)"):
            written(path, column)
    for column in (arrow.array([[BIG], [1, 2], None]), polars.Series([[BIG], [1, 2], None])):
        with tfrio.Writer(path) as writer:
            writer.write_batch({"x": column})
        assert [row["x"].tolist() for row in tfrio.read(path) if "x" in row] == [[BIG], [1, 2]]
    for value in (
        pandas.array([BIG, None], dtype="Int64"),
        pandas.Series([True, None], dtype="boolean"),
        arrow.array([BIG, None]),
        polars.Series([BIG, None]),
    ):
        with tfrio.Writer(path) as writer, pytest.raises(EncodeError, match="None inside a list"):
            writer.write({"x": value})


def test_scalars_of_pyarrow_are_values(path):
    arrow = pytest.importorskip("pyarrow")
    with tfrio.Writer(path) as writer:
        writer.write({"i": arrow.scalar(BIG), "b": arrow.scalar(b"x\0"), "n": arrow.scalar(None)})
        writer.write({"i": arrow.scalar(None, arrow.int64()), "b": [arrow.scalar("y")]})
    first, second = tfrio.read(path)
    assert (first["i"].tolist(), first["b"], second) == ([BIG], b"x\0", {"b": b"y"})


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ({"a": 1}, "a dict is no column; give each of its entries"),
        ({1, 2}, "a set has no order"),
        (memoryview(b"abc"), "single value of type memoryview"),
        (["a", 1], "bytes before, int64 in row 1; convert the values"),
        ([1, "a"], "int64 before, bytes in row 1"),
    ],
)
def test_what_is_no_column_is_refused(path, column, text):
    with tfrio.Writer(path) as writer, pytest.raises(EncodeError, match=text):
        writer.write_batch({"x": column})


def test_views_of_numbers_are_columns(path):
    with tfrio.Writer(path) as writer:
        writer.write_batch({"x": memoryview(np.arange(4, dtype=np.int16).reshape(2, 2))})
    assert [row["x"].tolist() for row in tfrio.read(path)] == [[0, 1], [2, 3]]


def test_structs_of_polars_are_refused(path):
    polars = pytest.importorskip("polars")
    with tfrio.Writer(path) as writer, pytest.raises(EncodeError, match="a dict is no value"):
        writer.write_batch({"x": polars.Series([{"a": 1}])})
    frame = polars.DataFrame({"a": [1, 2]})
    with tfrio.Writer(path) as writer:
        writer.write_batch({"x": frame})
    assert [row["x"].tolist() for row in tfrio.read(path)] == [[1], [2]]


def test_polars_series_keep_nulls(path):
    polars = pytest.importorskip("polars")
    assert written(path, polars.Series([BIG, None])) == [BIG, None]
    assert written(path, polars.Series(["a", None])) == [b"a", None]


def test_a_row_may_say_missing_in_the_words_of_pandas(path):
    pandas = pytest.importorskip("pandas")
    with tfrio.Writer(path) as writer:
        writer.write({"a": 1, "b": pandas.NA})
        with pytest.raises(EncodeError, match="leave it out or give a fill value"):
            writer.write({"a": [1, pandas.NA]})
    assert list(next(iter(tfrio.read(path)))) == ["a"]


def test_a_mask_of_no_column_is_refused(path):
    with tfrio.Writer(path) as writer:
        with pytest.raises(EncodeError, match=r"present\['y'\] belongs to no column"):
            writer.write_batch({"x": [1, 2]}, present={"y": np.array([True, False])})
        writer.write({"x": 1})


def test_a_batch_that_lost_a_column_is_written(path, tmp_path):
    with tfrio.Writer(path) as writer:
        writer.write({"x": 1, "y": 2})
        writer.write({"x": 1})
    batch = next(iter(tfrio.read_batches(path, 2)))
    del batch["y"]
    with tfrio.Writer(tmp_path / "out.tfrecord") as writer:
        writer.write_batch(batch)
    assert [list(row) for row in tfrio.read(tmp_path / "out.tfrecord")] == [["x"], ["x"]]


def test_torch_bfloat16_is_stored_as_float32(path):
    torch = pytest.importorskip("torch")
    values = torch.tensor([1.5, -3.0], dtype=torch.bfloat16)
    assert written(path, values) == [1.5, -3.0]
    with tfrio.Writer(path) as writer:
        writer.write({"x": values})
    assert next(iter(tfrio.read(path)))["x"].tolist() == [1.5, -3.0]


def test_numpy_text_of_any_length(path):
    if not hasattr(np.dtypes, "StringDType"):
        pytest.skip("NumPy 1 has no text of any length")
    text = np.array(["a", "long " * 20], np.dtypes.StringDType())
    assert written(path, text) == [b"a", b"long " * 20]
    gap = np.array(["a", None], np.dtypes.StringDType(na_object=None))
    assert written(path, gap) == [b"a", None]


def test_a_feature_list_of_no_steps_needs_no_kind(path):
    with tfrio.Writer(path) as writer:
        writer.write_sequence({"id": 1}, {"a": []})
        writer.write_sequence({"id": 2}, {"a": [[0.5], [1.5]]})
    first, second = tfrio.read(path)
    assert len(first["a"]) == 0
    assert [float(step[0]) for step in second["a"]] == [0.5, 1.5]

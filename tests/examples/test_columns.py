"""Ragged, BytesColumn and Batch."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrio.errors import UsageError
from tfrio.examples.columns import Batch, BytesColumn, Ragged, as_objects


@given(st.lists(st.binary(max_size=20)))
def test_bytes_column_gives_back_every_byte(values: list[bytes]) -> None:
    column = BytesColumn.of(values)
    assert column.tolist() == values
    assert list(column) == values
    assert [column[i] for i in range(len(column))] == values
    assert [bytes(v) for v in column.views()] == values
    assert column == values
    assert column.nbytes == sum(map(len, values))


def test_trailing_nuls_are_bytes_like_any_other() -> None:
    assert BytesColumn.of([b"ab\x00", b"\x00\x00"]).tolist() == [b"ab\x00", b"\x00\x00"]


def test_one_long_value_among_many_short_ones_costs_its_own_bytes_only() -> None:
    column = BytesColumn.of([b"0123456789"] * 1000 + [b"x" * 200_000])
    assert column.data.nbytes + column.offsets.nbytes < 300_000


def test_bytes_column_slices() -> None:
    column = BytesColumn.of([b"a", b"bc", b"", b"d"])
    assert column[1:3].tolist() == [b"bc", b""]
    assert column[1:3][0] == b"bc"
    assert column[::-1].tolist() == [b"d", b"", b"bc", b"a"]
    assert column[3:1].tolist() == []
    assert column[-1] == b"d"
    assert column.decode() == ["a", "bc", "", "d"]
    with pytest.raises(IndexError, match="index 4 of 4"):
        column[4]
    with pytest.raises(IndexError):
        BytesColumn.of([])[0]


def test_bytes_column_equals_only_sequences() -> None:
    assert BytesColumn.of([b"a"]) != 5
    assert (BytesColumn.of([b"a"]) == b"a") is False
    assert repr(BytesColumn.of([b"ab"])) == "BytesColumn(1 values, 2 bytes)"


def ragged() -> Ragged:
    return Ragged(np.array([1, 2, 3, 4], np.int64), np.array([0, 0, 1, 4], np.int64))


def test_ragged_lists() -> None:
    column = ragged()
    assert len(column) == 3
    assert column.tolist() == [[], [1], [2, 3, 4]]
    assert column[2].tolist() == [2, 3, 4]  # type: ignore[union-attr]
    assert column[-2].tolist() == [1]  # type: ignore[union-attr]
    assert column[1:].tolist() == [[1], [2, 3, 4]]
    assert column.lengths.tolist() == [0, 1, 3]
    assert repr(column) == "Ragged(3 lists, 4 values, int64)"
    with pytest.raises(UsageError, match="step 1"):
        column[::2]


def test_ragged_columns_tell_the_type_of_their_numbers() -> None:
    offsets = np.array([0, 1, 3], np.int64)
    nested = Ragged(ragged(), offsets)
    assert nested.dtype == np.int64
    assert repr(nested) == "Ragged(2 lists, 3 values, int64)"
    text = Ragged(["a", "b", "c"], offsets)
    assert text.dtype is None
    assert repr(text) == "Ragged(2 lists, 3 values)"
    assert Ragged(BytesColumn.of([b"a", b"b", b"c"]), offsets).dtype is None
    assert Ragged(as_objects([b"a", b"b", b"c"]), offsets).dtype is None


def test_padded_boxes_of_zero_one_and_three_values() -> None:
    padded = ragged().padded(-1)
    assert padded.tolist() == [[-1, -1, -1], [1, -1, -1], [2, 3, 4]]
    assert padded.dtype == np.int64
    assert ragged().padded(-1, length=4).shape == (3, 4)
    assert ragged()[1:].padded(-1).tolist() == [[1, -1, -1], [2, 3, 4]]
    with pytest.raises(UsageError, match="list 2 has 3 values, more than length=2"):
        ragged().padded(length=2)


def test_padded_keeps_inner_axes() -> None:
    column = Ragged(np.arange(32, dtype=np.float32).reshape(8, 4), np.array([0, 3, 8]))
    padded = column.padded()
    assert padded.shape == (2, 5, 4)
    assert padded[0, 3:].sum() == 0
    assert (padded[1] == column.values[3:]).all()  # type: ignore[index]
    assert column.lengths.tolist() == [3, 5]


def test_bytes_are_not_padded() -> None:
    with pytest.raises(UsageError, match="only lists of numbers"):
        Ragged(BytesColumn.of([b"a"]), np.array([0, 1])).padded()


def test_nested_ragged() -> None:
    steps = Ragged(np.arange(5), np.array([0, 2, 2, 5]))
    column = Ragged(steps, np.array([0, 3, 3]))
    assert column.tolist() == [[[0, 1], [], [2, 3, 4]], []]
    assert column[0].tolist() == [[0, 1], [], [2, 3, 4]]  # type: ignore[union-attr]


def test_batch_pickles_and_shows_itself() -> None:
    batch = Batch(
        {"x": np.zeros((2, 3), np.float32), "b": BytesColumn.of([b"a", b"b"]), "l": [None, None]},
        present={"x": np.array([True, False])},
        rows=2,
    )
    again = pickle.loads(pickle.dumps(batch))
    assert again.rows == 2
    assert again["x"].shape == (2, 3)
    assert again.present["x"].tolist() == [True, False]
    assert "x: float32 (2, 3)" in repr(batch)
    assert "l: list of 2" in repr(batch)

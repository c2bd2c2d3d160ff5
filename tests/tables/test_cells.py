"""Cells: nulls, shapes, and numbers that do not fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrio.errors import EncodeError
from tfrio.tables.cells import Cells, cells_of_values, changed, filled, stored, text_of
from tfrio.tables.fields import Field


def lists(cells: Cells) -> list[object]:
    """Return nested lists, None where null."""
    values = cells.values.tolist()
    bounds = cells.offsets.tolist()
    return [
        values[bounds[row] : bounds[row + 1]] if cells.present[row] else None
        for row in range(cells.rows)
    ]


def test_single_values_with_nulls() -> None:
    cells = cells_of_values(Field("a", "float"), [1.5, None, -2.0])
    assert lists(cells) == [[1.5], None, [-2.0]]
    assert cells.shape() == ()
    assert cells.row_of(1) == 2


def test_arrays_keep_their_shape() -> None:
    cells = cells_of_values(Field("a", "int", (2, 3)), [[[1, 2, 3], [4, 5, 6]], None])
    assert lists(cells) == [[1, 2, 3, 4, 5, 6], None]
    assert cells.shape() == (2, 3)
    differing = cells_of_values(Field("a", "int", None), [[1, 2], 3, []])
    assert lists(differing) == [[1, 2], [3], []]
    assert differing.shape() is None


def test_text_bytes_and_json() -> None:
    cells = cells_of_values(Field("a", "json"), ["é", b"\x00\xff", {"k": [1]}, None, True])
    assert lists(cells) == [["é".encode()], [b"\x00\xff"], [b'{"k": [1]}'], None, [b"true"]]
    numbers = cells_of_values(Field("zip", "int", kind="bytes"), [7, None])
    assert lists(numbers) == [[b"7"], None]
    assert text_of("\ud800") == b"\xed\xa0\x80"


def test_fill_takes_the_place_of_null() -> None:
    cells = filled(cells_of_values(Field("b", "float"), [None, 3.0, None]), -9999)
    assert lists(cells) == [[-9999.0], [3.0], [-9999.0]]
    assert cells.present.all()
    text = filled(cells_of_values(Field("b", "text"), ["x", None, "y"]), "none")
    assert lists(text) == [[b"x"], [b"none"], [b"y"]]
    arrays = filled(cells_of_values(Field("b", "int", (2,)), [None, [1, 2]]), 0)
    assert lists(arrays) == [[0], [1, 2]]
    whole = cells_of_values(Field("b", "float"), [1.0])
    assert filled(whole, 5) is whole


def test_fill_does_not_cut_fractions() -> None:
    assert lists(filled(cells_of_values(Field("b", "int"), [None, 3]), 0.5)) == [[0.5], [3.0]]


@given(st.lists(st.one_of(st.none(), st.integers(-(2**62), 2**62))))
def test_native_integers_survive(values: list[int | None]) -> None:
    cells = cells_of_values(Field("n", "int"), values)
    kept = stored(cells, "int64", name="n", where="rows")
    assert kept.tolist() == [v for v in values if v is not None]
    assert not changed(cells.values, "int64").any()


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_changed_is_exact(values: list[int]) -> None:
    cells = cells_of_values(Field("n", "int"), list(values))
    expected = [int(np.float32(v)) != v for v in values]
    assert changed(cells.values, "float").tolist() == expected


def test_changed_looks_at_whole_floats_only() -> None:
    values = np.array([16777217.0, 0.1, np.nan, 1e30, 16777216.0])
    assert changed(values, "float").tolist() == [True, False, False, True, False]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (1e39, "float", "1e[+]39 of column 'n' does not fit float32"),
        (0.5, "int64", "0.5 of column 'n' does not fit int64"),
        (float("nan"), "int64", "nan of column 'n' does not fit int64"),
        (2**63, "int64", "does not fit int64"),
    ],
)
def test_numbers_that_do_not_fit(value: float, kind: str, text: str) -> None:
    cells = cells_of_values(Field("n", "float"), [None, value])
    with pytest.raises(EncodeError, match=text) as caught:
        stored(cells, kind, name="n", where="t.csv, rows from 0")  # type: ignore[arg-type]
    assert "t.csv, rows from 0, row 1" in str(caught.value)


def test_infinity_is_a_float32() -> None:
    cells = cells_of_values(Field("n", "float"), [float("inf"), float("nan")])
    kept = stored(cells, "float", name="n", where="rows")
    assert kept.dtype == np.float32
    np.testing.assert_array_equal(kept, [np.inf, np.nan])


def test_unsigned_numbers_beyond_int64() -> None:
    cells = Cells(np.array([1, 2**63], np.uint64), np.arange(3), np.ones(2, bool))
    with pytest.raises(EncodeError, match="9223372036854775808"):
        stored(cells, "int64", name="n", where="rows")

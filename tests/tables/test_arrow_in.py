"""Arrow arrays to cells: what pyarrow's own Python lists say is the oracle."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrio.errors import EncodeError
from tfrio.tables.arrow_in import cells_of_arrow, field_of_arrow
from tfrio.tables.cells import Cells


def cells_of(array: pa.Array) -> Cells:
    field = field_of_arrow(pa.field("c", array.type))
    return cells_of_arrow(array, field, where="t.parquet, rows from 0")


def lists(cells: Cells) -> list[object]:
    values, bounds = cells.values.tolist(), cells.offsets.tolist()
    return [
        values[bounds[row] : bounds[row + 1]] if cells.present[row] else None
        for row in range(cells.rows)
    ]


DAY = dt.datetime(2020, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("array", "form", "expected"),
    [
        (pa.array([True, None, False]), "bool", [[1], None, [0]]),
        (pa.array([1, None, 3], pa.uint16()), "int", [[1], None, [3]]),
        (pa.array([1.5, None], pa.float32()), "float", [[1.5], None]),
        (pa.array([np.float16(1.5)], pa.float16()), "float", [[1.5]]),
        (pa.array([Decimal("1.25"), None]), "float", [[1.25], None]),
        (pa.array(["é", None, ""]), "text", [["é".encode()], None, [b""]]),
        (pa.array(["x", None], pa.large_string()), "text", [[b"x"], None]),
        (pa.array(["x", None], pa.string_view()), "text", [[b"x"], None]),
        (pa.array([b"\x00\xff", None], pa.binary()), "bytes", [[b"\x00\xff"], None]),
        (pa.array([b"ab", None], pa.binary(2)), "bytes", [[b"ab"], None]),
        (pa.array(["p", None, "p"]).dictionary_encode(), "text", [[b"p"], None, [b"p"]]),
        (pa.array([None, None]), "null", [None, None]),
        (pa.array([dt.date(2020, 1, 2), None]), "time", [[b"2020-01-02"], None]),
        (
            pa.array([DAY, None], pa.timestamp("s")),
            "time",
            [[b"2020-01-02T03:04:05"], None],
        ),
        (
            pa.array([DAY.replace(tzinfo=dt.UTC)], pa.timestamp("s", "Asia/Tokyo")),
            "time",
            [[b"2020-01-02T03:04:05Z"]],
        ),
        (pa.array([{"k": 1}, None]), "json", [[b'{"k": 1}'], None]),
    ],
)
def test_single_values(array: pa.Array, form: str, expected: list[Any]) -> None:
    assert field_of_arrow(pa.field("c", array.type)).form == form
    assert lists(cells_of(array)) == expected
    padded = pa.concat_arrays([array, array]).slice(len(array))  # an offset inside the buffers
    assert lists(cells_of(padded)) == expected


def test_lists_of_any_depth() -> None:
    nested = pa.array([[[1, 2, 3], [4, 5, 6]], None, [[7, 8, 9], [10, 11, 12]]])
    cells = cells_of(nested)
    assert lists(cells) == [[1, 2, 3, 4, 5, 6], None, [7, 8, 9, 10, 11, 12]]
    assert cells.shape() == (2, 3)
    fixed = pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2))
    assert lists(cells_of(fixed)) == [[1.0, 2.0], None]
    assert cells_of(fixed).shape() == (2,)
    words = pa.array([["a", "bc"], [], None, ["d"]])
    assert lists(cells_of(words)) == [[b"a", b"bc"], [], None, [b"d"]]
    assert cells_of(words).shape() is None


def test_nulls_inside_lists() -> None:
    assert np.isnan(cells_of(pa.array([[1.0, None]])).values[1])
    assert lists(cells_of(pa.array([["a", None]]))) == [[b"a", b""]]


def test_ragged_inner_lists_are_refused() -> None:
    nested = pa.array([[[1], [2]], None, [], [[3, 4], [5]]])
    with pytest.raises(EncodeError, match="row 3: column 'c' holds lists of differing length"):
        cells_of(nested)


def test_extension_arrays_give_their_storage() -> None:
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(12.0).reshape(2, 3, 2))
    cells = cells_of_arrow(tensors, field_of_arrow(pa.field("c", tensors.storage.type)), where="t")
    assert lists(cells) == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]


@given(
    st.lists(
        st.one_of(st.none(), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4)), min_size=1
    )
)
def test_random_lists(values: list[list[int] | None]) -> None:
    array = pa.array(values, pa.list_(pa.int64()))
    assert lists(cells_of(array)) == values
    assert lists(cells_of(array.slice(1))) == values[1:]

"""Columns side by side in one piece of memory."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfrio.datasets.outputs import Outputs
from tfrio.examples.layout import Layout
from tfrio.examples.schema import Feature, Schema

SCHEMA = Schema(
    {
        "a": Feature("float", (3, 2)),
        "name": Feature("bytes", ()),
        "id": Feature("int64", ()),
        "second": Feature("bytes", ()),
        "list": Feature("float", None),
        "cast": Feature("int64", (), dtype="uint8"),
    }
)


@given(rows=st.integers(0, 300), mean=st.integers(1, 5000))
def test_columns_lie_side_by_side(rows, mean):
    layout = Layout(SCHEMA)
    outputs = Outputs(layout, mean)
    memory = np.zeros(outputs.size(rows) + 7, np.uint8)
    arrays = outputs.cut(memory, rows)
    assert set(arrays) == {layout.slot(key) for key in ("a", "name", "id")}
    a, names, ids = (arrays[layout.slot(key)] for key in ("a", "name", "id"))
    assert (a.dtype, a.size) == (np.float32, 6 * rows)
    assert (ids.dtype, ids.size) == (np.int64, rows)
    assert names.size >= rows * mean
    for array in arrays.values():
        array[...] += 1
    # No byte was counted by two of them.
    assert names.sum() == names.size
    assert (a == 1).all()
    assert (ids == 1).all()


def test_strings_that_do_not_fit_get_more_room_and_then_none():
    outputs = Outputs(Layout(SCHEMA.select(["name"])), 100)
    sizes = []
    while outputs.size(10):
        sizes.append(outputs.size(10))
        outputs.overflowed()
    assert sizes == [1250, 1875, 2812]

"""Slots, names and places: from a schema to what the native decoder is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrio.errors import SchemaError
from tfrio.examples.layout import Layout, Origin, Slot, stored_name, wire_name
from tfrio.examples.schema import Feature, Schema


def test_slots_of_a_schema() -> None:
    layout = Layout(
        Schema(
            {
                "f": Feature("float", (2, 3)),
                "r": Feature("int64"),
                "u": Feature("unknown"),
                "img": Feature("bytes", codec="image"),
                "s": Feature("float", (4,), place="list"),
                "renamed": Feature("bytes", (), name="stored"),
            }
        )
    )
    assert layout.slots == [
        Slot(b"f", 2, 6, 0),
        Slot(b"r", 3, -1, 0),
        Slot(b"u", 1, -1, 0),
        Slot(b"img", 1, 1, 0),
        Slot(b"s", 2, 4, 1),
        Slot(b"stored", 1, 1, 0),
    ]
    assert layout.slot("renamed") == layout.index("stored") == 5


def test_axes_and_row_lengths_get_slots_of_their_own() -> None:
    layout = Layout(
        Schema(
            {
                "px": Feature("bytes", ("h", "w"), codec="raw", dtype="uint8"),
                "w": Feature("int64"),
                "k": Feature("int64", name="k/flat", row_lengths=("k/n",)),
            }
        )
    )
    assert layout.slots[layout.dim_slot("h")] == Slot(b"h", 3, 1, 0)
    assert layout.slots[layout.dim_slot("w")] == Slot(b"w", 3, -1, 0)
    assert layout.slots[layout.index("k/n")] == Slot(b"k/n", 3, -1, 0)


def test_one_stored_feature_under_two_names() -> None:
    same = Layout(Schema({"a": Feature("float", (2,)), "b": Feature("float", (2,), name="a")}))
    assert same.slot("a") == same.slot("b")
    with pytest.raises(SchemaError, match="read 'a' with another kind or number"):
        Layout(Schema({"a": Feature("float", (2,)), "b": Feature("float", (3,), name="a")}))
    with pytest.raises(SchemaError, match="'k' needs 'n' as int64"):
        Layout(Schema({"k": Feature("int64", row_lengths=("n",)), "n": Feature("float")}))


def test_rows_are_traced_to_file_and_record() -> None:
    origin = Origin()
    assert origin.where(3) == "record 3"
    assert origin.place(3) == {"path": None, "record": 3}
    origin.add(0, "a", 10)
    origin.add(5, "b", 0)
    origin.add(5, "c", 7)  # nothing of b was taken
    assert [origin.of(row) for row in (0, 4, 5, 6)] == [("a", 10), ("a", 14), ("c", 7), ("c", 8)]
    assert origin.where(6) == "record 8 of c"


@given(st.binary())
def test_any_stored_name_survives(name: bytes) -> None:
    assert wire_name(stored_name(name)) == name

"""Forms only widen; a mixture names both rows."""

from __future__ import annotations

import pytest

from tfrio.errors import SchemaError, UsageError
from tfrio.tables.fields import Field, Profile, apply_types, select, walk


def profile(values: list[object], *, text: bool = False) -> Field:
    made = Profile("p", "t.geojson", text=text)
    for row, value in enumerate(values):
        made.add(value, row)
    return made.field()


@pytest.mark.parametrize(
    ("values", "form", "shape"),
    [
        ([None, None], "null", ()),
        ([None, True, 1], "int", ()),
        ([1, 2.5, None], "float", ()),
        (["a", None], "text", ()),
        ([[1, 2], [3, 4]], "int", (2,)),
        ([[[1, 2, 3], [4, 5, 6.5]], None], "float", (2, 3)),
        ([[1], [1, 2]], "int", None),
        ([["a", "b"]], "text", (2,)),
        ([{"k": 1}], "json", ()),
        ([[[1], [1, 2]]], "json", ()),
        ([[]], "null", (0,)),
    ],
)
def test_profile(values: list[object], form: str, shape: tuple[int, ...] | None) -> None:
    field = profile(values)
    assert (field.form, field.shape) == (form, shape)


def test_a_mixture_names_both_rows() -> None:
    with pytest.raises(SchemaError, match="int in row 1 and text in row 3") as caught:
        profile([None, 1, 2, "x"])
    assert (caught.value.record, caught.value.feature) == (3, "p")
    assert profile([1, "x"], text=True).form == "json"


@pytest.mark.parametrize(
    ("field", "float_kind", "native_kind"),
    [
        (Field("a", "bool"), "float", "int64"),
        (Field("a", "int"), "float", "int64"),
        (Field("a", "float"), "float", "float"),
        (Field("a", "text"), "bytes", "bytes"),
        (Field("a", "int", kind="bytes"), "bytes", "bytes"),
    ],
)
def test_stored_kind(field: Field, float_kind: str, native_kind: str) -> None:
    assert field.stored("float") == float_kind
    assert field.stored("native") == native_kind


def test_walk_is_row_major_and_refuses_ragged_lists() -> None:
    assert walk([[1, 2], [3, 4], [5, 6]]) == ((3, 2), [1, 2, 3, 4, 5, 6])
    assert walk(7) == ((), [7])
    assert walk([[1], [2, 3]]) is None


FIELDS = [Field("B2", "int"), Field("B3", "float"), Field("name", "text")]


def test_select_keeps_the_order_asked_for() -> None:
    assert [f.name for f in select(FIELDS, "name, B2")] == ["name", "B2"]
    assert [f.name for f in select(FIELDS, ["B3"])] == ["B3"]
    assert select(FIELDS, None) == FIELDS
    with pytest.raises(UsageError, match="no column 'b2'; did you mean 'B2'"):
        select(FIELDS, ["b2"])
    with pytest.raises(UsageError, match="twice"):
        select(FIELDS, "B2,B2")


def test_types_are_checked() -> None:
    assert apply_types(FIELDS, {"B2": "int64"})[0].kind == "int64"
    assert apply_types(FIELDS, None) == FIELDS
    with pytest.raises(UsageError, match="choose one of bytes, float, int64"):
        apply_types(FIELDS, {"B2": "int32"})
    with pytest.raises(UsageError, match="no column 'nope'; there are B2, B3, name"):
        apply_types(FIELDS, {"nope": "float"})
    with pytest.raises(UsageError, match="holds text, not numbers"):
        apply_types(FIELDS, {"name": "float"})

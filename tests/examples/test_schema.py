"""Features and schemas: what they accept, say and join to."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrio.errors import MissingFeatureError, SchemaError
from tfrio.examples.schema import Feature, Schema, common_shape


def test_count_follows_the_shape() -> None:
    assert Feature("float").count == -1
    assert Feature("float", ()).count == 1
    assert Feature("float", (1,)).count == 1
    assert Feature("float", (3, 4)).count == 12
    assert Feature("float", (0,)).count == 0
    assert Feature("float", (-1, 4)).count == -1
    assert Feature("float", ("h", 4)).count == -1
    assert Feature("bytes", (3, 4), codec="raw", dtype="uint8").count == 1
    assert Feature("bytes", (3, 4), codec="raw", dtype="uint8", many=True).count == -1


def test_a_single_number_is_a_shape_of_one_axis() -> None:
    assert Feature("float", 3).shape == (3,)  # type: ignore[arg-type]
    assert Feature("float", [3, 4]).shape == (3, 4)  # type: ignore[arg-type]


def test_out_dtype() -> None:
    assert Feature("float").out_dtype == np.float32
    assert Feature("int64").out_dtype == np.int64
    assert Feature("int64", dtype="uint8").out_dtype == np.uint8
    assert Feature("bytes").out_dtype is None
    assert Feature("bytes", dtype="str").out_dtype is None
    assert Feature("bytes", codec="image").out_dtype == np.uint8


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kind": "floats"}, "kind must be one of"),
        ({"kind": "float", "shape": (-1, -1)}, "2 free axes"),
        ({"kind": "float", "shape": (-2,)}, "at least 0, not -2"),
        ({"kind": "float", "shape": (1.5,)}, "not 1.5"),
        ({"kind": "float", "shape": (True,)}, "not True"),
        ({"kind": "float", "dtype": "int32"}, "cut its values"),
        ({"kind": "float", "dtype": "float33"}, "unknown dtype"),
        ({"kind": "float", "dtype": "str"}, "for bytes features"),
        ({"kind": "int64", "dtype": "complex64"}, "none of bool, integer"),
        ({"kind": "bytes", "dtype": "uint8"}, "or a codec"),
        ({"kind": "bytes", "codec": "raw"}, "needs a dtype"),
        ({"kind": "bytes", "codec": "jpeg"}, "codec must be one of"),
        ({"kind": "float", "codec": "raw", "dtype": "float32"}, "needs kind bytes"),
        ({"kind": "bytes", "codec": "raw", "dtype": "uint8", "byte_order": "middle"}, "byte_order"),
        ({"kind": "bytes", "many": True}, "many=True"),
        ({"kind": "int64", "default": 0.5}, "does not fit a int64"),
        ({"kind": "float", "default": b"x"}, "does not fit a float"),
        ({"kind": "float", "shape": (3,), "default": [1, 2]}, "2 values, the shape holds 3"),
        ({"kind": "float", "place": "side"}, "place must be one of"),
    ],
)
def test_an_impossible_feature_is_refused(options: dict[str, object], text: str) -> None:
    with pytest.raises(SchemaError, match=text):
        Feature(**options)  # type: ignore[arg-type]


def test_defaults_of_zero_count_and_numpy_defaults_become_plain() -> None:
    assert Feature("int64", (), default=np.int64(0)).default == 0
    assert Feature("float", (2,), default=np.array([0.5, 1.0])).default == (0.5, 1.0)  # type: ignore[arg-type]
    assert Feature("bytes", (), default=b"").default == b""
    assert hash(Feature("float", (2,), default=[1.0, 2.0])) is not None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("feature", "text"),
    [
        (Feature("bytes", lengths=(1, 1)), "list<bytes> (length 1 so far)"),
        (Feature("int64", lengths=(0, 3)), "list<int64> (0 to 3 values)"),
        (Feature("float", (3, 4)), "float32 (3, 4)"),
        (Feature("float", ()), "float32 ()"),
        (Feature("int64", (1,), dtype="uint8"), "uint8 (1,)"),
        (Feature("float", (), required=False), "float32 (), optional"),
        (Feature("float", (), default=0.0), "float32 (), default 0.0"),
        (Feature("bytes", ("h", "w"), codec="raw", dtype="uint16"), "raw uint16 (h, w)"),
        (Feature("float", (4,), place="list"), "steps of float32 (4,)"),
        (Feature("unknown"), "list<unknown>"),
        (Feature("int64", row_lengths=("a", "b")), "list<list<list<int64>>>"),
    ],
)
def test_describe(feature: Feature, text: str) -> None:
    assert feature.describe() == text


def test_schema_is_an_ordered_immutable_mapping() -> None:
    schema = Schema({"b": "float", "a": Feature("int64", ())})
    assert list(schema) == ["b", "a"]
    assert schema["b"] == Feature("float")
    assert schema == Schema({"a": Feature("int64", ()), "b": "float"})
    assert hash(schema) == hash(Schema({"b": "float", "a": Feature("int64", ())}))
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert "float32" in repr(schema) or "list<float32>" in repr(schema)
    with pytest.raises(TypeError):
        schema["c"] = Feature("float")  # type: ignore[index]


def test_select_keeps_the_order_asked_and_names_what_is_missing() -> None:
    schema = Schema({"a": "float", "b": "int64", "c": "bytes"})
    assert list(schema.select(["c", "a"])) == ["c", "a"]
    with pytest.raises(MissingFeatureError, match=r"no feature 'd'; there are: \['a', 'b', 'c'\]"):
        schema.select(["d"])


def test_an_axis_must_be_an_int64_feature() -> None:
    with pytest.raises(SchemaError, match="axis from 'h', which is float"):
        Schema({"x": Feature("float", ("h", 3)), "h": "float"})


def test_merge_joins_unknown_with_any_kind() -> None:
    assert Feature("unknown").merge(Feature("int64", (1,))).kind == "int64"
    assert Feature("int64", (1,)).merge(Feature("unknown")) == Feature("int64", (1,))


def test_a_list_of_one_here_and_two_there_is_a_list() -> None:
    first = Schema({"tags": Feature("bytes", (1,), lengths=(1, 1))})
    second = Schema({"tags": Feature("bytes", (2,), lengths=(2, 2))})
    merged = first.merge(second)["tags"]
    assert merged.shape is None
    assert merged.kind == "bytes"
    assert merged.lengths == (1, 2)


def test_what_one_file_lacks_is_optional() -> None:
    merged = Schema({"a": "float"}).merge(Schema({"b": "int64"}))
    assert not merged["a"].required
    assert not merged["b"].required


def test_two_kinds_do_not_merge() -> None:
    with pytest.raises(SchemaError, match="feature 'x' is float in one place and int64"):
        Schema({"x": "float"}).merge(Schema({"x": "int64"}))
    with pytest.raises(SchemaError, match="context of one file"):
        Schema({"x": "float"}).merge(Schema({"x": Feature("float", place="list")}))


SHAPES = st.none() | st.lists(st.integers(-1, 3), max_size=3).map(tuple).filter(
    lambda s: s.count(-1) < 2
)


@given(SHAPES, SHAPES)
def test_common_shape_is_commutative_and_wider(
    first: tuple[int, ...] | None, second: tuple[int, ...] | None
) -> None:
    joined = common_shape(first, second)
    assert joined == common_shape(second, first)
    assert common_shape(first, first) == first
    if joined is not None and first is not None:
        assert len(joined) == len(first)
        assert all(a in (-1, b) for a, b in zip(joined, first, strict=True))


def test_updated_and_place() -> None:
    schema = Schema({"a": "float"}).updated({"b": Feature("int64", place="list")})
    assert schema.sequence
    assert not schema.select(["a"]).sequence

"""Rows to payloads: golden bytes, protobuf as the judge, and what a schema demands."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.payloads import protobuf_classes
from tests.examples.helpers import parse, payloads, put
from tfrio.errors import EncodeError, MissingFeatureError
from tfrio.examples.columns import Ragged
from tfrio.examples.decode import read
from tfrio.examples.encode import encode_example, encode_sequence, is_nested
from tfrio.examples.schema import Feature
from tfrio.examples.writer import Writer


def test_golden_example() -> None:
    assert encode_example({"a": 1}).hex() == "0a0c0a0a0a016112051a030a0101"
    assert encode_example({}).hex() in ("", "0a00")
    three = [-1, -(1 << 63), (1 << 63) - 1]
    assert encode_example({"x": three}).hex() == (
        "0a280a260a017812211a1f0a1dffffffffffffffffff0180808080808080808001ffffffffffffffff7f"
    )
    assert encode_example({"x": [3, 270, 86942]}).hex() == "0a110a0f0a0178120a1a080a06038e029ea705"


def test_golden_sequence() -> None:
    payload = encode_sequence(
        {"n": [3]},
        {"tok": [[0, 1], [], [2, 3, 4]], "img": [[b"\xff\xd8"], [b""], [b"ab"]]},
    )
    assert payload.hex() == (
        "0a0c0a0a0a016e12051a030a0103123d0a1d0a03696d6712160a060a040a02ffd80a040a020a000a060a040a"
        "0261620a1c0a03746f6b12150a061a040a0200010a021a000a071a050a03020304"
    )


def test_the_order_of_keys_can_be_kept() -> None:
    assert encode_example({"b": 1, "a": 2}, sort=False) != encode_example({"a": 2, "b": 1})
    payload = encode_sequence(
        {"n": [3]},
        {"tok": [[0, 1], [], [2, 3, 4]], "img": [[b"\xff\xd8"], [b""], [b"ab"]]},
        sort=False,
    )
    assert payload.hex() == (
        "0a0c0a0a0a016e12051a030a0103123d0a1c0a03746f6b12150a061a040a0200010a021a000a071a050a0302"
        "03040a1d0a03696d6712160a060a040a02ffd80a040a020a000a060a040a026162"
    )


def test_the_order_of_keys_does_not_change_the_bytes() -> None:
    assert encode_example({"b": 1, "a": 2}) == encode_example({"a": 2, "b": 1})


def test_equal_sequences_are_equal_bytes_in_every_way_of_writing(tmp_path: Path) -> None:
    golden = (
        "0a180a0a0a016112051a030a01010a0a0a016e12051a030a010312290a100a0361626312090a071a050a0302"
        "03040a150a03746f6b120e0a051a030a01000a051a030a0101"
    )
    context = {"n": [3], "a": [1]}
    lists = {"tok": [[0], [1]], "abc": [[2, 3, 4]]}
    made = encode_sequence(context, lists)
    message = protobuf_classes()[1].FromString(made)
    assert message.SerializeToString(deterministic=True) == made
    turned = {k: dict(reversed(v.items())) for k, v in (("c", context), ("l", lists))}
    assert encode_sequence(turned["c"], turned["l"]) == made
    with Writer(tmp_path / "a", sequence=True) as writer:
        writer.write_sequence(context, lists)
        writer.write_sequence(turned["c"], turned["l"])
        writer.write({**turned["l"], **turned["c"]})
        writer.write_batch(
            {
                "tok": Ragged(Ragged(np.array([0, 1]), np.array([0, 1, 2])), np.array([0, 2])),
                "n": np.array([[3]]),
                "abc": Ragged(Ragged(np.array([2, 3, 4]), np.array([0, 3])), np.array([0, 1])),
                "a": np.array([[1]]),
            }
        )
    assert payloads(tmp_path / "a") == [made] * 4
    assert made.hex() == golden


ROWS = st.dictionaries(
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=4)
    | st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=4)
    | st.lists(st.binary(max_size=9), min_size=1, max_size=4),
    max_size=5,
)


@given(ROWS)
def test_protobuf_reads_what_was_written_and_would_write_the_same(row: dict) -> None:
    payload = encode_example(row)
    assert {name: values for name, (_, values) in parse(payload).items()} == row
    message = protobuf_classes()[0].FromString(payload)
    # The Python package leaves an empty key out, and puts a key before those that begin it.
    names = sorted(name.encode() for name in row)
    if row and not any(b.startswith(a) for a, b in pairwise(names)) and names[0]:
        assert message.SerializeToString(deterministic=True) == payload


@given(
    ROWS,
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=4),
        st.lists(st.lists(st.integers(-5, 300), max_size=3), min_size=1, max_size=4).filter(any),
        max_size=3,
    ),
)
def test_protobuf_reads_sequences(context: dict, lists: dict) -> None:
    message = protobuf_classes()[1].FromString(encode_sequence(context, lists))
    found = {
        name: [list(step.int64_list.value) for step in value.feature]
        for name, value in message.feature_lists.feature_list.items()
    }
    assert found == lists


def test_none_leaves_the_feature_out() -> None:
    assert parse(encode_example({"a": 1, "b": None})) == {"a": ("int64_list", [1])}


def test_a_null_column_under_a_schema_is_an_empty_list_of_its_kind() -> None:
    schema = {"x": Feature("float")}
    assert encode_example({"x": None}, schema=schema).hex() == "0a090a070a017812021200"
    optional = {"x": Feature("float", required=False)}
    assert parse(encode_example({"x": None}, schema=optional)) == {}
    with pytest.raises(MissingFeatureError, match="'x' is required"):
        encode_example({"x": None}, schema={"x": Feature("float", ())})


def test_a_schema_says_what_must_be_there_and_nothing_else_may() -> None:
    schema = {"x": Feature("float", ()), "y": Feature("int64", required=False)}
    assert parse(encode_example({"x": 1}, schema=schema)) == {"x": ("float_list", [1.0])}
    with pytest.raises(MissingFeatureError, match="'x' is required by the schema and missing"):
        encode_example({"y": 1}, schema=schema)
    with pytest.raises(EncodeError, match=r"'z' is not in the schema, which has \['x', 'y'\]"):
        encode_example({"x": 1, "z": 2}, schema=schema)
    with pytest.raises(EncodeError, match="is int64 and 2.5 is no whole number"):
        encode_example({"x": 1, "y": 2.5}, schema=schema)


@pytest.mark.parametrize(
    ("shape", "value", "good"),
    [
        ((), 1.0, True),
        ((), [1.0], True),
        ((), [1.0, 2.0], False),
        ((1,), 1.0, True),
        ((2,), [1.0, 2.0], True),
        ((2,), [1.0], False),
        ((2, 3), np.zeros((2, 3)), True),
        ((2, 3), np.zeros((3, 2)), False),
        ((2, 3), np.zeros(6), True),
        ((2, 3), np.zeros(5), False),
        ((-1, 4), np.zeros((3, 4)), True),
        ((-1, 4), np.zeros((4, 3)), False),
        ((-1, 4), np.zeros(8), True),
        ((-1, 4), np.zeros(6), False),
        (None, np.zeros((2, 5)), True),
    ],
)
def test_shapes_under_a_schema(shape: tuple | None, value: object, good: bool) -> None:
    schema = {"x": Feature("float", shape)}
    if good:
        assert encode_example({"x": value}, schema=schema)
        return
    with pytest.raises(EncodeError, match="the schema says"):
        encode_example({"x": value}, schema=schema)


def test_an_empty_list_without_a_kind_is_refused_with_the_remedy() -> None:
    with pytest.raises(EncodeError, match="an empty list has no kind; give an empty array"):
        encode_example({"x": []})
    assert parse(encode_example({"x": np.array([], np.float32)})) == {"x": ("float_list", [])}


def test_a_strict_writer_refuses_what_float32_changes() -> None:
    with pytest.raises(EncodeError, match="1e.39 becomes inf as float32"):
        encode_example({"x": 1e39}, strict=True)


def test_arrays_as_bytes_come_back_with_type_shape_and_byte_order(tmp_path: Path) -> None:
    array = np.arange(12, dtype=np.uint16).reshape(3, 4)
    for order in ("little", "big"):
        schema = {"a": Feature("bytes", (3, 4), codec="raw", dtype="uint16", byte_order=order)}  # type: ignore[arg-type]
        payload = encode_example({"a": array.T.copy().T}, schema=schema)
        assert parse(payload)["a"][1] == [
            array.astype(">u2" if order == "big" else "<u2").tobytes()
        ]
        (row,) = read(put(tmp_path / order, payload), schema=schema)
        assert row["a"].dtype == np.uint16
        assert row["a"].tolist() == array.tolist()
    with pytest.raises(EncodeError, match=r"shape \(4, 3\) is not the schema's \(3, 4\)"):
        encode_example({"a": array.T}, schema=schema)
    with pytest.raises(EncodeError, match="do not fit dtype uint16 unchanged"):
        encode_example({"a": np.full((3, 4), 70_000)}, schema=schema)


@pytest.mark.parametrize("codec", ["raw", "zlib", "tensor"])
def test_codecs_round_trip_in_lists_too(codec: str, tmp_path: Path) -> None:
    schema = {"a": Feature("bytes", (2, 3), codec=codec, dtype="int16", many=True)}  # type: ignore[arg-type]
    arrays = [np.arange(6, dtype=np.int16).reshape(2, 3) * k for k in (1, -3)]
    path = put(tmp_path / "a", encode_example({"a": arrays}, schema=schema))
    (row,) = read(path, schema=schema)
    assert np.array(row["a"]).tolist() == np.array(arrays).tolist()


def test_named_axes_are_written_with_the_array(tmp_path: Path) -> None:
    schema = {
        "px": Feature("bytes", ("height", "width", 2), codec="raw", dtype="uint8"),
        "height": Feature("int64", ()),
        "width": Feature("int64", ()),
    }
    array = np.arange(30, dtype=np.uint8).reshape(5, 3, 2)
    payload = encode_example({"px": array}, schema=schema)
    assert parse(payload)["height"] == ("int64_list", [5])
    assert parse(payload)["width"] == ("int64_list", [3])
    (row,) = read(put(tmp_path / "a", payload), schema=schema)
    assert (row["px"] == array).all()
    with pytest.raises(EncodeError, match="axis 'height' is 5 long, the row says 4"):
        encode_example({"px": array, "height": 4}, schema=schema)


def test_nested_lists_under_a_schema_round_trip(tmp_path: Path) -> None:
    schema = {"k": Feature("int64", name="k/flat", row_lengths=("k/outer", "k/inner"))}
    value = [[[1, 2], [3]], [], [[4, 5, 6]]]
    payload = encode_example({"k": value}, schema=schema)
    assert parse(payload) == {
        "k/flat": ("int64_list", [1, 2, 3, 4, 5, 6]),
        "k/outer": ("int64_list", [2, 0, 1]),
        "k/inner": ("int64_list", [2, 1, 3]),
    }
    (row,) = read(put(tmp_path / "a", payload), schema=schema)
    assert [[inner.tolist() for inner in outer] for outer in row["k"]] == value


def test_steps_of_sequences() -> None:
    schema = {"obs": Feature("float", (2,), place="list"), "id": Feature("int64", ())}
    payload = encode_sequence({"id": 7}, {"obs": np.arange(6).reshape(3, 2)}, schema=schema)
    message = protobuf_classes()[1].FromString(payload)
    steps = message.feature_lists.feature_list["obs"].feature
    assert [list(s.float_list.value) for s in steps] == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(EncodeError, match=r"3 values of shape \(3,\).*step 1"):
        encode_sequence({"id": 7}, {"obs": [[1, 2], [1, 2, 3]]}, schema=schema)
    with pytest.raises(EncodeError, match="mixes"):
        encode_sequence({}, {"obs": [[1], [b"a"]]})


def test_is_nested() -> None:
    assert is_nested([[1], [2]])
    assert is_nested([np.arange(2)])
    assert is_nested(np.zeros((2, 2)))
    assert not is_nested([1, 2])
    assert not is_nested([b"a"])
    assert not is_nested("text")
    assert not is_nested(np.zeros(2))
    assert not is_nested([])

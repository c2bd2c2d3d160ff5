"""Reading by a schema: absent features, defaults, shapes, kinds and types."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.examples.helpers import KINDLESS, Empty, example, one_batch, put
from tfrio.errors import (
    DecodeError,
    FeatureKindError,
    MissingFeatureError,
    SchemaError,
)
from tfrio.examples.decode import read
from tfrio.examples.schema import Feature

# --- absent, empty, kindless ----------------------------------------------------------------------


def test_a_null_in_one_record_breaks_neither_schema_nor_reading(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a.tfrecord",
        example({"a": [1]}),
        example({"a": KINDLESS}),
        example({"b": [b"x"]}),
    )
    schema = {
        "a": Feature("int64", (), required=False),
        "b": Feature("bytes", (), required=False),
    }
    rows = list(read(path, schema=schema))
    assert rows == [{"a": 1, "b": None}, {"a": None, "b": None}, {"a": None, "b": b"x"}]
    batch = one_batch(path, schema)
    assert batch.present["a"].tolist() == [True, False, False]


def test_a_missing_feature_names_itself_the_record_the_file_and_what_is_there(
    tmp_path: Path,
) -> None:
    path = put(
        tmp_path / "a.tfrecord", example({"x": [1]}), example({"x": [2]}), example({"y": [3]})
    )
    with pytest.raises(MissingFeatureError) as caught:
        list(read(path, schema={"x": Feature("int64", ())}))
    error = caught.value
    assert str(error).startswith(
        f"feature 'x' missing in record 2 of {path}; present: ['y']; give a default"
    )
    assert (error.path, error.record, error.feature) == (path, 2, "x")
    assert isinstance(error, KeyError)
    given = read(path, schema={"x": Feature("int64", (), default=-1)})
    assert [row["x"] for row in given] == [1, 2, -1]
    optional = read(path, schema={"x": Feature("int64", (), required=False)})
    assert [row["x"] for row in optional] == [1, 2, None]


@pytest.mark.parametrize(
    ("feature", "default"),
    [
        (Feature("int64", (), default=0), 0),
        (Feature("float", (), default=0.0), 0.0),
        (Feature("bytes", (), default=b""), b""),
        (Feature("int64", (), dtype="bool", default=False), False),
        (Feature("bytes", (), dtype="str", default="none"), "none"),
    ],
)
def test_a_default_of_zero_is_a_default(feature: Feature, default: object, tmp_path: Path) -> None:
    path = put(tmp_path / "a.tfrecord", example({"y": [1]}))
    (row,) = read(path, schema={"x": feature})
    assert row["x"] == default
    assert row["x"] is not None


def test_defaults_fill_shapes_and_lists(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a.tfrecord",
        example({"f": [1.0, 2.0], "r": [5, 6, 7], "b": [b"a", b"b"], "n": [b"z"]}),
        example({"other": [1]}),
        example({"f": [3.0, 4.0], "r": Empty("int64_list"), "b": [b"c"], "n": [b"y"]}),
    )
    batch = one_batch(
        path,
        {
            "f": Feature("float", (2,), default=-9.0),
            "r": Feature("int64", default=(1, 2)),
            "b": Feature("bytes", default=(b"q",)),
            "n": Feature("bytes", (1,), default=b"d"),
        },
    )
    assert batch["f"].tolist() == [[1, 2], [-9, -9], [3, 4]]
    assert batch["r"].tolist() == [[5, 6, 7], [1, 2], []]
    assert batch["b"].tolist() == [[b"a", b"b"], [b"q"], [b"c"]]
    assert batch["n"].tolist() == [[b"z"], [b"d"], [b"y"]]
    assert batch.present["f"].tolist() == [True, False, True]


# --- shapes ---------------------------------------------------------------------------------------


def test_shape_of_no_axis_and_of_one_are_kept_apart(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tfrecord", example({"x": [1.5]}), example({"x": [2.5]}))
    scalar = one_batch(path, {"x": Feature("float", ())})["x"]
    assert scalar.shape == (2,)
    assert one_batch(path, {"x": Feature("float", (1,))})["x"].shape == (2, 1)
    (row, _) = read(path, schema={"x": Feature("float", ())})
    assert isinstance(row["x"], np.float32)
    (row, _) = read(path, schema={"x": Feature("float", (1,))})
    assert row["x"].shape == (1,)


def test_boxes_of_zero_one_and_three_values(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a.tfrecord",
        example({"xmin": Empty("float_list")}),
        example({"xmin": [0.5]}),
        example({"xmin": [0.1, 0.2, 0.3]}),
    )
    column = one_batch(path, {"xmin": Feature("float")})["xmin"]
    assert column.offsets.tolist() == [0, 0, 1, 4]
    assert column.padded(-1).shape == (3, 3)
    with pytest.raises(SchemaError, match="feature 'xmin': 0 values, expected 2, record 0"):
        one_batch(path, {"xmin": Feature("float", (2,))})
    third = put(
        tmp_path / "b.tfrecord", *[example({"xmin": [1.0, 2.0]})] * 2, example({"xmin": [1.0] * 3})
    )
    with pytest.raises(SchemaError, match="feature 'xmin': 3 values, expected 2, record 2"):
        one_batch(third, {"xmin": Feature("float", (2,))})


def test_values_that_cannot_form_the_shape_say_what_they_can_form(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tfrecord", example({"x": [float(i) for i in range(12)]}))
    with pytest.raises(
        SchemaError, match="12 values cannot form \\(2,5\\); 12 = 3\u00d74, 2\u00d76, 1\u00d712"
    ):
        one_batch(path, {"x": Feature("float", (2, 5))})
    column = one_batch(path, {"x": Feature("float", (-1, 4))})["x"]
    assert column[0].shape == (3, 4)
    assert column[0][1].tolist() == [4, 5, 6, 7]
    with pytest.raises(SchemaError, match=r"12 values cannot form \(-1,5\).*record 0"):
        one_batch(path, {"x": Feature("float", (-1, 5))})
    (row,) = read(path, schema={"x": Feature("float", (3, 4))})
    assert row["x"].shape == (3, 4)


def test_axes_taken_from_other_features(tmp_path: Path) -> None:
    pixels = [bytes(range(2 * 3)), bytes(range(4 * 1))]
    path = put(
        tmp_path / "a.tfrecord",
        example({"px": [pixels[0]], "h": [2], "w": [3]}),
        example({"px": [pixels[1]], "h": [4], "w": [1]}),
    )
    schema = {"px": Feature("bytes", ("h", "w", 1), codec="raw", dtype="uint8")}
    arrays = one_batch(path, schema)["px"]
    assert [a.shape for a in arrays] == [(2, 3, 1), (4, 1, 1)]
    assert arrays[0][1, 0, 0] == 3
    wrong = put(tmp_path / "b.tfrecord", example({"px": [b"12345"], "h": [2], "w": [3]}))
    with pytest.raises(SchemaError, match=r"5 values cannot form \(2,3,1\).*record 0"):
        one_batch(wrong, schema)
    lacking = put(tmp_path / "c.tfrecord", example({"px": [b"123456"], "h": [2]}))
    with pytest.raises(SchemaError, match="axis from 'w'"):
        one_batch(lacking, schema)


# --- kinds and types ------------------------------------------------------------------------------


def test_another_kind_than_asked_says_what_to_declare(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tfrecord", example({"x": [1.0, 2.0, 3.0]}))
    with pytest.raises(FeatureKindError) as caught:
        one_batch(path, {"x": Feature("bytes")})
    assert "feature 'x' is float_list (3 values) but bytes was asked" in str(caught.value)
    assert f"record 0 of {path}; declare float" in str(caught.value)
    assert isinstance(caught.value, TypeError)
    with pytest.raises(FeatureKindError, match="int64 was asked"):
        one_batch(path, {"x": Feature("int64")})


def test_output_types_are_cast_exactly_or_not_at_all(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tfrecord", example({"i": [1, 0, 200]}), example({"i": [0, 1, 70_000]}))
    assert one_batch(path, {"i": Feature("int64", (3,), dtype="int32")})["i"].dtype == np.int32
    with pytest.raises(SchemaError, match="70000 does not fit uint16, record 1"):
        one_batch(path, {"i": Feature("int64", (3,), dtype="uint16")})
    with pytest.raises(SchemaError, match="70000 does not fit int16, record 1"):
        one_batch(path, {"i": Feature("int64", dtype="int16")})
    with pytest.raises(SchemaError, match="200 does not fit bool, record 0"):
        one_batch(path, {"i": Feature("int64", dtype="bool")})
    floats = put(tmp_path / "f.tfrecord", example({"f": [1.5, 1e30, float("inf")]}))
    assert (
        one_batch(floats, {"f": Feature("float", dtype="float64")})["f"].values.dtype == np.float64
    )
    with pytest.raises(SchemaError, match="-1 does not fit uint64"):
        list(
            read(
                put(tmp_path / "u", example({"x": [5, -1]})),
                schema={"x": Feature("int64", dtype="uint64")},
            )
        )
    with pytest.raises(SchemaError, match="does not fit float16"):
        one_batch(floats, {"f": Feature("float", dtype="float16")})


@pytest.mark.parametrize(
    ("value", "dtype", "fits"),
    [
        (1 << 40, "float16", False),
        (70_000, "float16", False),
        (2048, "float16", True),
        ((1 << 24) + 1, "float32", False),
        (-(1 << 63), "float32", True),
        ((1 << 53) + 1, "float64", False),
        ((1 << 63) - 1, "float64", False),
    ],
)
def test_an_integer_becomes_a_float_exactly_or_not_at_all(
    value: int, dtype: str, fits: bool, tmp_path: Path
) -> None:
    path = put(tmp_path / "a.tfrecord", example({"i": [value]}))
    schema = {"i": Feature("int64", (), dtype=dtype)}
    if fits:
        assert int(one_batch(path, schema)["i"][0]) == value
        return
    with pytest.raises(SchemaError, match=f"{value} does not fit {dtype}, record 0"):
        one_batch(path, schema)


def test_text_is_bytes_unless_asked_and_bad_text_is_named(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a.tfrecord", example({"t": ["héllo".encode()]}), example({"t": [b"\xff"]})
    )
    assert next(read(path))["t"] == bytes.fromhex("68c3a96c6c6f")
    with pytest.raises(DecodeError, match=r"feature 't' is no UTF-8 text .*record 1 of"):
        list(read(path, schema={"t": Feature("bytes", (), dtype="str")}))
    good = put(tmp_path / "b.tfrecord", example({"t": ["héllo".encode()]}))
    assert list(read(good, schema={"t": Feature("bytes", (), dtype="str")})) == [{"t": "héllo"}]
    assert list(read(good, schema={"t": Feature("bytes", dtype="str")})) == [{"t": ["héllo"]}]

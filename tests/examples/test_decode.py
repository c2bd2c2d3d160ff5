"""Reading rows and batches: what users hit, one test a symptom."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.helpers import KINDLESS, Empty, example, put, sequence
from tfrio import _core
from tfrio.errors import (
    CorruptRecordError,
    DecodeError,
    FeatureKindError,
    MissingFeatureError,
    NotTFRecordError,
    SchemaError,
    TfrioWarning,
    UsageError,
)
from tfrio.examples.columns import BytesColumn, Ragged
from tfrio.examples.decode import read, read_batches
from tfrio.examples.schema import Feature


def one_batch(path: str, schema: dict[str, Feature], **options: object) -> dict:
    (batch,) = read_batches(path, 100, schema=schema, **options)  # type: ignore[arg-type]
    return batch


# --- the wire's oddities (from the bytes, nothing of ours has made them) --------------------------

ODD = {
    "neg": (
        "0a280a260a017812211a1f0a1dffffffffffffffffff0180808080808080808001ffffffffffffffff7f",
        {"x": [-1, -(1 << 63), (1 << 63) - 1]},
    ),
    "unpacked": (
        "0a2b0a160a017812111a0f080308fcffffffffffffffff0108050a110a0179120c120a0d0000c03f0d000000c0",
        {"x": [3, -4, 5], "y": [1.5, -2.0]},
    ),
    "packed, single, packed": ("0a120a100a0178120b1a090a02010208030a0104", {"x": [1, 2, 3, 4]}),
    "no kind": ("0a130a050a017812000a0a0a017912051a030a0107", {"y": [7]}),
    "empty int list": ("0a150a070a017812021a000a0a0a017912051a030a0107", {"x": [], "y": [7]}),
    "repeated key, last wins": ("0a180a0a0a017812051a030a01010a0a0a017812051a030a0102", {"x": [2]}),
    "value before key": ("0a0c0a0a12051a030a01090a0178", {"x": [9]}),
    "unknown fields": ("0a0c0a0a0a017812051a030a01057a06667574757265704d", {"x": [5]}),
    "last of the oneof": ("0a140a120a0178120d12060a040000803f1a030a0102", {"x": [2]}),
    "no body": ("", {}),
    "empty features": ("0a00", {}),
    "varints of 1, 2, 3 bytes": ("0a110a0f0a0178120a1a080a06038e029ea705", {"x": [3, 270, 86942]}),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_but_valid_payloads_read_as_protobuf_reads_them(name: str, tmp_path: Path) -> None:
    payload, expected = ODD[name]
    path = put(tmp_path / "a.tfrecord", bytes.fromhex(payload))
    (row,) = read(path)
    assert {k: v.tolist() for k, v in row.items()} == expected


def test_negative_numbers_stay_int64(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tfrecord", example({"x": [2**40, -1]}))
    (row,) = read(path)
    assert row["x"].dtype == np.int64
    assert row["x"].tolist() == [1099511627776, -1]


def test_a_name_that_is_no_utf8_is_refused_by_default_and_survives_on_request(
    tmp_path: Path,
) -> None:
    payload = bytes.fromhex("0a0d0a0b0a02fffe12051a030a0105")
    path = put(tmp_path / "a.tfrecord", payload)
    with pytest.raises(DecodeError, match="not UTF-8"):
        list(read(path))
    (row,) = read(path, utf8="surrogateescape")
    assert {k.encode("utf-8", "surrogateescape"): v.tolist() for k, v in row.items()} == {
        b"\xff\xfe": [5]
    }


# --- rows without a schema ------------------------------------------------------------------------


def test_rows_without_a_schema_follow_one_rule(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a.tfrecord",
        example({"f": [1.5], "i": [1, 2], "one": [b"a\x00"], "two": [b"a", b"\x00\x00"]}),
        example({"f": [1.5, 2.5], "one": [b"b", b"c"], "none": Empty("bytes_list")}),
    )
    first, second = read(path)
    assert first["f"].dtype == np.float32
    assert first["f"].tolist() == [1.5]
    assert first["i"].tolist() == [1, 2]
    assert first["one"] == b"a\x00"
    assert first["two"] == [b"a", b"\x00\x00"]
    assert "none" not in first
    assert second["f"].tolist() == [1.5, 2.5]
    assert "i" not in second
    assert second["one"] == [b"b", b"c"]
    assert second["none"] == []


def test_every_byte_value_comes_back_as_bytes(tmp_path: Path) -> None:
    value = bytes(range(256))
    (row,) = read(put(tmp_path / "a.tfrecord", example({"b": [value]})))
    assert type(row["b"]) is bytes
    assert row["b"] == value


def test_rows_are_not_overwritten_by_later_ones(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tfrecord", *(example({"x": [float(i)] * 50}) for i in range(5000)))
    rows = list(read(path))
    assert [row["x"][7] for row in rows] == list(range(5000))


def test_a_feature_may_change_its_kind_from_row_to_row(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a.tfrecord", example({"x": [1]}), example({"x": [b"a"]}), example({"x": [2.5]})
    )
    rows = list(read(path))
    assert [r["x"] if isinstance(r["x"], bytes) else r["x"].tolist() for r in rows] == [
        [1],
        b"a",
        [2.5],
    ]


def test_only_the_features_asked_for_are_read(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tfrecord", example({"x": [1], "y": [2], "z": [3]}))
    assert list(next(read(path, features=["z", "x"]))) == ["z", "x"]
    with pytest.raises(MissingFeatureError, match=r"no feature 'q' .*present: \['x', 'y', 'z'\]"):
        list(read(path, features=["q"]))
    with pytest.raises(UsageError, match=r"write \['x'\]"):
        list(read(path, features="x"))


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
    assert batch.present["a"].tolist() == [True, False, False]  # type: ignore[attr-defined]


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
    assert batch.present["f"].tolist() == [True, False, True]  # type: ignore[attr-defined]


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


# --- batches without a schema ---------------------------------------------------------------------


def test_a_second_value_in_record_1000_makes_the_column_ragged(tmp_path: Path) -> None:
    ones = [example({"tags": [b"a"], "n": [i]}) for i in range(1000)]
    path = put(tmp_path / "a.tfrecord", *ones, example({"tags": [b"b", b"c"], "n": [1000]}))
    with pytest.warns(TfrioWarning, match="feature 'tags' has 2 values.*record 1000 of") as caught:
        batches = list(read_batches(path, 300))
    assert len(caught) == 1
    assert isinstance(batches[0]["tags"], BytesColumn)
    assert isinstance(batches[3]["tags"], Ragged)
    assert batches[3].rows == 101
    assert batches[3]["tags"].tolist() == [[b"a"]] * 100 + [[b"b", b"c"]]
    assert np.concatenate([b["n"] for b in batches]).ravel().tolist() == list(range(1001))


def test_a_feature_that_appears_late_is_absent_before(tmp_path: Path) -> None:
    first = [example({"a": [float(i)]}) for i in range(1000)]
    late = [example({"a": [0.5], "new": [7, 8]})] * 2
    path = put(tmp_path / "a.tfrecord", *first, *late)
    with pytest.warns(TfrioWarning, match="feature 'new' appears for the first time.*record 1000"):
        (batch,) = read_batches(path, 2000)
    assert batch.present["new"].tolist() == [False] * 1000 + [True] * 2
    assert batch["new"].shape == (1002, 2)
    assert batch["new"][1001].tolist() == [7, 8]


def test_two_kinds_of_one_feature_cannot_be_one_column(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tfrecord", example({"x": [1]}), example({"x": [0.5]}))
    with pytest.raises(FeatureKindError, match="'x' is int64 from record 0 .* float in record 1"):
        list(read_batches(path, 10))


def test_the_kind_of_a_feature_without_values_comes_with_its_first_value(tmp_path: Path) -> None:
    empty = [example({"x": KINDLESS, "y": [1]})] * 1000
    path = put(tmp_path / "a.tfrecord", *empty, example({"x": [4], "y": [1]}))
    with pytest.warns(TfrioWarning, match="'x' has values for the first time"):
        (batch,) = read_batches(path, 2000)
    assert batch["x"][1000].tolist() == [4]
    assert batch.present["x"].sum() == 1


def test_batches_run_over_the_ends_of_files(tmp_path: Path) -> None:
    for k in range(3):
        put(tmp_path / f"p-{k}.tfrecord", *(example({"id": [10 * k + i]}) for i in range(7)))
    batches = list(read_batches(str(tmp_path / "p-*.tfrecord"), 5))
    assert [b.rows for b in batches] == [5, 5, 5, 5, 1]
    ids = np.concatenate([b["id"] for b in batches]).ravel()
    assert ids.tolist() == [10 * k + i for k in range(3) for i in range(7)]
    assert [b.rows for b in read_batches(str(tmp_path), 5, drop_last=True)] == [5] * 4
    with pytest.raises(UsageError, match="at least 1"):
        next(read_batches(str(tmp_path), 0))


def test_an_error_in_the_second_file_names_its_record_there(tmp_path: Path) -> None:
    put(tmp_path / "p-0.tfrecord", *[example({"x": [1]})] * 3)
    second = put(tmp_path / "p-1.tfrecord", example({"x": [1]}), example({"z": [1]}))
    with pytest.raises(MissingFeatureError) as caught:
        list(read_batches(str(tmp_path), 100, schema={"x": Feature("int64", ())}))
    assert (caught.value.path, caught.value.record) == (second, 1)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["a", "b", "c"]),
            st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=3)
            | st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=3)
            | st.lists(st.binary(max_size=5), min_size=1, max_size=3),
            max_size=3,
        ),
        max_size=12,
    ),
    st.integers(1, 5),
)
def test_rows_equal_protobuf_whatever_the_records_hold(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict], size: int
) -> None:
    payloads = [example({k: v or Empty("int64_list") for k, v in row.items()}) for row in rows]
    path = put(tmp_path_factory.mktemp("rows") / "a.tfrecord", *payloads)
    found = [{k: _plain(v) for k, v in row.items()} for row in read(path)]
    assert found == [
        {k: v if len(v) != 1 or not isinstance(v[0], bytes) else v[0] for k, v in row.items()}
        for row in rows
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            batches = list(read_batches(path, size))
        except FeatureKindError:
            return
    assert sum(b.rows for b in batches) == len(rows)
    for i, row in enumerate(rows):
        batch = batches[i // size]
        for key in batch:
            assert bool(batch.present[key][i % size]) == (key in row)
            if key in row:
                assert _plain(batch[key][i % size]) in (row[key], row[key][0:1] and row[key][0])


def _plain(value: object) -> object:
    return value if isinstance(value, bytes | list) else value.tolist()  # type: ignore[attr-defined]


# --- sequences ------------------------------------------------------------------------------------


def test_sequence_examples_are_read_with_empty_steps_kept(tmp_path: Path) -> None:
    payload = sequence(
        {"n": [3]},
        {
            "tok": [[0, 1], Empty("int64_list"), [2, 3, 4]],
            "img": [[b"\xff\xd8"], [b""], [b"ab"]],
        },
    )
    path = put(tmp_path / "a.tfrecord", payload)
    (row,) = read(path)
    assert row["n"].tolist() == [3]
    assert [step.tolist() for step in row["tok"]] == [[0, 1], [], [2, 3, 4]]
    assert row["img"] == [[b"\xff\xd8"], [b""], [b"ab"]]
    (batch,) = read_batches(path, 10)
    assert batch["tok"].tolist() == [[[0, 1], [], [2, 3, 4]]]
    assert batch["img"].tolist() == [[[b"\xff\xd8"], [b""], [b"ab"]]]


def test_steps_of_fixed_length_and_any_number_of_them(tmp_path: Path) -> None:
    def steps(n: int, width: int = 4) -> list[list[float]]:
        return [[float(width * i + k) for k in range(width)] for i in range(n)]

    path = put(
        tmp_path / "a.tfrecord", sequence({}, {"obs": steps(3)}), sequence({}, {"obs": steps(5)})
    )
    schema = {"obs": Feature("float", (4,), place="list")}
    first, second = read(path, schema=schema)
    assert first["obs"].shape == (3, 4)
    assert second["obs"][4].tolist() == [16, 17, 18, 19]
    column = one_batch(path, schema)["obs"]
    assert column.padded().shape == (2, 5, 4)
    assert column.lengths.tolist() == [3, 5]
    wrong = put(tmp_path / "b.tfrecord", sequence({}, {"obs": [[0.0] * 4, [0.0] * 5]}))
    with pytest.raises(SchemaError, match="feature 'obs': 5 values, expected 4, record 0, step 1"):
        one_batch(wrong, schema)


def test_one_name_in_context_and_list_keeps_both(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tfrecord", sequence({"x": [1]}, {"x": [[2], [3]]}))
    (row,) = read(path)
    assert row["context/x"].tolist() == [1]
    assert [s.tolist() for s in row["x"]] == [[2], [3]]


def test_a_schema_without_lists_warns_when_a_file_has_them(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tfrecord", sequence({"n": [1]}, {"tok": [[1]]}))
    with pytest.warns(TfrioWarning, match="feature lists are left out"):
        rows = list(read(path, schema={"n": Feature("int64", ())}))
    assert rows == [{"n": 1}]


def test_text_and_arrays_in_steps(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a.tfrecord",
        sequence({}, {"w": [[b"ab"], [b"c"]], "px": [[b"\x01\x02"], [b"\x03\x04"]]}),
    )
    (row,) = read(
        path,
        schema={
            "w": Feature("bytes", (), dtype="str", place="list"),
            "px": Feature("bytes", (2,), codec="raw", dtype="uint8", place="list"),
        },
    )
    assert row["w"] == ["ab", "c"]
    assert row["px"].tolist() == [[1, 2], [3, 4]]


# --- nested rows of TensorFlow Datasets -----------------------------------------------------------


def test_nested_lists_cut_by_row_lengths(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a.tfrecord",
        example({"k/ragged_flat_values": [1, 2, 3, 4, 5, 6], "k/ragged_row_lengths_0": [2, 1, 3]}),
        example(
            {"k/ragged_flat_values": [7], "k/ragged_row_lengths_0": [0, 1]},
        ),
    )
    schema = {
        "k": Feature("int64", name="k/ragged_flat_values", row_lengths=("k/ragged_row_lengths_0",))
    }
    rows = [[inner.tolist() for inner in row["k"]] for row in read(path, schema=schema)]
    assert rows == [[[1, 2], [3], [4, 5, 6]], [[], [7]]]
    assert one_batch(path, schema)["k"].tolist() == rows
    wrong = put(
        tmp_path / "b.tfrecord",
        example({"k/ragged_flat_values": [1, 2], "k/ragged_row_lengths_0": [2, 1]}),
    )
    with pytest.raises(SchemaError, match="do not add up to its 2 values, record 0"):
        list(read(wrong, schema=schema))


# --- output buffers -------------------------------------------------------------------------------


def test_decoding_into_arrays_of_the_caller(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a.tfrecord", *(example({"x": [float(i)] * 6, "y": [i]}) for i in range(7))
    )
    schema = {"x": Feature("float", (2, 3)), "y": Feature("int64", ())}
    out = {"x": np.full((3, 2, 3), -1, np.float32)}
    seen = []
    for batch in read_batches(path, 3, schema=schema, out=out):
        assert np.shares_memory(batch["x"], out["x"])
        assert not np.shares_memory(batch["y"], out["x"])
        seen.append(batch["x"].copy())
    assert [s.shape for s in seen] == [(3, 2, 3), (3, 2, 3), (1, 2, 3)]
    assert np.concatenate(seen)[:, 1, 2].tolist() == list(range(7))


# --- damage and strangers -------------------------------------------------------------------------


def test_skipping_damage_in_rows_and_batches(tmp_path: Path) -> None:
    data = bytearray(_core.frame([example({"id": [k], "v": [k + 0.5]}) for k in (10, 20, 30)]))
    data[46 + 12 + 3] ^= 0x40
    path = tmp_path / "flip.tfrecord"
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError) as caught:
        list(read(str(path)))
    assert (caught.value.record, caught.value.offset) == (1, 46)
    with pytest.warns(TfrioWarning, match="skipped 1 damaged"):
        assert [row["id"].tolist() for row in read(str(path), errors="skip")] == [[10], [30]]
    with pytest.warns(TfrioWarning, match="skipped 1 damaged"):
        (batch,) = read_batches(str(path), 10, errors="skip")
    assert batch["id"].ravel().tolist() == [10, 30]
    with pytest.raises(CorruptRecordError, match="1 bad records > max_bad 0"):
        list(read(str(path), errors="skip", max_bad=0))
    with pytest.raises(UsageError, match="'raise' or 'skip'"):
        list(read(str(path), errors="return"))  # type: ignore[arg-type]


def test_an_unreadable_payload_can_be_skipped_like_damage(tmp_path: Path) -> None:
    good = example({"x": [1]})
    path = put(tmp_path / "a.tfrecord", good, b"\x0a\x05ab", good)
    with pytest.raises(DecodeError, match="record 1"):
        list(read(path))
    with pytest.warns(TfrioWarning, match="skipped 1 damaged"):
        assert len(list(read(path, errors="skip"))) == 2


def test_payloads_that_are_no_example_are_named_with_the_way_to_read_them(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tfrecord", b"\x08\x96\x01", bytes(range(200, 250)))
    with pytest.raises(DecodeError, match="not a tf.train.Example.*tfrio.read_records"):
        list(read(path))
    with pytest.raises(DecodeError, match="not a tf.train.Example"):
        list(read_batches(path, 2))


def test_an_html_page_is_no_record_file(tmp_path: Path) -> None:
    path = tmp_path / "page.tfrecord"
    path.write_bytes(b"<!DOCTYPE html><html><body>Sign in</body></html>")
    with pytest.raises(NotTFRecordError, match="HTML"):
        list(read(str(path)))


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "empty.tfrecord"
    path.write_bytes(b"")
    assert list(read(str(path))) == []
    assert list(read_batches(str(path), 3)) == []


def test_twenty_files_of_short_and_long_records_read_alternately(tmp_path: Path) -> None:
    for k in range(20):
        big = [b"x" * (300_000 if k % 2 else 2_000)]
        put(tmp_path / f"{k:02}.tfrecord", *(example({"id": [k], "b": big}) for _ in range(3)))
    paths = sorted(map(str, tmp_path.iterdir()))
    sums = []
    for _ in range(3):
        readers = [read(p) for p in paths]
        sums.append(sum(int(row["id"][0]) for rows in zip(*readers, strict=True) for row in rows))
    assert sums == [3 * sum(range(20))] * 3

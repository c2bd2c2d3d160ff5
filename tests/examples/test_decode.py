"""Reading rows and batches: what users hit, one test a symptom."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.helpers import KINDLESS, Empty, example, put
from tfrio import _core
from tfrio.errors import (
    CorruptRecordError,
    DecodeError,
    FeatureKindError,
    MissingFeatureError,
    NotTFRecordError,
    TfrioWarning,
    UsageError,
)
from tfrio.examples.columns import BytesColumn, Ragged
from tfrio.examples.decode import read, read_batches
from tfrio.examples.schema import Feature

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
        big = [b"x" * (3_000_000 if k % 4 == 0 else 2_000)]
        put(tmp_path / f"{k:02}.tfrecord", *(example({"id": [k], "b": big}) for _ in range(3)))
    paths = sorted(map(str, tmp_path.iterdir()))
    sums = []
    for _ in range(3):
        readers = [read(p) for p in paths]
        sums.append(sum(int(row["id"][0]) for rows in zip(*readers, strict=True) for row in rows))
    assert sums == [3 * sum(range(20))] * 3

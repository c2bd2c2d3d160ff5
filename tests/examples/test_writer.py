"""Writing files: rows, batches and payloads in order, whole or not at all."""

from __future__ import annotations

import gzip
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.examples.helpers import example, parse, payloads, put
from tfrio.errors import EncodeError, UsageError
from tfrio.examples import wire
from tfrio.examples.columns import Ragged
from tfrio.examples.decode import read
from tfrio.examples.writer import Writer


def test_plain_gzip_and_zlib(tmp_path: Path) -> None:
    rows = [{"id": k, "v": k + 0.5} for k in (10, 20, 30)]
    for name, compression in (("a.tfrecord", None), ("a.gz", None), ("a.zz", "zlib")):
        with Writer(tmp_path / name, compression=compression) as writer:  # type: ignore[arg-type]
            for row in rows:
                writer.write(row)
    plain = (tmp_path / "a.tfrecord").read_bytes()
    assert len(plain) == 138
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == plain
    for name in ("a.tfrecord", "a.gz", "a.zz"):
        found = [(int(r["id"][0]), float(r["v"][0])) for r in read(tmp_path / name)]
        assert found == [(10, 10.5), (20, 20.5), (30, 30.5)]


def test_an_unknown_compression_is_no_silent_plain_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gzip"):
        Writer(tmp_path / "a", compression="gzipp")  # type: ignore[arg-type]
    assert not (tmp_path / "a").exists()


def test_equal_rows_give_equal_bytes_whatever_the_way(tmp_path: Path) -> None:
    rows = [{"b": float(i), "a": i, "s": f"t{i}", "z": b"x" * i} for i in range(2000)]
    with Writer(tmp_path / "rows") as writer:
        for row in rows:
            writer.write(row)
        assert writer.records == 2000
    with Writer(tmp_path / "arrays") as writer:
        for row in rows:
            writer.write({k: [v] for k, v in reversed(row.items())})
    columns = {k: [row[k] for row in rows] for k in rows[0]}
    with Writer(tmp_path / "batch") as writer:
        writer.write_batch(columns)
    data = (tmp_path / "rows").read_bytes()
    assert (tmp_path / "arrays").read_bytes() == data
    assert (tmp_path / "batch").read_bytes() == data
    assert parse(payloads(tmp_path / "rows")[7]) == {
        "a": ("int64_list", [7]),
        "b": ("float_list", [7.0]),
        "s": ("bytes_list", [b"t7"]),
        "z": ("bytes_list", [b"x" * 7]),
    }


def test_sort_can_be_turned_off(tmp_path: Path) -> None:
    with Writer(tmp_path / "a", sort=False) as writer:
        writer.write({"b": 1, "a": [2]})
    (payload,) = payloads(tmp_path / "a")
    assert payload.index(b"b") < payload.index(b"a", 4)
    golden = bytes.fromhex(
        "0a0c0a0a0a016e12051a030a0103123d0a1c0a03746f6b12150a061a040a0200010a021a000a071a050a0302"
        "03040a1d0a03696d6712160a060a040a02ffd80a040a020a000a060a040a026162"
    )
    path = put(tmp_path / "seq", golden)
    with Writer(tmp_path / "again", sequence=True, sort=False) as writer:
        for row in read(path):
            writer.write(row)
    assert payloads(tmp_path / "again") == [golden]


def test_rows_keep_their_order_among_batches_and_payloads(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.write({"x": 0})
        writer.write({"x": [1]})
        writer.write({"x": 2})
        writer.write_batch({"x": np.array([3, 4])})
        writer.write_payload(example({"x": [5]}))
        writer.write({"x": 6})
        assert writer.records == 7
    assert [int(r["x"][0]) for r in read(tmp_path / "a")] == list(range(7))


def test_a_list_or_array_may_change_after_write(tmp_path: Path) -> None:
    array, values = np.zeros(3, np.float32), [1, 2]
    with Writer(tmp_path / "a") as writer:
        for k in range(3):
            array[:] = k
            values[0] = k
            writer.write({"x": array, "y": values})
    assert [r["x"][0] for r in read(tmp_path / "a")] == [0, 1, 2]
    assert [r["y"][0] for r in read(tmp_path / "a")] == [0, 1, 2]


def test_a_refused_row_names_itself_and_leaves_the_others(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.write({"x": 1})
        for bad in (1 << 63, "text", [[1], [2, 3]]):
            with pytest.raises(EncodeError, match=r"feature 'x'.*Record 1 of .*a") as caught:
                writer.write({"x": bad})
            assert caught.value.record == 1
        writer.write({"x": 2})
    assert [int(r["x"][0]) for r in read(tmp_path / "a")] == [1, 2]


def test_a_feature_keeps_its_first_kind(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.write({"x": 1.5})
        writer.write({"x": 2})
        writer.write({"x": [3, 4]})
        writer.write_batch({"x": np.array([5])})
        writer.write({"x": []})
    assert [r["x"].tolist() for r in read(tmp_path / "a")] == [[1.5], [2.0], [3.0, 4.0], [5.0], []]
    with Writer(tmp_path / "b") as writer:
        writer.write({"x": 1})
        with pytest.raises(EncodeError, match="was int64 in earlier records and is float now"):
            writer.write({"x": 2.5})
        with pytest.raises(EncodeError, match="was int64 in earlier records and is float now"):
            writer.write_batch({"x": np.array([2.5])})


@pytest.mark.parametrize("name", [b"x", 5, "\ud800"])
def test_a_strange_name_is_refused(tmp_path: Path, name: object) -> None:
    with Writer(tmp_path / "a") as writer:
        with pytest.raises(EncodeError, match="a feature's name .*Record 0 of"):
            writer.write({name: 1})  # type: ignore[dict-item]
        with pytest.raises(EncodeError, match="a feature's name"):
            writer.write_batch({name: [1]})  # type: ignore[dict-item]
        with pytest.raises(EncodeError, match="valid Unicode.*utf8='surrogateescape'"):
            writer.write({"né\udcff\n": 1})
        with pytest.raises(EncodeError, match="valid Unicode"):
            writer.write_batch({"\udc80": [1]})
    with Writer(tmp_path / "a", utf8="surrogateescape") as writer:
        writer.write({"né\udcff\n": 1})
    assert list(next(read(tmp_path / "a", utf8="surrogateescape"))) == ["né\udcff\n"]


def test_a_block_that_raises_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with Writer(tmp_path / "a") as writer:
            writer.write({"x": 1})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("row", [{"x": 1}, {"x": [1, 2]}], ids=["gathered", "at once"])
def test_a_forgotten_writer_warns_and_leaves_no_file(tmp_path: Path, row: dict[str, Any]) -> None:
    forgotten = [Writer(tmp_path / "a")]
    for _ in range(10):
        forgotten[0].write(row)
    with pytest.warns(ResourceWarning, match="never closed"):
        forgotten.clear()
    assert list(tmp_path.iterdir()) == []


def test_close_twice_and_write_after_close(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a")
    writer.write({"x": 1})
    writer.close()
    writer.close()
    for call in (
        lambda: writer.write({"x": 1}),
        lambda: writer.write_batch({"x": [1]}),
        lambda: writer.write_payload(b""),
        lambda: writer.write_sequence({}, {}),
        writer.flush,
    ):
        with pytest.raises(ValueError, match="writer is closed"):
            call()


def test_flush_makes_rows_readable(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.write({"x": 1})
        writer.flush()
        assert [r["x"].tolist() for r in read(tmp_path / "a")] == [[1]]
        writer.write({"x": 2})
    assert len(list(read(tmp_path / "a"))) == 2


def test_append_and_exclusive(tmp_path: Path) -> None:
    for k in range(2):
        with Writer(tmp_path / "a", mode="a") as writer:
            writer.write({"x": k})
    assert [int(r["x"][0]) for r in read(tmp_path / "a")] == [0, 1]
    with pytest.raises(FileExistsError):
        Writer(tmp_path / "a", mode="x")


def test_a_file_object_is_written_to(tmp_path: Path) -> None:
    target = io.BytesIO()
    with Writer(target) as writer:
        writer.write({"x": np.zeros((2, 3))})
    assert len(list(read(io.BytesIO(target.getvalue())))) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_large_float_warns_once(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught, Writer(tmp_path / "a") as writer:
        warnings.simplefilter("always")
        for _ in range(5):
            writer.write({"x": 1e39, "y": 0.620390625})
            writer.write({"x": [1e39]})
    assert [str(w.message)[:46] for w in caught] == [
        "feature 'x': 1e+39 becomes inf as float32, the"
    ]
    with (
        Writer(tmp_path / "b", strict=True) as writer,
        pytest.raises(EncodeError, match="1e.39 becomes inf"),
    ):
        writer.write({"x": 1e39})


def test_lists_of_lists_in_an_example(tmp_path: Path) -> None:
    value = [[0], [1, 56]]
    with Writer(tmp_path / "a") as writer:
        with pytest.raises(
            EncodeError, match="needs a SequenceExample .*write_sequence or ragged='split'"
        ):
            writer.write({"idx": value})
        writer.write({"ok": 1})
    with Writer(tmp_path / "b", ragged="split") as writer:
        writer.write({"idx": value})
        writer.write({"idx": [[7, 8], [9, 10]]})
    first, second = map(parse, payloads(tmp_path / "b"))
    assert first == {
        "idx/values": ("int64_list", [0, 1, 56]),
        "idx/lengths": ("int64_list", [1, 2]),
    }
    assert second["idx/lengths"] == ("int64_list", [2, 2])
    rows = list(read(tmp_path / "b"))
    assert [[v.tolist() for v in row["idx"]] for row in rows] == [value, [[7, 8], [9, 10]]]
    with pytest.raises(UsageError, match="'error' or 'split'"):
        Writer(tmp_path / "c", ragged="splt")  # type: ignore[arg-type]


def test_all_rows_of_a_feature_are_split_or_none_is(tmp_path: Path) -> None:
    rows = [[[0], [1, 56]], [], [[], [5]], np.array([[1, 2], [3, 4]]), [[], []]]
    with Writer(tmp_path / "a", ragged="split") as writer:
        for row in rows:
            writer.write({"idx": row, "flat": [1]})
        with pytest.raises(EncodeError, match="'idx': the list was nested .* and is flat now"):
            writer.write({"idx": [1, 2]})
        with pytest.raises(EncodeError, match="'flat': the list was flat .* and is nested now"):
            writer.write({"flat": [[1], [2, 3]]})
    read_back = [[inner.tolist() for inner in row["idx"]] for row in read(tmp_path / "a")]
    assert read_back == [np.asarray(r).tolist() if isinstance(r, np.ndarray) else r for r in rows]


def test_two_gibibytes_are_refused(tmp_path: Path) -> None:
    big = np.zeros((1, 1 << 29), np.float32)  # never touched, so never really there
    with Writer(tmp_path / "a") as writer:
        with pytest.raises(EncodeError, match="must stay under 2 GiB"):
            writer.write_batch({"x": big})
        writer.write({"x": 1.0})
    assert len(list(read(tmp_path / "a"))) == 1


# --- there and back -------------------------------------------------------------------------------


def test_a_value_of_two_gibibytes_is_refused_at_once_and_costs_no_other_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "_LARGEST", 2_000_000)
    big = b"x" * 2_000_001
    with Writer(tmp_path / "a") as writer:
        writer.write({"x": b"first"})
        for row in ({"x": big}, {"x": [big[:-9], big[:9]]}, {"x": big.decode()}):
            with pytest.raises(EncodeError, match=r"under 2 GiB.*Record 1 of .*a") as caught:
                writer.write(row)
            assert (caught.value.path, caught.value.record) == (str(tmp_path / "a"), 1)
        with pytest.raises(EncodeError, match="under 2 GiB.*Record 1 of"):
            writer.write_sequence({"x": big}, {})
        with pytest.raises(EncodeError, match="under 2 GiB.*Record 1 of"):
            writer.write_sequence({}, {"x": [[big[:-9]], [b"y"], [big[:9]]]})
        writer.write({"x": b"last"})
    assert [row["x"] for row in read(tmp_path / "a")] == [b"first", b"last"]


def test_a_batch_with_a_row_too_large_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "_LARGEST", 1_999_999)
    monkeypatch.setattr(wire, "_PIECE", 1 << 16)
    sizes = [10, 10, 400_000, 10]
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    numbers = np.arange(bounds[-1])
    batch = {"two": Ragged(numbers.astype(np.float32), bounds), "one": Ragged(numbers, bounds)}
    with Writer(tmp_path / "a") as writer:
        writer.write({"id": 7})
        with pytest.raises(EncodeError, match="a record of 2000000 bytes.*Record 3 of") as caught:
            writer.write_batch(batch)
        assert caught.value.record == 3
        assert writer.records == 1
        writer.write_batch(batch, present={"one": np.array([True, True, False, True])})
        writer.write_batch({"x": [b"a" * 999_999] * 3})
    assert len(payloads(tmp_path / "a")) == 8


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_a_duration_is_refused_in_every_form(tmp_path: Path, unit: str) -> None:
    durations = np.array([1, 2], f"m8[{unit}]")
    with Writer(tmp_path / "a") as writer:
        for value in (durations[0], list(durations), durations):
            with pytest.raises(EncodeError, match="a duration has no kind"):
                writer.write({"x": value})
            with pytest.raises(EncodeError, match="a duration has no kind"):
                writer.write_batch({"x": [value]})


def test_rows_without_names_say_what_a_row_is(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with Writer(path) as writer:
        writer.write({"a": 1})
        calls = (writer.write, writer.write_batch, lambda given: writer.write_sequence({}, given))
        for call in calls:
            with pytest.raises(UsageError, match=r"got list\. Give a dict.*Record 1 of .*a\.tfrec"):
                call([1, 2])  # type: ignore[arg-type]
        writer.write({"a": 2})
    assert [row["a"].tolist() for row in read(path)] == [[1], [2]]


@pytest.mark.parametrize("odd", [None, 5, "abc", b"x", [1, 2], [("a", 1)], np.zeros(3)])
def test_what_is_no_mapping_is_told_what_is(tmp_path: Path, odd: Any) -> None:
    with Writer(tmp_path / "a", sequence=True) as writer:
        for call in (
            writer.write,
            writer.write_batch,
            lambda value: writer.write_sequence(value, {}),
            lambda value: writer.write_sequence({}, value),
        ):
            with pytest.raises(UsageError, match="a mapping by feature name"):
                call(odd)

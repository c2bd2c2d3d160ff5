"""Writing files: rows, batches and payloads in order, whole or not at all."""

from __future__ import annotations

import gzip
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.helpers import KINDLESS, Empty, example, parse, payloads, put, sequence
from tfrio.errors import EncodeError, MissingFeatureError, TfrioWarning, UsageError
from tfrio.examples import wire
from tfrio.examples.arrow import from_arrow, to_arrow
from tfrio.examples.columns import BytesColumn, Ragged
from tfrio.examples.decode import read, read_batches
from tfrio.examples.schema import Feature
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


def test_two_gibibytes_are_refused(tmp_path: Path) -> None:
    big = np.zeros((1, 1 << 29), np.float32)  # never touched, so never really there
    with Writer(tmp_path / "a") as writer:
        with pytest.raises(EncodeError, match="must stay under 2 GiB"):
            writer.write_batch({"x": big})
        writer.write({"x": 1.0})
    assert len(list(read(tmp_path / "a"))) == 1


# --- batches --------------------------------------------------------------------------------------


def test_every_form_of_a_column(tmp_path: Path) -> None:
    columns = {
        "f": np.array([[1.5, 2.5], [3.5, 4.5]], np.float32),
        "f64": np.asfortranarray(np.arange(4.0).reshape(2, 2)),
        "i": np.array([7, 8], np.uint8),
        "flag": np.array([True, False]),
        "b": BytesColumn.of([b"a\x00", b""]),
        "text": ["x", "yz"],
        "r": Ragged(np.array([1, 2, 3]), np.array([0, 0, 3])),
        "rb": Ragged(BytesColumn.of([b"p", b"q"]), np.array([0, 2, 2])),
        "lists": [[1.0], [2.0, 3.0]],
        "words": [[b"a", b"b"], []],
        "maybe": [None, 5],
        "U": np.array(["ä", "b"]),
        "strided": np.arange(8)[::4],
    }
    with Writer(tmp_path / "a") as writer:
        writer.write_batch(columns)
    first, second = map(parse, payloads(tmp_path / "a"))
    assert first["f"] == ("float_list", [1.5, 2.5])
    assert second["f64"] == ("float_list", [2, 3])
    assert second["i"] == ("int64_list", [8])
    assert first["flag"] == ("int64_list", [1])
    assert first["b"] == ("bytes_list", [b"a\x00"])
    assert second["text"] == ("bytes_list", [b"yz"])
    assert first["r"] == ("int64_list", [])
    assert second["r"] == ("int64_list", [1, 2, 3])
    assert first["rb"] == ("bytes_list", [b"p", b"q"])
    assert second["lists"] == ("float_list", [2, 3])
    assert second["words"] == ("bytes_list", [])
    assert "maybe" not in first
    assert second["maybe"] == ("int64_list", [5])
    assert first["U"] == ("bytes_list", ["ä".encode()])
    assert second["strided"] == ("int64_list", [4])


def test_a_mask_leaves_features_out(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.write_batch(
            {
                "x": np.array([1, 2, 3]),
                "y": np.ma.masked_array([1.0, 2.0, 3.0], [True, False, False]),
            },
            present={"x": np.array([True, False, True])},
        )
        with pytest.raises(EncodeError, match=r"present\['x'\] has shape \(2,\), not \(1,\)"):
            writer.write_batch({"x": [1]}, present={"x": np.array([True, False])})
    found = [sorted(parse(p)) for p in payloads(tmp_path / "a")]
    assert found == [["x"], ["y"], ["x", "y"]]


STEPS = Ragged(np.arange(6), np.array([0, 1, 1, 4, 6]))


@pytest.mark.parametrize(
    ("column", "feature", "values"),
    [
        (np.arange(2), Feature("int64"), [[], [1]]),
        (np.arange(4.0).reshape(2, 2), Feature("float"), [[], [2, 3]]),
        (Ragged(np.arange(5), np.array([0, 2, 5])), Feature("int64"), [[], [2, 3, 4]]),
        (Ragged(np.arange(5), np.array([1, 3, 4])), Feature("int64"), [[], [3]]),
        (BytesColumn.of([b"a", b"b"]), Feature("bytes"), [[], [b"b"]]),
        (Ragged(BytesColumn.of([b"a", b"b"]), np.array([0, 1, 2])), Feature("bytes"), [[], [b"b"]]),
        (
            Ragged(STEPS, np.array([0, 2, 4])),
            Feature("int64", place="list"),
            [[], [[1, 2, 3], [4, 5]]],
        ),
    ],
)
def test_an_absent_row_of_a_required_list_is_empty_whatever_its_column_holds(
    tmp_path: Path, column: Any, feature: Feature, values: list[Any]
) -> None:
    with Writer(tmp_path / "a", schema={"x": feature}) as writer:
        writer.write_batch({"x": column}, present={"x": np.array([False, True])})
    rows = [row["x"] for row in read(tmp_path / "a", schema={"x": feature})]
    assert [
        [np.asarray(v).tolist() if feature.place == "list" else v for v in r] for r in rows
    ] == values


@pytest.mark.parametrize("column", ["abc", b"abc", 5, np.array(5), None, np.float32(1)])
def test_a_single_value_is_no_column(tmp_path: Path, column: object) -> None:
    with Writer(tmp_path / "a") as writer, pytest.raises(EncodeError, match="a single value"):
        writer.write_batch({"x": column})


MASKED = np.ma.masked_array([[1, 2], [3, 4]], [[False, True], [False, False]])


def test_masked_values_are_never_stored_as_if_they_were_not(tmp_path: Path) -> None:
    raw = {"x": Feature("bytes", (2, 2), dtype="int64", codec="raw")}
    for schema, values in ((None, MASKED), (None, MASKED[0]), (None, np.ma.masked), (raw, MASKED)):
        with Writer(tmp_path / "a", schema=schema) as writer:
            with pytest.raises(EncodeError, match="'x': masked values cannot be stored"):
                writer.write({"x": values})
            with pytest.raises(EncodeError, match="'x': masked values cannot be stored"):
                writer.write_batch({"x": [values]})
            writer.write({"x": MASKED.filled(0)})
    with Writer(tmp_path / "b") as writer:
        with pytest.raises(EncodeError, match="masked values cannot be stored"):
            writer.write_batch({"x": MASKED})
        writer.write({"x": MASKED[1]})
    assert [row["x"].tolist() for row in read(tmp_path / "b")] == [[3, 4]]


def test_columns_of_differing_length_are_refused(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        with pytest.raises(EncodeError, match=r"differ in length: \{'x': 2, 'y': 3\}"):
            writer.write_batch({"x": [1, 2], "y": [1, 2, 3]})
        writer.write_batch({})
        writer.write_batch({"x": []})
        with pytest.raises(EncodeError, match="None inside a list"):
            writer.write_batch({"x": [[1], [None]]})
        with pytest.raises(EncodeError, match="row 1"):
            writer.write_batch({"x": [[1], [1 << 63]]})
        with pytest.raises(EncodeError, match="mixes kinds"):
            writer.write_batch({"x": [[1], [b"a"]]})
        assert writer.records == 0


def test_a_null_column_under_a_schema(tmp_path: Path) -> None:
    schema = {"x": Feature("float"), "y": Feature("float", (), required=False)}
    with Writer(tmp_path / "a", schema=schema) as writer:
        writer.write_batch({"x": [None, None], "y": [None, 1]})
        writer.write_batch({"x": [None, [1.5, 2]], "y": [None, None]})
        writer.write_batch({"x": np.array([1, 2]), "y": [1, 2]}, present={"x": [False, True]})  # type: ignore[dict-item]
        with pytest.raises(
            MissingFeatureError, match="'x' is required by the schema and is no column"
        ):
            writer.write_batch({"y": [1]})
    assert payloads(tmp_path / "a")[0].hex() == "0a090a070a017812021200"
    rows = [parse(p) for p in payloads(tmp_path / "a")]
    assert [r["x"][1] for r in rows] == [[], [], [], [1.5, 2], [], [2]]
    assert [r.get("y", (0, None))[1] for r in rows] == [None, [1], None, None, [1], [2]]
    strict = {"x": Feature("float", ())}
    with (
        Writer(tmp_path / "b", schema=strict) as writer,
        pytest.raises(MissingFeatureError, match="absent in row 1 of the batch"),
    ):
        writer.write_batch({"x": [1, None]})


def test_shapes_of_columns_under_a_schema(tmp_path: Path) -> None:
    with Writer(tmp_path / "a", schema={"x": Feature("float", (2, 3))}) as writer:
        writer.write_batch({"x": np.zeros((4, 2, 3))})
        writer.write_batch({"x": np.zeros((4, 6))})
        with pytest.raises(EncodeError, match=r"rows of shape \(3, 2\), the schema says \(2, 3\)"):
            writer.write_batch({"x": np.zeros((4, 3, 2))})
    assert len(payloads(tmp_path / "a")) == 8


# --- sequences ------------------------------------------------------------------------------------


def test_sequences_by_row_batch_and_call_are_equal(tmp_path: Path) -> None:
    context = {"id": 7, "name": "n"}
    lists = {"tok": [[0, 1], [], [2, 3, 4]], "img": [[b"\xff"], [b""], [b"ab"]]}
    expected = sequence(
        {"id": [7], "name": [b"n"]},
        {"tok": [[0, 1], Empty("int64_list"), [2, 3, 4]], "img": lists["img"]},
    )
    with Writer(tmp_path / "a") as writer:
        writer.write_sequence(context, lists)
    with Writer(tmp_path / "b", sequence=True) as writer:
        writer.write({**context, **lists})
    (batch,) = read_batches(tmp_path / "a", 10)
    with Writer(tmp_path / "c", sequence=True) as writer:
        writer.write_batch(batch)
    for name in "abc":
        assert payloads(tmp_path / name) == [expected], name


@pytest.mark.parametrize("value", [b"a", 1.5, 2])
def test_a_feature_list_without_steps_keeps_its_kind(tmp_path: Path, value: bytes | float) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.write_sequence({"id": 1}, {"v": [value, value]})
        writer.write_sequence({"id": 2}, {"v": []})
        writer.write_sequence({"id": 3}, {"v": [value]})
    steps = [len(row["v"]) for row in read(tmp_path / "a")]
    assert steps == [2, 0, 1]
    assert payloads(tmp_path / "a")[1] == sequence({"id": [2]}, {"v": []})
    schema = {"id": "int64", "v": Feature("bytes", (), place="list")}
    with Writer(tmp_path / "b", schema=schema) as writer:
        writer.write_sequence({"id": 2}, {"v": []})
    assert payloads(tmp_path / "b") == payloads(tmp_path / "a")[1:2]


def test_fixed_steps_as_columns(tmp_path: Path) -> None:
    schema = {"obs": Feature("float", (2,), place="list"), "w": Feature("int64", (), place="list")}
    columns = {
        "obs": Ragged(np.arange(10, dtype=np.float32).reshape(5, 2), np.array([0, 2, 5])),
        "w": Ragged(np.arange(4), np.array([0, 1, 4])),
    }
    with Writer(tmp_path / "a", schema=schema) as writer:
        writer.write_batch(columns)
        writer.write({"obs": np.ones((1, 2)), "w": [9, 9]})
    first, second, third = read(tmp_path / "a", schema=schema)
    assert first["obs"].tolist() == [[0, 1], [2, 3]]
    assert second["w"].tolist() == [1, 2, 3]
    assert third["w"].tolist() == [9, 9]
    nested = Ragged(Ragged(np.arange(2), np.array([0, 2])), np.array([0, 1]))
    with (
        Writer(tmp_path / "b") as writer,
        pytest.raises(EncodeError, match="needs a SequenceExample"),
    ):
        writer.write_batch({"x": nested})


@pytest.mark.parametrize("sequence", [False, True])
def test_a_large_batch_is_encoded_piece_by_piece_and_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sequence: bool
) -> None:
    random = np.random.default_rng(0)
    lengths = random.integers(0, 4, 50)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    inner = np.concatenate([[0], np.cumsum(random.integers(0, 3, ends[-1]))])
    words = BytesColumn.of([b"x" * int(n) for n in random.integers(0, 5, ends[-1])])
    columns = {
        "f": random.random((50, 2, 3)),
        "b": BytesColumn.of([b"y" * (i % 4) for i in range(50)]),
        "two": Ragged(BytesColumn.of([b"%d" % i for i in range(100)]), np.arange(51) * 2),
        "r": Ragged(np.arange(ends[-1]), ends),
        "w": Ragged(words, ends),
    }
    mask = {"f": random.random(50) < 0.5, "r": random.random(50) < 0.5}
    schema = {"s": Feature("int64", place="list"), "k": Feature("float", (2,), place="list")}
    if sequence:
        columns["s"] = Ragged(Ragged(np.arange(inner[-1]), inner), ends)
        columns["k"] = Ragged(random.random((ends[-1], 2), np.float32), ends)
    known = {
        name: Feature(
            "bytes" if name in ("b", "two", "w") else "float" if name == "f" else "int64",
            required=False,
        )
        for name in columns
        if name not in schema
    }
    for piece in (1 << 30, 64):
        monkeypatch.setattr(wire, "_PIECE", piece)
        with Writer(
            tmp_path / str(piece), schema={**known, **(schema if sequence else {})}
        ) as writer:
            writer.write_batch(columns, present=mask)
    whole, cut = (payloads(tmp_path / str(piece)) for piece in (1 << 30, 64))
    assert len(whole) == 50
    assert cut == whole


# --- there and back -------------------------------------------------------------------------------

VALUES = {
    "int64": st.integers(-(1 << 63), (1 << 63) - 1),
    "float": st.floats(width=32, allow_nan=False),
    "bytes": st.binary(max_size=6),
}


@st.composite
def tables(draw: st.DrawFn) -> list[dict]:
    """Rows of features a, b, c of one kind each: absent, empty, or with values."""
    kinds = {name: draw(st.sampled_from(sorted(VALUES))) for name in "abc"}
    lengths = {name: draw(st.sampled_from([(0, 3), (1, 1), (2, 2)])) for name in "abc"}
    rows = []
    for _ in range(draw(st.integers(0, 8))):
        row = {}
        for name, kind in kinds.items():
            if draw(st.integers(0, 4)):
                low, high = lengths[name]
                values = draw(st.lists(VALUES[kind], min_size=low, max_size=high))
                dtype = {"int64": np.int64, "float": np.float32}.get(kind)
                row[name] = values if dtype is None else np.array(values, dtype)
        rows.append(row)
    return rows


def _listed(row: dict) -> dict:
    return {k: [v] if isinstance(v, bytes) else list(v) for k, v in row.items()}


@settings(deadline=None)
@given(tables(), st.integers(1, 5))
def test_rows_and_columns_come_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict], size: int
) -> None:
    folder = tmp_path_factory.mktemp("back")
    kinds = {
        k: "bytes" if isinstance(v, list) else "float" if v.dtype == np.float32 else "int64"
        for row in rows
        for k, v in row.items()
    }
    schema = {k: Feature(kind, required=False) for k, kind in kinds.items()}  # type: ignore[arg-type]
    with Writer(folder / "a", schema=schema) as writer:
        for row in rows:
            writer.write(row)
    again = list(read(folder / "a"))
    assert [_listed(r) for r in again] == [_listed(r) for r in rows]
    with Writer(folder / "b") as writer, warnings.catch_warnings():
        warnings.simplefilter("ignore", TfrioWarning)
        for batch in read_batches(folder / "a", size):
            writer.write_batch(batch)
    with Writer(folder / "c") as writer:
        for batch in read_batches(folder / "a", size, schema=schema):
            writer.write_batch(batch)
    data = (folder / "a").read_bytes()
    assert (folder / "b").read_bytes() == data
    assert (folder / "c").read_bytes() == data


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


def test_steps_without_a_kind_stay_so(tmp_path: Path) -> None:
    payloads_in = [
        sequence({"n": [1]}, {"a": [KINDLESS], "b": [KINDLESS, KINDLESS], "c": [[1.5]]}),
        sequence({"n": [2]}, {"a": [], "b": [KINDLESS], "c": [[2.5], [3.5]]}),
        sequence({"n": [3]}, {"b": [KINDLESS, KINDLESS], "c": []}),
        sequence({"n": [4]}, {"a": [KINDLESS] * 3, "b": [KINDLESS, KINDLESS], "c": [[4.5]]}),
    ]
    path = put(tmp_path / "a", *payloads_in)
    with Writer(tmp_path / "rows", sequence=True) as writer:
        for row in read(path):
            writer.write(row)
    for size in (1, 2, 4):
        with Writer(tmp_path / f"batches{size}", sequence=True) as writer:
            for batch in read_batches(path, size):
                writer.write_batch(batch)
    with Writer(tmp_path / "arrow", sequence=True) as writer:
        for batch in from_arrow(to_arrow(path)):
            writer.write_batch(batch)
    for name in ("rows", "batches1", "batches2", "batches4", "arrow"):
        assert payloads(tmp_path / name) == payloads_in, name


def test_a_kind_seen_later_is_the_kind(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a",
        sequence({}, {"a": [KINDLESS]}),
        sequence({}, {"a": [[1.5], [2.5]]}),
        sequence({}, {"a": [KINDLESS]}),
    )
    for size in (1, 3):
        with Writer(tmp_path / "b", sequence=True) as writer:
            for batch in read_batches(path, size):
                writer.write_batch(batch)
        rows = [
            [step.tolist() for step in map(np.asarray, row["a"])] for row in read(tmp_path / "b")
        ]
        assert rows == [[[]], [[1.5], [2.5]], [[]]]
    with Writer(tmp_path / "c", sequence=True) as writer:
        writer.write_sequence({}, {"a": [1.5]})
        writer.write_sequence({}, {"a": [[]]})
        writer.write_sequence({}, {"a": [None, None]})
        with pytest.raises(EncodeError, match="an empty list has no kind"):
            writer.write_sequence({}, {"b": [[]]})
    assert payloads(tmp_path / "c")[2] == sequence({}, {"a": [KINDLESS, KINDLESS]})
    assert payloads(tmp_path / "c")[1] == sequence({}, {"a": [Empty("float_list")]})


@pytest.mark.parametrize("steps", [3, "abc", b"abc", np.float32(1), np.array(1)])
def test_a_feature_list_needs_steps(tmp_path: Path, steps: object) -> None:
    with Writer(tmp_path / "a", sequence=True) as writer:
        with pytest.raises(EncodeError, match="feature list 'a' needs steps"):
            writer.write_sequence({}, {"a": steps})  # type: ignore[dict-item]
        assert writer.records == 0


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

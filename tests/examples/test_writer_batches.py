"""Writing columns: every form of them, under a schema or not, and back."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.helpers import parse, payloads
from tfrio.errors import EncodeError, MissingFeatureError, TfrioWarning
from tfrio.examples import wire
from tfrio.examples.columns import BytesColumn, Ragged
from tfrio.examples.decode import read, read_batches
from tfrio.examples.schema import Feature
from tfrio.examples.writer import Writer


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


WORDS = np.array([[b"a", b"b"], [b"c", b""], [b"d", b"e"]], object)


@pytest.mark.parametrize(
    "column",
    [
        Ragged(WORDS, np.array([0, 0, 1, 3])),
        [[], WORDS[:1], WORDS[1:].tolist()],
        Ragged(Ragged(WORDS.reshape(-1), np.array([0, 2, 4, 6])), np.array([0, 0, 1, 3])),
    ],
)
def test_steps_of_byte_strings_by_a_schema_stay_steps(tmp_path: Path, column: Any) -> None:
    schema = {"L": Feature("bytes", (2,), place="list")}
    with Writer(tmp_path / "a", schema=schema) as writer:
        writer.write_batch({"L": column})
        writer.write_batch({"L": WORDS.reshape(1, 3, 2)})
    steps = [row["L"] for row in read(tmp_path / "a")]
    assert steps == [[], WORDS[:1].tolist(), WORDS[1:].tolist(), WORDS.tolist()]


@pytest.mark.parametrize("place", ["context", "list"])
@pytest.mark.parametrize(
    ("kind", "values"),
    [("int64", np.arange(5)), ("bytes", BytesColumn.of([b"a", b"b", b"", b"d", b"e"]))],
)
@pytest.mark.parametrize("shape", [(3,), (-1, 3)])
def test_numbers_of_values_that_the_schema_does_not_allow_are_refused(
    tmp_path: Path, shape: tuple[int, ...], kind: Any, values: Any, place: Any
) -> None:
    column = Ragged(values, np.array([0, 3, 5]))
    text = "feature 'x': 2 values, the schema says .*Record 1 of"
    if place == "list":
        column = Ragged(column, np.array([0, 0, 2]))
        text = "feature 'x': 2 values in step 1, the schema says .*Record 1 of"
    writer = Writer(tmp_path / "a", schema={"x": Feature(kind, shape, place=place)})
    with pytest.raises(EncodeError, match=text), writer:
        writer.write_batch({"x": column})
    absent = Feature(kind, shape, required=False)
    if place == "context":  # what is left out may be anything
        with Writer(tmp_path / "a", schema={"x": absent}) as writer:
            writer.write_batch({"x": column}, present={"x": np.array([True, False])})


def test_empty_arrays_of_numbers_are_rows_without_byte_strings(tmp_path: Path) -> None:
    schema = {"b": Feature("bytes")}
    with Writer(tmp_path / "a", schema=schema) as writer:
        writer.write_batch({"b": np.zeros((2, 0))})
    assert [row["b"] for row in read(tmp_path / "a", schema=schema)] == [[], []]


class Sized:
    """It has a length, and nothing else."""

    def __len__(self) -> int:
        return 3


@pytest.mark.parametrize(
    ("feature", "value", "text"),
    [
        (Feature("bytes", (2,), codec="raw", dtype="uint8"), [[1], [2, 3]], "needs an array"),
        (Feature("int64", ("h", 2), required=False), [[1], [2, 3]], "is no array"),
        (Feature("int64"), Sized(), "is a single value"),
    ],
)
def test_what_is_no_array_is_one_clear_error(
    tmp_path: Path, feature: Feature, value: Any, text: str
) -> None:
    schema = {"x": feature, "h": Feature("int64", (), required=False)}
    with Writer(tmp_path / "a", schema=schema) as writer:
        write = writer.write_batch if isinstance(value, Sized) else writer.write
        with pytest.raises(EncodeError, match=f"'x'.*{text}.*Record 0 of"):
            write({"x": value})

"""Arrow in and out, with pyarrow and pandas as the other side."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.payloads import protobuf_classes
from tests.examples.helpers import KINDLESS, Empty, example, parse, payloads, put, sequence
from tfrio import _core
from tfrio.errors import EncodeError, UsageError
from tfrio.examples import arrow
from tfrio.examples.arrow import from_arrow, to_arrow
from tfrio.examples.arrow_c import ArrayNode
from tfrio.examples.arrow_out import batch_array
from tfrio.examples.columns import Batch, Ragged
from tfrio.examples.decode import read
from tfrio.examples.infer import infer_schema
from tfrio.examples.schema import Feature, Schema
from tfrio.examples.writer import Writer

pa = pytest.importorskip("pyarrow")


def written(path: Path, source: object) -> list[bytes]:
    with Writer(path) as writer:
        for batch in from_arrow(source):
            writer.write_batch(batch)
    return payloads(path)


def test_three_records_are_a_table_of_plain_columns_and_come_back_byte_for_byte(
    tmp_path: Path,
) -> None:
    path = put(tmp_path / "a", *(example({"id": [k], "v": [k + 0.5]}) for k in (10, 20, 30)))
    table = pa.table(to_arrow(path))
    assert table.schema == pa.schema(
        [pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.float32(), nullable=False)]
    )
    assert table.to_pydict() == {"id": [10, 20, 30], "v": [10.5, 20.5, 30.5]}
    assert written(tmp_path / "b", table) == payloads(path)


def test_pandas_takes_the_stream(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    path = put(tmp_path / "a", *(example({"id": [k], "v": [k + 0.5]}) for k in (10, 20)))
    frame = pandas.DataFrame.from_arrow(to_arrow(path))
    assert frame.dtypes.astype(str).to_dict() == {"id": "int64", "v": "float32"}
    assert frame["id"].tolist() == [10, 20]


def test_absent_is_null_and_lists_are_lists(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a",
        example({"r": [1, 2], "b": [b"x\x00"], "f": [1.0, 2.0], "bb": [b"a", b"b"]}),
        example({"r": Empty("int64_list"), "f": [3.0, 4.0], "bb": [b"c"], "k": KINDLESS}),
        example({"r": [3], "b": [b""], "f": [5.0, 6.0]}),
    )
    table = pa.table(to_arrow(path))
    assert table.schema.field("r").type == pa.large_list(pa.int64())
    assert table.schema.field("b").type == pa.large_binary()
    assert table.schema.field("f").type == pa.list_(pa.float32(), 2)
    assert table.schema.field("bb").type == pa.large_list(pa.large_binary())
    assert table.schema.field("k").type == pa.null()
    assert table.to_pydict() == {
        "r": [[1, 2], [], [3]],
        "b": [b"x\x00", None, b""],
        "f": [[1, 2], [3, 4], [5, 6]],
        "bb": [[b"a", b"b"], [b"c"], None],
        "k": [None, None, None],
    }
    assert table["r"].validate(full=True) is None
    again = [parse(p) for p in written(tmp_path / "b", table.drop(["k"]))]
    before = [parse(p) for p in payloads(path)]
    del before[1]["k"]
    assert again == before


def test_streams_batch_by_batch_and_can_be_left_early(tmp_path: Path) -> None:
    path = put(tmp_path / "a", *(example({"x": [i]}) for i in range(10)))
    stream = to_arrow(path, batch_size=4)
    reader = pa.RecordBatchReader.from_stream(stream)
    assert reader.read_next_batch().num_rows == 4
    del reader
    assert [b.num_rows for b in pa.RecordBatchReader.from_stream(stream)] == [4, 4, 2]


def test_nothing_is_kept_once_the_consumer_lets_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "a", *(example({"x": [i], "r": [i] * (1 + i % 2)}) for i in range(8)))
    alive: list[weakref.ref] = []

    def watched(schema: Schema, batch: Batch) -> ArrayNode:
        node = batch_array(schema, batch)
        alive.extend(weakref.ref(b) for c in node.children for b in c.buffers if b is not None)
        return node

    monkeypatch.setattr(arrow, "batch_array", watched)
    stream = to_arrow(path, batch_size=4)
    stream.__arrow_c_stream__()  # a capsule that nobody takes
    table = pa.table(stream)
    assert len(alive) == 4
    assert all(ref() is not None for ref in alive)
    column = table["r"].chunk(1)
    del table
    gc.collect()
    assert column.to_pylist() == [[4], [5, 5], [6], [7, 7]]
    del column
    gc.collect()
    assert [ref() for ref in alive] == [None] * 4


def test_an_error_on_the_way_reaches_the_consumer(tmp_path: Path) -> None:
    path = Path(put(tmp_path / "a", *(example({"x": [i]}) for i in range(10))))
    stream = to_arrow(str(path), batch_size=4)
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    with pytest.raises(OSError, match="CorruptRecordError.*record 9"):
        pa.table(stream)


def test_shapes_types_text_and_arrays(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a",
        example(
            {
                "m": [float(i) for i in range(6)],
                "t": ["ä".encode()],
                "i": [7, 1],
                "px": [b"\x01\x02"],
                "n": [1],
            }
        ),
        example({"m": [0.5] * 6, "t": [b"b"], "i": [8], "px": [b"\x03\x04"], "n": [0]}),
    )
    schema = {
        "m": Feature("float", (2, 3), dtype="float64"),
        "t": Feature("bytes", (), dtype="str"),
        "i": Feature("int64", dtype="uint8"),
        "px": Feature("bytes", (2,), codec="raw", dtype="uint8"),
        "n": Feature("int64", (), dtype="bool"),
    }
    table = pa.table(to_arrow(path, schema=schema))
    table.validate(full=True)
    assert table.schema.field("m").type == pa.list_(pa.list_(pa.float64(), 3), 2)
    assert table.schema.field("t").type == pa.large_string()
    assert table.schema.field("i").type == pa.large_list(pa.uint8())
    assert table.to_pydict() == {
        "m": [[[0, 1, 2], [3, 4, 5]], [[0.5] * 3] * 2],
        "t": ["ä", "b"],
        "i": [[7, 1], [8]],
        "px": [[1, 2], [3, 4]],
        "n": [True, False],
    }
    (batch,) = from_arrow(table)
    assert batch["m"].shape == (2, 2, 3)
    assert batch["n"].dtype == np.bool_
    image = {
        "px": Feature("bytes", codec="image"),
        "t": Feature("bytes", ("n",), codec="raw", dtype="uint8"),
    }
    assert pa.table(to_arrow(path, schema=image)).to_pydict()["px"] == [b"\x01\x02", b"\x03\x04"]


def test_sequences_are_lists_of_lists(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a",
        sequence({"n": [1]}, {"tok": [[1, 2], Empty("int64_list")], "w": [[b"a"]]}),
        sequence({"n": [2]}, {"tok": [[3]]}),
    )
    table = pa.table(to_arrow(path))
    table.validate(full=True)
    assert table.to_pydict() == {
        "n": [1, 2],
        "tok": [[[1, 2], []], [[3]]],
        "w": [[b"a"], None],
    }
    fixed = {"tok": Feature("int64", (2,), place="list")}
    one = put(tmp_path / "b", sequence({}, {"tok": [[1, 2], [3, 4]]}))
    assert pa.table(to_arrow(one, schema=fixed)).to_pydict() == {"tok": [[[1, 2], [3, 4]]]}


def rewritten(path: Path, source: object) -> list[bytes]:
    with Writer(path, sequence=True, sort=False) as writer:
        for batch in from_arrow(source):
            writer.write_batch(batch)
    return payloads(path)


def same_messages(before: list[bytes], after: list[bytes]) -> bool:
    kind = protobuf_classes()[1]
    return [kind.FromString(p) for p in before] == [kind.FromString(p) for p in after]


@pytest.mark.parametrize(
    ("steps", "feature"),
    [
        ([[b"a"], [b""], [b"c"]], None),
        ([[1], [2], [3]], None),
        ([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], Feature("float", (2,), place="list")),
        ([[1] * 6, [2] * 6], Feature("int64", (3, 2), place="list")),
        ([[b"a", b"b"], [b"c", b"d"]], Feature("bytes", (2,), place="list")),
        ([[b"a"] * 6, [b"b"] * 6], Feature("bytes", (-1, 2), place="list")),
    ],
)
def test_a_feature_list_stays_one_whatever_its_steps_hold(
    tmp_path: Path, steps: list, feature: Feature | None
) -> None:
    path = put(
        tmp_path / "a", sequence({"x": steps[0]}, {"l": steps}), sequence({"x": steps[1]}, {})
    )
    schema = None
    if feature is not None:
        schema = {"x": Feature(feature.kind), "l": replace(feature, required=False)}
    table = pa.table(to_arrow(path, schema=schema))
    assert table.schema.field("l").metadata == {b"tfrio:place": b"list"}
    assert table.schema.field("x").metadata is None
    for source in (table, table.to_batches()[0], table.slice(0, 2)):
        assert same_messages(payloads(path), rewritten(tmp_path / "b", source))


def test_a_feature_list_of_foreign_types_stays_one(tmp_path: Path) -> None:
    notes = {"other": "note", "tfrio:place": "list", "empty": ""}
    inner = pa.list_(pa.binary(), 2)
    fields = [pa.field("w", pa.list_(inner), metadata=notes), pa.field("v", pa.list_(pa.int8()))]
    table = pa.table(
        {"w": [[[b"a", b"b"], [b"c", b"d"]], []], "v": [[1], [2, 3]]}, schema=pa.schema(fields)
    )
    assert same_messages(
        [
            sequence({"v": [1]}, {"w": [[b"a", b"b"], [b"c", b"d"]]}),
            sequence({"v": [2, 3]}, {"w": []}),
        ],
        rewritten(tmp_path / "a", table),
    )


def test_feature_lists_without_a_kind_are_present_and_empty(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a",
        sequence({"n": [1]}, {"a": [], "b": [KINDLESS]}),
        sequence({"n": [2]}, {}),
        sequence({"n": [3]}, {"b": [KINDLESS, KINDLESS]}),
    )
    for schema in (None, {**infer_schema(path)}):
        table = pa.table(to_arrow(path, schema=schema, batch_size=2, features=["a", "b"]))
        table.validate(full=True)
        assert table.schema.field("a").type == pa.large_list(pa.large_list(pa.null()))
        assert table.to_pydict() == {"a": [[], None, None], "b": [[None], None, [None, None]]}
    for part in (table, table.slice(1, 2)):
        again = put(tmp_path / "b", *rewritten(tmp_path / "c", part))
        assert pa.table(to_arrow(again))["b"].to_pylist() == part["b"].to_pylist()
    pylist = [{"a": row.get("a")} for row in read(put(tmp_path / "d", *payloads(path)))]
    assert pylist == table.select(["a"]).to_pylist()


def test_steps_of_nulls_are_refused() -> None:
    field = pa.field("x", pa.list_(pa.list_(pa.null())), metadata={"tfrio:place": "list"})
    table = pa.table({"x": [[[None]]]}, schema=pa.schema([field]))
    with pytest.raises(EncodeError, match="'x' has a null inside a list"):
        list(from_arrow(table))


def test_a_real_sequence_file_keeps_its_places(shared: Path, tmp_path: Path) -> None:
    found = sorted((shared / "data/wild").glob("torchdata/*sequence_example.tfrecord"))
    if not found:
        pytest.skip("the sequence file of torchdata is not there")
    copy = tmp_path / "a.tfrecord"
    copy.write_bytes(found[0].read_bytes())
    again = rewritten(tmp_path / "b", pa.table(to_arrow(copy)))
    assert same_messages(payloads(copy), again)
    assert len(again) == 4


def test_every_type_an_example_can_hold_comes_in() -> None:
    columns = {
        "i8": pa.array([1, None, 3], pa.int8()),
        "u32": pa.array([1, 2, 3], pa.uint32()),
        "f16": pa.array(np.array([1, 2, 3], np.float16)),
        "f64": pa.array([0.5, 1.5, None]),
        "flag": pa.array([True, None, False]),
        "s": pa.array(["a", None, "ccc"]),
        "ls": pa.array(["a", "bb", ""], pa.large_string()),
        "view": pa.array(["short", "a value longer than twelve bytes", None], pa.string_view()),
        "b": pa.array([b"\x00", b"", b"x"]),
        "b2": pa.array([b"\x00a", None, b"cd"], pa.binary(2)),
        "b2s": pa.array([[b"ab", b"cd"], [], [b"ef"]], pa.list_(pa.binary(2))),
        "b0": pa.array([b"", b"", None], pa.binary(0)),
        "list": pa.array([[1, 2], None, []], pa.list_(pa.int64())),
        "fixed": pa.array([[1.0, 2.0], [3.0, 4.0], None], pa.list_(pa.float32(), 2)),
        "words": pa.array([["a", "b"], [], ["c"]]),
        "dict": pa.array(["x", "y", "x"]).dictionary_encode(),
        "nothing": pa.nulls(3),
    }
    table = pa.table(columns)
    for source in (table, table.to_batches()[0], table.slice(0, 3)):
        (batch,) = from_arrow(source)
        assert "nothing" not in batch
        assert batch["i8"][[0, 2]].tolist() == [1, 3]
        assert batch.present["i8"].tolist() == [True, False, True]
        assert batch["u32"].dtype == np.uint32
        assert batch["f16"].tolist() == [1, 2, 3]
        assert batch.present["f64"].tolist() == [True, True, False]
        assert batch["flag"][[0, 2]].tolist() == [True, False]
        assert batch["s"].tolist() == [b"a", b"", b"ccc"]
        assert batch["ls"].tolist() == [b"a", b"bb", b""]
        assert batch["view"].tolist() == [b"short", b"a value longer than twelve bytes", b""]
        assert [batch["b2"][row] for row in (0, 2)] == [b"\x00a", b"cd"]
        assert batch.present["b2"].tolist() == [True, False, True]
        assert batch["b2s"].tolist() == [[b"ab", b"cd"], [], [b"ef"]]
        assert batch["b0"].tolist() == [b"", b"", b""]
        assert batch["list"].tolist() == [[1, 2], [], []]
        assert batch["fixed"][1].tolist() == [3, 4]
        assert batch["words"].tolist() == [[b"a", b"b"], [], [b"c"]]
        assert batch["dict"].tolist() == [b"x", b"y", b"x"]
    (part,) = from_arrow(table.slice(1, 2))
    assert part["u32"].tolist() == [2, 3]
    assert part["b2"][1] == b"cd"
    assert part["b2s"].tolist() == [[], [b"ef"]]
    assert part["list"].tolist() == [[], []]
    assert part["words"].tolist() == [[], [b"c"]]
    assert part["s"].tolist() == [b"", b"ccc"]
    assert part.present["flag"].tolist() == [False, True]
    assert part["view"].tolist() == [b"a value longer than twelve bytes", b""]
    assert part["dict"].tolist() == [b"y", b"x"]
    assert part["fixed"][0].tolist() == [3, 4]


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("shape", [(2, 3), (-1, 3), (1, 2, 3), (-1, 1, 3)])
def test_byte_strings_keep_their_axes(tmp_path: Path, shape: tuple[int, ...], absent: bool) -> None:
    words = [b"a", b"bb", b"", b"c", b"d", b"\xff"]
    rows = [
        example({"w": words}),
        *([example({"k": [1]})] if absent else []),
        example({"w": words[::-1]}),
    ]
    path = put(tmp_path / "a", *rows)
    schema = {"w": Feature("bytes", shape, required=not absent)}
    table = pa.table(to_arrow(path, schema=schema))
    table.validate(full=True)
    expected = [np.array(w, object).reshape(shape).tolist() for w in (words, words[::-1])]
    if absent:
        expected.insert(1, None)
    assert table["w"].to_pylist() == expected
    again = [parse(p) for p in written(tmp_path / "b", table)]
    assert [row.get("w", ("bytes", None))[1] for row in again] == [
        words,
        *([None] if absent else []),
        words[::-1],
    ]


@pytest.mark.parametrize("wide", [False, True])
def test_list_views_lie_anywhere_in_their_values(wide: bool) -> None:
    made = pa.LargeListViewArray if wide else pa.ListViewArray
    size = pa.int64() if wide else pa.int32()
    spans = pa.array([3, 0, 9, 1, 0], size), pa.array([1, 2, 1, 3, 0], size)
    mask = pa.array([False, False, True, False, False])
    for values in ([7, 8, 9, 10], [b"a", b"", b"ccc", b"d"], [[1], [], [2, 3], [4]]):
        column = made.from_arrays(*spans, pa.array([*values, *values, *values]), mask=mask)
        expected = [values[3:4], values[:2], [], values[1:4], []]
        for start in (0, 1, 3):
            (batch,) = from_arrow(pa.table({"x": column}).slice(start))
            assert batch["x"].tolist() == expected[start:]
            assert batch.present["x"].tolist() == [i != 2 for i in range(start, 5)]


def test_structs_become_names_with_a_slash() -> None:
    column = pa.array([{"a": 1, "b": {"c": 2.5}}, None, {"a": None, "b": None}])
    (batch,) = from_arrow(pa.table({"s": column, "t": [1, 2, 3]}))
    assert sorted(batch) == ["s/a", "s/b/c", "t"]
    assert batch.present["s/a"].tolist() == [True, False, False]
    assert batch.present["s/b/c"].tolist() == [True, False, False]
    assert batch["s/b/c"][0] == 2.5


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array([1], pa.timestamp("us")), "column 'x' holds timestamps, .*: cast it to int64"),
        (pa.array([1], pa.timestamp("ns", "UTC")), "holds timestamps"),
        (pa.array([1], pa.date32()), "holds dates .date32.*cast it to int32"),
        (pa.array([86_400_000], pa.date64()), "holds dates .date64.*cast it to int64"),
        (pa.array([1], pa.time32("s")), "holds times of day.*time32 to int32"),
        (pa.array([1], pa.time64("ns")), "holds times of day.*time64 to int64"),
        (pa.array([1], pa.duration("s")), "holds durations.*cast it to int64"),
        (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "holds calendar intervals"),
        (pa.array([1], pa.decimal128(5, 2)), "holds decimals.*cast it to float64"),
        (pa.array([[1, None]], pa.list_view(pa.int64())), "null inside a list"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())), "holds maps.*two columns"),
        (pa.array([[{"a": 1}]]), "holds structs inside lists.*for each of their fields"),
        (pa.array([[]]), "holds lists of nulls without a type.*cast it to a list"),
        (pa.RunEndEncodedArray.from_arrays([1], [5]), "run-end encoded.*run_end_decode"),
        (pa.array([[1, None]]), "null inside a list"),
        (pa.array([[1, None]], pa.list_(pa.int64(), 2)), "null inside a list"),
    ],
)
def test_what_no_example_can_hold_is_refused(column: object, text: str) -> None:
    with pytest.raises(EncodeError, match=text):
        list(from_arrow(pa.table({"x": column})))


@pytest.mark.parametrize(
    ("table", "name"),
    [
        (pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]), "a"),
        (pa.table({"s": pa.array([{"b": 1}]), "s/b": [2]}), "s/b"),
    ],
)
def test_two_columns_of_one_name_are_refused(table: object, name: str) -> None:
    with pytest.raises(EncodeError, match=f"two columns are named '{name}'.*rename") as caught:
        list(from_arrow(table))
    assert caught.value.feature == name


def test_other_things_are_no_arrow_data(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a dict is no Arrow data"):
        list(from_arrow({}))
    with pytest.raises(EncodeError, match="must be a table"):
        list(from_arrow(pa.chunked_array([[1]])))
    with pytest.raises(UsageError, match="at least 1"):
        to_arrow(tmp_path, batch_size=0)
    reader = pa.RecordBatchReader.from_batches(
        pa.schema([("x", pa.int64())]),
        (_ for _ in [1]),  # no batch at all
    )
    with pytest.raises(UsageError, match="the Arrow stream failed"):
        list(from_arrow(reader))


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "i": st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
                "f": st.none() | st.floats(width=32, allow_nan=False),
                "s": st.none() | st.text(st.characters(codec="utf-8"), max_size=15),
                "l": st.none() | st.lists(st.integers(0, 300), max_size=3),
                "w": st.none() | st.lists(st.binary(max_size=3), max_size=3),
            }
        ),
        max_size=10,
    ),
    st.integers(0, 4),
)
def test_tables_come_back_whatever_they_hold(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict], skip: int
) -> None:
    schema = pa.schema(
        [
            ("i", pa.int64()),
            ("f", pa.float32()),
            ("s", pa.string()),
            ("l", pa.list_(pa.int64())),
            ("w", pa.list_(pa.binary())),
        ]
    )
    table = pa.Table.from_pylist(rows, schema=schema).slice(skip)
    folder = tmp_path_factory.mktemp("arrow")
    written(folder / "a", table)
    ours = {
        "i": Feature("int64", (), required=False),
        "f": Feature("float", (), required=False),
        "s": Feature("bytes", (), dtype="str", required=False),
        "l": Feature("int64", required=False),
        "w": Feature("bytes", required=False),
    }
    again = pa.table(to_arrow(folder / "a", schema=ours, batch_size=3))
    again.validate(full=True)
    assert again.to_pylist() == table.to_pylist()


def test_ragged_of_ragged_leaves_by_its_own_offsets(tmp_path: Path) -> None:
    nested = Ragged(Ragged(np.arange(6), np.array([0, 2, 3, 6])), np.array([0, 1, 3]))
    with Writer(tmp_path / "a", sequence=True) as writer:
        writer.write_batch({"x": nested})
    assert pa.table(to_arrow(tmp_path / "a")).to_pydict() == {"x": [[[0, 1]], [[2], [3, 4, 5]]]}
    assert _core.count((tmp_path / "a").read_bytes()).records == 2

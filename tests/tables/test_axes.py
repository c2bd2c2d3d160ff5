"""Arrays keep their axes through Parquet and Arrow files, whatever their shapes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrio
from tfrio.errors import EncodeError, SchemaError, TfrioWarning
from tfrio.tables import axes, convert

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Rows = list[dict[str, Any]]


def counted(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def folder_of(place: Path, files: Sequence[Rows], **options: Any) -> Path:
    place.mkdir()
    for number, rows in enumerate(files):
        with tfrio.Writer(place / f"{number}.tfrecord", **options) as writer:
            for row in rows:
                writer.write(row)
    return place


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tolist()
    return value


def read(path: Path) -> Rows:
    return [{name: plain(value) for name, value in row.items()} for row in tfrio.read(path)]


def through(source: Path, suffix: str, **options: Any) -> Path:
    """Convert there and back; a warning is an error."""
    table, back = source.parent / f"t{suffix}", source.parent / f"back{suffix}.tfrecord.gz"
    with warnings.catch_warnings():
        warnings.simplefilter("error", TfrioWarning)
        convert(source, table, overwrite=True, **options)
        convert(table, back, overwrite=True, **options)
    return back


def same(source: Path, **options: Any) -> None:
    for suffix in (".parquet", ".arrow"):
        back = through(source, suffix, **options)
        assert read(back) == read(source), suffix
        assert list(tfrio.read_records(back)) == list(tfrio.read_records(source)), suffix


WORDS = np.array([[b"a", b"bb"], [b"", b"d"], [b"x", b"yyy"]], object)
FILES: dict[str, list[Rows]] = {
    "one shape": [[{"x": counted(3, 48, 32), "id": 1}] * 3],
    "absent in some": [[{"x": counted(3, 4, 2), "id": 1}, {"id": 2}]],
    "first axis differs": [[{"x": counted(3, 4, 2)}, {"x": counted(5, 4, 2)}]],
    "axes differ": [[{"x": counted(3, 4, 2)}, {"x": counted(3, 2, 5)}, {"x": counted(7)}, {}]],
    "same size": [[{"x": counted(2, 3)}, {"x": counted(3, 2)}]],
    "no values": [[{"x": counted(0, 4)}, {"x": counted(3, 0)}]],
    "one value": [[{"x": counted(1, 1)}] * 2],
    "byte strings": [[{"x": WORDS}, {"x": WORDS[::-1]}]],
    "byte strings that differ": [[{"x": WORDS}, {"x": WORDS.T}, {}]],
    "one file notes none": [[{"x": counted(3, 4)}] * 2, [{"x": counted(12)}], [{"id": 1}]],
    "files differ": [[{"x": counted(3, 4)}], [{"x": counted(4, 3)}] * 2],
    "files differ in the first axis": [[{"x": counted(3, 4)}] * 2, [{"x": counted(5, 4)}]],
}


@pytest.mark.parametrize("case", list(FILES))
def test_arrays_come_back_in_shape(tmp_path: Path, case: str) -> None:
    same(folder_of(tmp_path / "in", FILES[case]))
    same(tmp_path / "in", batch_size=2)


@pytest.mark.parametrize("steps", [(2, 2), (2, 5)])
def test_steps_come_back_in_shape(tmp_path: Path, steps: tuple[int, int]) -> None:
    first, second = (counted(n, 3) for n in steps)
    source = tmp_path / "s.tfrecord"
    with tfrio.Writer(source) as writer:
        writer.write_sequence({"n": 1, "x": counted(2, 3)}, {"f": [first, second]})
        writer.write_sequence({"n": 2, "x": counted(3, 2)}, {"f": [first]})
        writer.write_sequence({"n": 3}, {"f": []})
    same(source)


def test_steps_that_differ_from_file_to_file_are_lost_with_a_word(tmp_path: Path) -> None:
    files: list[Rows] = [[{"f": [counted(2, 3)] * 2, "n": 1}], [{"f": [counted(3, 2)], "n": 2}]]
    source = folder_of(tmp_path / "in", files, sequence=True)
    for name in ("t.parquet", "t.tfrecord.gz"):
        with pytest.warns(TfrioWarning, match=r"note different things of \['f'\]"):
            convert(source, tmp_path / name)
    convert(tmp_path / "t.parquet", tmp_path / "b.tfrecord")
    for name in ("t.tfrecord.gz", "b.tfrecord"):
        assert list(tfrio.read_records(tmp_path / name)) == list(tfrio.read_records(source))


def test_steps_of_several_files_fit_one_form(tmp_path: Path) -> None:
    files: list[Rows] = [[{"f": [counted(2, 3)] * 2}], [{"f": [counted(5, 3), counted(1, 3)]}]]
    source = folder_of(tmp_path / "in", files, sequence=True)
    for suffix in (".parquet", ".arrow"):
        (one, two) = read(through(source, suffix))
        assert [step[1] for step in one["f"]] == [(2, 3)] * 2
        assert [step[1] for step in two["f"]] == [(5, 3), (1, 3)]


NOTED = {
    "small": ({"x": tfrio.Feature("int64", shape=(2, 3), dtype="uint8")}, "u1"),
    "raw": ({"x": tfrio.Feature("bytes", shape=(2, 3), dtype="uint8", codec="raw")}, "u1"),
    "named": (
        {"x": tfrio.Feature("float", shape=("h", "w")), "h": "int64", "w": "int64"},
        "f4",
    ),
}


@pytest.mark.parametrize("case", list(NOTED))
def test_types_and_packed_arrays_come_back(tmp_path: Path, case: str) -> None:
    schema, dtype = NOTED[case]
    row = {"x": counted(2, 3).astype(dtype)} | {
        n: s for n, s in (("h", 2), ("w", 3)) if n in schema
    }
    same(folder_of(tmp_path / "in", [[row] * 2], schema=schema))


def test_nested_lists_stored_in_two_features_come_back(tmp_path: Path) -> None:
    rows: Rows = [{"x": [[1, 2], [3]]}, {"x": [[], [3]]}]
    same(folder_of(tmp_path / "in", [rows], ragged="split"))


shapes = st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)


@st.composite
def columns(draw: st.DrawFn) -> list[Any]:
    """Draw the values of one feature: of one shape, of one but for the first axis, or of any."""
    kind, shape = draw(st.sampled_from(["<f4", "<i8"])), draw(shapes)
    drawn = draw(
        st.sampled_from([st.just(shape), st.integers(0, 3).map(lambda n: (n, *shape[1:])), shapes])
    )
    made = drawn.map(lambda s: (counted(*s) + len(s)).astype(kind))
    return draw(st.lists(st.one_of(st.none(), made, made), min_size=6, max_size=6))


@settings(max_examples=60, deadline=None)
@given(columns(), columns(), st.integers(1, 6), st.integers(1, 4))
def test_random_arrays_come_back(
    tmp_path_factory: pytest.TempPathFactory, x: list[Any], y: list[Any], cut: int, batch: int
) -> None:
    rows = [{"id": 1, "x": a, "y": b} for a, b in zip(x, y, strict=True)]
    source = folder_of(tmp_path_factory.mktemp("axes") / "in", [rows[:cut], rows[cut:]])
    same(source, batch_size=batch)


def test_data_frames_see_the_axes(tmp_path: Path) -> None:
    source = folder_of(tmp_path / "in", [[{"x": counted(3, 4, 2), "id": 1}] * 2])
    convert(source, tmp_path / "t.parquet")
    table = pq.read_table(tmp_path / "t.parquet")
    assert table["x"].to_pylist() == [counted(3, 4, 2).tolist()] * 2
    frame = table.to_pandas()
    assert np.stack([np.stack(row) for row in frame["x"][0]]).shape == (3, 4, 2)
    polars = pytest.importorskip("polars")
    assert polars.read_parquet(tmp_path / "t.parquet")["x"].to_list() == table["x"].to_pylist()


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_axes_come_back_from_data_frames(tmp_path: Path, frame: str) -> None:
    library = pytest.importorskip(frame)
    rows = [
        {"x": counted(3, 4, 2), "f": counted(k + 1, 3, 2), "w": WORDS, "id": k, "y": counted(2, 3)}
        for k in range(3)
    ]
    del rows[1]["y"]
    source = folder_of(tmp_path / "in", [rows])
    convert(source, tmp_path / "t.parquet")
    table = library.read_parquet(tmp_path / "t.parquet")
    (table.to_parquet if frame == "pandas" else table.write_parquet)(tmp_path / "u.parquet")
    convert(tmp_path / "u.parquet", tmp_path / "b.tfrecord")
    back = read(tmp_path / "b.tfrecord")
    assert [list(row) for row in back] == [sorted(row) for row in rows]
    assert back == read(source)


def test_ragged_lists_of_others_are_no_arrays(tmp_path: Path) -> None:
    lists: list[Any] = [[[1, 2], [3, 4]], None, []]
    pq.write_table(pa.table({"x": lists}), tmp_path / "a.parquet")
    convert(tmp_path / "a.parquet", tmp_path / "a.tfrecord")
    (one, two, three) = tfrio.read(tmp_path / "a.tfrecord")
    assert (one["x"].tolist(), list(two), three["x"].size) == (lists[0], [], 0)
    pq.write_table(pa.table({"x": [*lists, [[1], [2, 3]]]}), tmp_path / "b.parquet")
    with pytest.raises(EncodeError, match="feature 'x': ragged 2-D value"):
        convert(tmp_path / "b.parquet", tmp_path / "b.tfrecord")


def test_some_features_keep_their_axes(tmp_path: Path) -> None:
    rows = [{"x": counted(2, 3), "y": counted(4, 1)}, {"x": counted(3, 2), "y": counted(1, 4)}]
    source = folder_of(tmp_path / "in", [rows])
    convert(source, tmp_path / "t.parquet", features=["y", "x"])
    convert(tmp_path / "t.parquet", tmp_path / "b.tfrecord", features=["y"])
    assert [
        {n: v.shape for n, v in row.items()} for row in tfrio.read(tmp_path / "b.tfrecord")
    ] == [
        {"y": (4, 1)},
        {"y": (1, 4)},
    ]


@pytest.mark.parametrize("change", ["sorted", "cut", "filled"])
def test_notes_of_rows_are_not_believed_of_other_rows(tmp_path: Path, change: str) -> None:
    rows = [{"x": counted(2, 3), "id": 2}, {"x": counted(3, 2) + 1, "id": 1}]
    convert(folder_of(tmp_path / "in", [rows]), tmp_path / "t.parquet")
    table = pq.read_table(tmp_path / "t.parquet")
    changed = {
        "sorted": lambda: table.sort_by("id"),
        "cut": lambda: table.slice(0, 1),
        "filled": lambda: table.set_column(
            table.schema.get_field_index("x"), table.schema.field("x"), pc.take(table["x"], [0, 0])
        ),
    }[change]()
    pq.write_table(changed, tmp_path / "c.parquet")
    with pytest.warns(TfrioWarning, match="column 'x' is not what it was .* flat lists"):
        convert(tmp_path / "c.parquet", tmp_path / "b.tfrecord")
    assert {row["x"].shape for row in tfrio.read(tmp_path / "b.tfrecord")} == {(6,)}


def test_tables_of_others_say_nothing_of_axes(tmp_path: Path) -> None:
    rows = [{"x": counted(2, 3)}, {"x": counted(3, 2)}]
    convert(folder_of(tmp_path / "in", [rows]), tmp_path / "t.parquet")
    table = pq.read_table(tmp_path / "t.parquet")
    doubled = table.cast(pa.schema([("x", pa.list_(pa.float64()))], table.schema.metadata))
    pq.write_table(doubled, tmp_path / "d.parquet")
    convert(tmp_path / "d.parquet", tmp_path / "d.tfrecord")
    assert {row["x"].shape for row in tfrio.read(tmp_path / "d.tfrecord")} == {(6,)}
    pq.write_table(table.replace_schema_metadata({"tfrio:axes": "[]"}), tmp_path / "e.parquet")
    with pytest.warns(TfrioWarning, match="axes noted in its metadata are not readable"):
        convert(tmp_path / "e.parquet", tmp_path / "e.tfrecord")
    assert {row["x"].shape for row in tfrio.read(tmp_path / "e.tfrecord")} == {(6,)}


def test_notes_too_long_for_a_table_are_left_out_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(axes, "_LONGEST", 10)
    source = folder_of(tmp_path / "in", [[{"x": counted(2, 3)}, {"x": counted(3, 2)}]])
    with pytest.warns(TfrioWarning, match=r"axes of \['x'\] differ .* too often"):
        convert(source, tmp_path / "t.parquet")
    assert not pq.read_schema(tmp_path / "t.parquet").metadata


class TestArchive:
    """NumPy archives have one shape for all rows."""

    def test_one_shape_comes_back(self, tmp_path: Path) -> None:
        source = folder_of(tmp_path / "in", [[{"x": counted(3, 4, 2)}], [{"x": counted(3, 4, 2)}]])
        assert read(through(source, ".npz")) == read(source)

    @pytest.mark.parametrize("case", ["first axis differs", "axes differ", "one file notes none"])
    def test_other_axes_are_lost_with_a_word(self, tmp_path: Path, case: str) -> None:
        source = folder_of(tmp_path / "in", FILES[case])
        with pytest.warns(TfrioWarning, match="cannot tell the axes of 'x'"):
            convert(source, tmp_path / "t.npz")
        convert(tmp_path / "t.npz", tmp_path / "b.tfrecord")
        assert list(tfrio.read_records(tmp_path / "b.tfrecord")) == list(tfrio.read_records(source))

    def test_what_no_array_can_be(self, tmp_path: Path) -> None:
        steps: Rows = [{"f": [counted(2, 3)] * 2}]
        folder_of(tmp_path / "steps", [steps], sequence=True)
        folder_of(tmp_path / "words", [[{"f": WORDS}]])
        for name in ("steps", "words"):
            with pytest.raises(SchemaError, match="'f' holds lists of byte strings or steps"):
                convert(tmp_path / name, tmp_path / "t.npz")
        assert not (tmp_path / "t.npz").exists()

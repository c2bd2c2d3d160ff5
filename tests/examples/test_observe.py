"""Learning schemas: from the wire, over samples and whole sets, joined like a lattice."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples.helpers import KINDLESS, Empty, example, put, sequence
from tfrio import _core
from tfrio.errors import CorruptRecordError, DecodeError, FeatureKindError, NotTFRecordError
from tfrio.examples.decode import read
from tfrio.examples.infer import infer_schema, observe
from tfrio.examples.observe import Observation, Seen, Sighting
from tfrio.examples.schema import Feature, Schema
from tfrio.examples.stats import stats
from tfrio.records.counting import count


def test_lengths_and_absence_over_all_records(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a",
        example({"one": [1], "two": [1.0, 2.0], "any": [b"a"], "rare": [1], "none": KINDLESS}),
        example({"one": [2], "two": [3.0, 4.0], "any": [b"b", b"c"], "none": KINDLESS}),
    )
    assert infer_schema(path) == Schema(
        {
            "any": Feature("bytes"),
            "none": Feature("unknown", required=False),
            "one": Feature("int64", (1,)),
            "rare": Feature("int64", (1,), required=False),
            "two": Feature("float", (2,)),
        }
    )
    assert infer_schema(path, scalars=True)["one"].shape == ()
    assert infer_schema(path, scalars=True)["two"].shape == (2,)


def test_one_null_breaks_nothing(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a", example({"a": [1]}), example({"a": KINDLESS}), example({"b": [b"x"]})
    )
    schema = infer_schema(path)
    assert (schema["a"].kind, schema["a"].required) == ("int64", False)
    assert (schema["b"].kind, schema["b"].required) == ("bytes", False)


def test_a_list_of_one_in_the_sample_is_a_list(tmp_path: Path) -> None:
    records = [example({"tags": [b"a"]})] * 1000 + [example({"tags": [b"b", b"c"]})]
    path = put(tmp_path / "a", *records)
    sampled = infer_schema(path, sample=100)["tags"]
    assert sampled.shape is None
    assert sampled.describe() == "list<bytes> (length 1 so far)"
    assert infer_schema(path)["tags"].describe() == "list<bytes> (1 to 2 values)"
    first = infer_schema(put(tmp_path / "b", *records[:3]))
    second = infer_schema(put(tmp_path / "c", records[-1]))
    assert first["tags"].shape == (1,)
    assert first.merge(second)["tags"].shape is None


def test_an_empty_column_keeps_the_kind_of_the_wire(tmp_path: Path) -> None:
    first = put(tmp_path / "a", *[example({"x": Empty("int64_list")})] * 3)
    second = put(tmp_path / "b", example({"x": [4]}))
    assert infer_schema(first)["x"].kind == "int64"
    assert infer_schema([first, second])["x"] == Feature("int64")
    kindless = put(tmp_path / "c", example({"x": KINDLESS}))
    assert infer_schema(kindless)["x"].kind == "unknown"
    assert infer_schema([kindless, second])["x"].kind == "int64"


def test_empty_files_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "e").write_bytes(b"")
    three = put(tmp_path / "t", *(example({"id": [k]}) for k in range(3)))
    assert infer_schema([str(tmp_path / "e"), three]) == infer_schema(three)
    assert infer_schema(str(tmp_path / "e")) == Schema()


def test_two_kinds_name_the_first_record_of_each(tmp_path: Path) -> None:
    first = put(tmp_path / "a", *[example({"x": [1]})] * 3)
    second = put(tmp_path / "b", example({"x": [1]}), example({"x": [0.5]}))
    with pytest.raises(FeatureKindError) as caught:
        infer_schema([first, second])
    assert "int64 first in record 0 of" in str(caught.value)
    assert f"float first in record 1 of {second}" in str(caught.value)
    seen, whole = observe([first, second])
    assert whole
    assert [s.name for s in seen.conflicts()] == ["x"]
    assert seen.features["x", "context"].kinds == {
        "int64": Sighting(4, first, 0),
        "float": Sighting(1, second, 1),
    }


def test_the_order_of_files_decides_which_kind_came_first() -> None:
    seen = Seen("x", "context", {"float": Sighting(1, "a", 900)})
    seen.add(Seen("x", "context", {"int64": Sighting(1, "b", 0)}))
    assert seen.kind == "float"


def test_feature_lists_and_shared_names(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a",
        sequence({"x": [1]}, {"x": [[1, 2], [3, 4]], "s": [[b"a"], Empty("bytes_list")]}),
    )
    schema = infer_schema(path)
    assert schema["context/x"] == Feature("int64", (1,), name="x")
    assert (schema["x"].place, schema["x"].lengths) == ("list", (2, 2))
    assert schema["s"].lengths == (0, 1)
    assert schema.sequence


def test_a_sample_stops_where_it_says(tmp_path: Path) -> None:
    path = put(tmp_path / "a", *(example({"x": [k]}) for k in range(50)))
    seen, whole = observe(path, sample=20)
    assert (seen.records, whole) == (20, False)
    seen, whole = observe(path, sample=50)
    assert seen.records == 50
    assert observe(path)[1]


def test_damage_and_strangers_stop_it(tmp_path: Path) -> None:
    path = Path(put(tmp_path / "a", *(example({"x": [k]}) for k in range(3))))
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError, match="record 2"):
        infer_schema(str(path))
    bad = put(tmp_path / "b", b"\x0a\x05ab")
    with pytest.raises(DecodeError):
        infer_schema(bad)
    page = tmp_path / "page.html"
    page.write_text("<!DOCTYPE html><html>no such object</html>")
    with pytest.raises(NotTFRecordError, match="HTML"):
        infer_schema(str(page))


@pytest.mark.parametrize("beyond", [-1, 0, 1])
@pytest.mark.parametrize("look", [observe, infer_schema, stats, count], ids=lambda f: f.__name__)
def test_a_cut_at_the_end_of_a_window_is_told(
    tmp_path: Path, look: Callable[[str], object], beyond: int
) -> None:
    window = 1 << 20  # bytes a stream takes at once from compressed data
    frame = _core.frame([example({"x": [b"x" * 1000]})])
    data = frame * (window // len(frame) + 1)
    assert window % len(frame) > 1
    path = tmp_path / "cut.tfrecord.gz"
    path.write_bytes(gzip.compress(data[: window + beyond], 1))
    with pytest.raises(
        CorruptRecordError, match=f"payload cut: .* {window // len(frame)} whole records"
    ):
        look(str(path))


ROWS = st.lists(
    st.dictionaries(
        st.sampled_from("abc"),
        st.one_of(
            st.just(KINDLESS),
            st.just(Empty("float_list")),
            st.lists(st.just(0.5), min_size=1, max_size=3),
        ),
        max_size=3,
    ),
    max_size=8,
)


@given(ROWS, st.integers(0, 8), st.randoms(use_true_random=False))
def test_joining_parts_in_any_order_equals_the_whole(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict], cut: int, rng: random.Random
) -> None:
    folder = tmp_path_factory.mktemp("observe")
    payloads = [example(row) for row in rows]
    parts = [payloads[:cut], payloads[cut:]]
    rng.shuffle(parts)
    whole = observe(put(folder / "all", *payloads))[0]
    joined = Observation()
    for k, part in enumerate(parts):
        joined.join(observe(put(folder / f"part{k}", *part))[0])
    assert joined.records == whole.records
    assert joined.schema(fixed=True) == whole.schema(fixed=True)


def test_a_file_of_steps_without_a_kind_alone_leaves_no_scalar(tmp_path: Path) -> None:
    bare = put(tmp_path / "a", sequence({}, {"L": [KINDLESS]}))
    one = put(tmp_path / "b", sequence({}, {"L": [[1], [2]]}))
    for paths in ([bare, one], [one, bare]):
        schema = infer_schema(paths, scalars=True)
        assert schema["L"].shape is None
        assert schema["L"].lengths == (0, 1)
        assert sum(len(row["L"]) for row in read(paths, schema=schema)) == 3

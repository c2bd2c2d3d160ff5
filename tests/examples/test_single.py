"""Single records straight to rows: the same as over columns, and errors told alike."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples.helpers import KINDLESS, Empty, example, put, sequence
from tfrio.errors import TfrioError
from tfrio.examples.opened import ExampleSequence
from tfrio.examples.opened import open as tfrio_open
from tfrio.examples.schema import Feature
from tfrio.examples.single import row_decoder

NAMES = ["a", "b", "c", "é", "a/long/name"]
VALUES = {
    "float": st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=6),
    "int64": st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6),
    "bytes": st.lists(st.binary(max_size=5) | st.just("ä".encode()), min_size=1, max_size=4),
}
EMPTY = {"float": "float_list", "int64": "int64_list", "bytes": "bytes_list"}


def same(got: Any, expected: Any) -> bool:
    """Compare rows to the last type and axis."""
    if type(got) is not type(expected):
        return False
    if isinstance(got, dict):
        return list(got) == list(expected) and all(same(got[k], expected[k]) for k in got)
    if isinstance(got, list):
        return len(got) == len(expected) and all(map(same, got, expected))
    if isinstance(got, np.ndarray | np.generic):
        return (
            got.dtype == expected.dtype
            and got.shape == expected.shape
            and got.tobytes() == expected.tobytes()
        )
    return bool(got == expected)


def values_of(kind: str) -> st.SearchStrategy[Any]:
    return VALUES[kind] | st.just(Empty(EMPTY[kind])) | st.just(KINDLESS)


@st.composite
def files(draw: st.DrawFn) -> tuple[list[bytes], dict[str, str], dict[str, str]]:
    """Payloads whose features mostly, but not always, have one kind and length."""
    kinds = st.sampled_from(sorted(VALUES))
    context = draw(st.dictionaries(st.sampled_from(NAMES), kinds, max_size=4))
    lists = draw(st.dictionaries(st.sampled_from(["s", "t"]), kinds, max_size=2))
    usual = {name: draw(VALUES[kind]) for name, kind in context.items()}
    found = []
    for _ in range(draw(st.integers(1, 5))):
        row = {n: draw(st.just(usual[n]) | values_of(k)) for n, k in context.items()}
        row = {n: v for n, v in row.items() if draw(st.integers(0, 5))}
        steps = {n: draw(st.lists(values_of(k), max_size=3)) for n, k in lists.items()}
        found.append(sequence(row, steps) if lists else example(row))
    return found, context, lists


@st.composite
def features(draw: st.DrawFn, kind: str, place: str) -> Feature:
    """A feature of a schema, plain or not."""
    options: dict[str, Any] = {"place": place, "required": draw(st.booleans())}
    shapes = [None, (), (1,), (-1,), (2,), (1, 2), (-1, 2), (2, -1), (0,)]
    options["shape"] = draw(st.sampled_from(shapes if kind != "bytes" else shapes[:5]))
    if kind == "bytes":
        options["dtype"] = draw(st.sampled_from([None, "str"]))
    if kind == "int64":
        options["dtype"] = draw(st.sampled_from([None, "int64", "int16"]))
    if place == "context" and draw(st.booleans()):
        pairs = options["shape"] in ((-1, 2), (2, -1))  # one value alone cannot be such an array
        options["default"] = b"x" if kind == "bytes" else (7, 7) if pairs else 7
    return Feature(kind, **options)  # type: ignore[arg-type]


def row_or_error(ds: ExampleSequence, which: Any) -> Any:
    try:
        found = ds[which]
    except TfrioError as error:
        return type(error), str(error)
    return found[0] if isinstance(found, list) else found


def check_all(path: str, count: int, schema: Any = None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        single = tfrio_open(path, schema=schema, index="memory")
        listed = tfrio_open(path, schema=schema, index="memory")
    for i in [*range(count), *range(count)]:
        got, expected = row_or_error(single, i), row_or_error(listed, [i])
        assert same(got, expected), (i, got, expected)


@given(files())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_without_a_schema_rows_are_those_over_columns(tmp_path: Path, made: Any) -> None:
    payloads, _, _ = made
    check_all(put(tmp_path / "a", *payloads), len(payloads))


@given(st.data())
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_by_a_schema_rows_are_those_over_columns(tmp_path: Path, data: st.DataObject) -> None:
    payloads, context, lists = data.draw(files())
    schema = {n: data.draw(features(k, "context")) for n, k in context.items()}
    schema |= {n: data.draw(features(k, "list")) for n, k in lists.items()}
    if "a" in schema:  # two keys, one stored feature
        schema["again"] = Feature(
            schema["a"].kind, schema["a"].shape, name="a", default=schema["a"].default
        )
    check_all(put(tmp_path / "a", *payloads), len(payloads), schema)


def test_plain_records_do_not_go_over_columns(tmp_path: Path) -> None:
    payloads = [
        sequence({"v": [float(i)] * 6, "id": [i], "name": [b"n%d" % i]}, {"t": [[i], [i, 2]]})
        for i in range(4)
    ]
    path = put(tmp_path / "a", *payloads)
    schema = {
        "v": Feature("float", (2, 3)),
        "id": Feature("int64", ()),
        "name": Feature("bytes", (), dtype="str"),
        "t": Feature("int64", place="list"),
    }
    for given_schema in (None, schema):
        ds = tfrio_open(path, schema=given_schema, index="memory")
        decoder = row_decoder(ds._row_forms()[""], bound=given_schema is not None, utf8="strict")
        row = decoder.row(Path(path).read_bytes(), 0, True)
        assert row is not None
        assert same(row, ds[[0]][0])
        assert row["v"].flags.writeable


@pytest.mark.parametrize("size", [100, 3000, 9000, 200_000])
def test_rows_of_any_size_keep_their_values(tmp_path: Path, size: int) -> None:
    rows = [{"x": [float(k + i) for i in range(size)], "y": [k] * 3} for k in range(3)]
    ds = tfrio_open(put(tmp_path / "a", *map(example, rows)), index="memory")
    kept = [ds[k] for k in (2, 0, 1)]
    for row, k in zip(kept, (2, 0, 1), strict=True):
        np.testing.assert_array_equal(row["x"], np.arange(k, k + size, dtype=np.float32))
        np.testing.assert_array_equal(row["y"], [k] * 3)


def test_two_keys_read_one_large_feature(tmp_path: Path) -> None:
    values = [float(i) for i in range(30_000)]
    path = put(tmp_path / "a", example({"x": values}))
    schema = {"x": Feature("float", (100, 300)), "flat": Feature("float", (30_000,), name="x")}
    row = tfrio_open(path, schema=schema, index="memory")[0]
    assert row["x"].shape == (100, 300)
    assert row["flat"].tolist() == values


def test_a_damaged_record_is_told_with_its_place(tmp_path: Path) -> None:
    path = put(tmp_path / "a", *(example({"x": [k]}) for k in range(3)))
    ds = tfrio_open(path, index="memory")
    assert ds[1]["x"].tolist() == [1]
    data = bytearray(Path(path).read_bytes())
    data[-6] ^= 1
    Path(path).write_bytes(data)
    with pytest.raises(TfrioError, match="record 2"):
        ds[2]
    assert ds[-3]["x"].tolist() == [0]
    assert ds[np.int64(1)]["x"].tolist() == [1]

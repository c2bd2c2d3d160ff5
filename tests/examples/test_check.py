"""Checking records against a schema."""

from __future__ import annotations

import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.examples.helpers import KINDLESS, Empty, example, put, sequence
from tfrio.errors import DecodeError, SchemaError
from tfrio.examples.check import check_schema
from tfrio.examples.decode import read
from tfrio.examples.infer import infer_schema
from tfrio.examples.schema import Feature
from tfrio.survey import info


def test_what_was_learned_fits(tmp_path: Path) -> None:
    path = put(tmp_path / "a", example({"x": [1], "y": [1.0, 2.0]}), example({"x": [2]}))
    found = check_schema(path, infer_schema(path))
    assert found.ok
    assert (found.records, found.unlisted) == (2, ())


def test_every_misfit_is_named_at_once(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a",
        example({"x": [1], "y": [1.0], "z": [1]}),
        example({"x": [0.5], "y": [1.0, 2.0]}),
        example({"x": [1], "y": Empty("float_list")}),
    )
    schema = {
        "x": Feature("int64", ()),
        "y": Feature("float", (2,)),
        "q": Feature("bytes", default=b""),
        "w": Feature("bytes"),
    }
    found = check_schema(path, schema)
    assert found.problems == (
        f"feature 'x' is float_list in 1 records (the first is record 1 of {path}); the schema "
        "says int64",
        "feature 'y' has 0 to 2 values in a record; the schema says 2",
        "feature 'w' is required and missing in 3 of 3 records; give a default or mark it optional",
    )
    assert found.unlisted == ("z",)


def test_steps_and_helpers(tmp_path: Path) -> None:
    path = put(tmp_path / "a", sequence({"n": [1]}, {"s": [[1, 2]]}))
    schema = {
        "s": Feature("int64", (3,), place="list"),
        "r": Feature("int64", ("n",), required=False),
    }
    found = check_schema(path, schema)
    assert found.problems == ("feature 's' has 2 values in a step; the schema says 3",)
    assert found.unlisted == ()


def test_steps_without_a_kind_have_no_values(tmp_path: Path) -> None:
    path = put(tmp_path / "a", sequence({}, {"s": [KINDLESS]}))
    (problem,) = check_schema(path, {"s": Feature("int64", (3,), place="list")}).problems
    assert problem == "feature 's' has 0 values in a step; the schema says 3"
    assert check_schema(path, {"s": Feature("int64", place="list")}).ok


RAW: dict[str, Any] = {"codec": "raw", "dtype": "int16"}


@pytest.mark.parametrize(
    ("feature", "good", "bad", "why"),
    [
        (Feature("int64", (), dtype="int8"), [7], [300], "300 does not fit int8"),
        (Feature("int64", dtype="bool"), [0, 1], [0, 2], "2 does not fit bool"),
        (Feature("float", (), dtype="float16"), [0.5], [1e6], "1000000.0 does not fit float16"),
        (Feature("bytes", (), dtype="str"), [b"a"], [b"\xff"], "is no UTF-8 text"),
        (Feature("bytes", (2,), **RAW), [b"abcd"], [b"abcdef"], "3 values cannot form (2,)"),
        (Feature("bytes", codec="image"), [b""], [b"no image"], "not an image"),
        (Feature("float", (-1, 2)), [1.0, 2.0], [1.0], "1 values cannot form (-1,2)"),
        (Feature("float", ("h", "w")), [1.0] * 6, [1.0] * 5, "5 values cannot form (2,3)"),
        (Feature("float", row_lengths=("n",)), [1.0] * 3, [1.0] * 4, "do not add up"),
    ],
)
def test_values_that_reading_cannot_change_are_told_with_their_place(
    tmp_path: Path, feature: Feature, good: list[Any], bad: list[Any], why: str
) -> None:
    more = {"h": [2], "w": [3], "n": [1, 2]}
    rows = [example({"x": values, **more}) for values in (good, good, bad, bad)]
    path = put(tmp_path / "a", *rows)
    offset = 2 * (len(rows[0]) + 16)
    (problem,) = check_schema(path, {"x": feature}).problems
    assert problem.startswith("feature 'x'")
    assert why in problem
    assert f"record 2 of {path}" in problem
    assert problem.endswith(f"(offset {offset})")
    report = info(path, schema={"x": feature}).schema
    assert report is not None
    assert report.problems == (problem,)
    assert check_schema(path, {"x": feature}, sample=2).ok


def test_each_feature_is_told_once_beside_what_lacks(tmp_path: Path) -> None:
    path = put(tmp_path / "a", example({"x": [300], "y": [-1], "h": [1.0]}))
    schema = {
        "z": Feature("float"),
        "y": Feature("int64", dtype="uint8"),
        "x": Feature("int64", dtype="int8"),
        "s": Feature("float", ("h",), required=False),
    }
    missing, first, second, axis = check_schema(path, schema).problems
    assert "'z' is required" in missing
    assert "-1 does not fit uint8" in first
    assert "300 does not fit int8" in second
    assert "'h' is float_list" in axis


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.sampled_from([0, 1, 2, 3, 300, -1, 1 << 40]),
    "float": st.sampled_from([0.0, 1.5, 1e6]),
    "bytes": st.sampled_from(
        [b"", b"ab", b"abcd", b"\xff", zlib.compress(struct.pack("<2h", 1, 2))]
    ),
}
SHAPES = [None, (), (1,), (2,), (-1,), (-1, 2), (2, -1), ("h",), ("h", "w"), (1, 2)]
DTYPES = {"int64": ["int8", "uint8", "bool", "float16"], "float": ["float16", "float64"]}


@st.composite
def stored(draw: st.DrawFn) -> Any:
    """Return the values of one feature of a record."""
    kind = draw(st.sampled_from(sorted(VALUES)))
    lists = st.lists(VALUES[kind], min_size=1, max_size=4)
    return draw(lists | st.sampled_from([KINDLESS, Empty(f"{kind}_list")]))


@st.composite
def features(draw: st.DrawFn, *, axis: bool = False) -> Feature:
    """Return a feature that can be made; one that may serve as an axis."""
    kind: Any = draw(st.sampled_from([*sorted(VALUES), *([] if axis else ["unknown"])]))
    options: dict[str, Any] = {
        "shape": draw(st.sampled_from(SHAPES)),
        "required": draw(st.booleans()),
        "place": "context" if axis else draw(st.sampled_from(["context", "context", "list"])),
    }
    if "h" in (options["shape"] or ()) and (axis or options["place"] == "list"):
        options["shape"] = None
    if kind == "bytes":
        ways = [{}, {"dtype": "str"}, RAW, {**RAW, "codec": "zlib"}, {"codec": "image"}]
        options |= draw(st.sampled_from(ways))
        if "codec" in options:
            options["many"] = draw(st.booleans())
    else:
        options["dtype"] = draw(st.sampled_from([None, *DTYPES.get(kind, [])]))
    if draw(st.booleans()) and options["shape"] is None and "codec" not in options:
        options["row_lengths"] = ("n",)
    if kind != "unknown" and draw(st.booleans()):
        options["default"] = draw(VALUES[kind])
    try:
        return Feature(kind, **options)
    except SchemaError:  # an impossible default, say
        return Feature(kind, required=False)


NAMES = ("x", "y", "h", "w", "n")
CONTEXTS = st.dictionaries(st.sampled_from(NAMES), stored(), max_size=5)
LISTS = st.dictionaries(st.sampled_from(NAMES), st.lists(stored(), max_size=3), max_size=2)
AXES = st.fixed_dictionaries({"h": st.just([2]), "w": st.just([1]), "n": st.just([1, 1])})


@pytest.mark.filterwarnings("ignore:.*holds SequenceExamples")
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_it_says_fits_exactly_where_reading_does_not_raise(data: st.DataObject) -> None:
    schema = data.draw(st.dictionaries(st.sampled_from("xy"), features(), min_size=1))
    schema |= data.draw(st.dictionaries(st.sampled_from("hwn"), features(axis=True), max_size=1))
    rows = []
    for _ in range(data.draw(st.integers(1, 3))):
        context = data.draw(CONTEXTS) | (data.draw(AXES) if data.draw(st.booleans()) else {})
        lists = data.draw(LISTS) if data.draw(st.booleans()) else {}
        rows.append(sequence(context, lists) if lists else example(context))
    with tempfile.TemporaryDirectory() as folder:
        path = put(Path(folder, "a"), *rows)
        assert _verdict(path, schema) == _reads(path, schema)


def _verdict(path: str, schema: dict[str, Feature]) -> bool:
    """Return whether the check says that all records fit."""
    try:
        return check_schema(path, schema).ok
    except (SchemaError, DecodeError):
        return False


def _reads(path: str, schema: dict[str, Feature]) -> bool:
    """Return whether reading does not raise."""
    try:
        for _ in read(path, schema=schema):
            pass
    except (SchemaError, DecodeError) as error:
        event(str(error)[:60])
        return False
    event("reads")
    return True

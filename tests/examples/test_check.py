"""Checking records against a schema."""

from __future__ import annotations

from pathlib import Path

from tests.examples.helpers import Empty, example, put, sequence
from tfrio.examples.check import check_schema
from tfrio.examples.infer import infer_schema
from tfrio.examples.schema import Feature


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

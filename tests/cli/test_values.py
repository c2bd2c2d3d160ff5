"""Values of a record as text and as JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tfrio.cli.values import describe, plain, preview


@pytest.mark.parametrize(
    ("value", "said", "shown"),
    [
        (np.float32([1.5, -2]), "float32 x 2", "1.5 -2"),
        (np.int64([[1, 2, 3]]), "int64 x 1 x 3", "1 2 3"),
        (np.int64(7), "int64", "7"),
        (np.zeros(9, np.float32), "float32 x 9", "0 0 0 0 0 0 0 0 0"),
        (np.zeros((3, 4)), "float64 x 3 x 4", "12 times 0"),
        (np.float32([1.5] * 1200 + [2, 3]), "float32 x 1,202", "1,200 times 1.5, 2 3"),
        (np.full(20, np.nan), "float64 x 20", " ".join(["nan"] * 15) + " ..."),
        (b"ab\xc3\xa7", "bytes, 4 long", "abç"),
        (b"\x00\xff", "bytes, 2 long", "00 ff"),
        (b"\x89PNG\r\n\x1a\n....", "bytes, 12 long", "PNG image"),
        ("word", "text, 4 long", "word"),
        ([b"a", b"bc"], "2 of bytes", "[a, bc]"),
        ([np.int64([1]), np.int64([2, 3])], "2 steps of int64", "[[1], [2 3]]"),
        ([np.int64([]), np.int64([2])], "2 steps of int64", "[[], [2]]"),
        ([[b"a"], [b"bc", b"d"]], "2 steps of bytes", "[[a], [bc, d]]"),
        ([[], []], "2 steps", "[[], []]"),
        ([], "0 steps", "[]"),
        (None, "absent", "None"),
    ],
)
def test_values_for_people(value: object, said: str, shown: str) -> None:
    if isinstance(value, np.int64):
        value = np.array(value)
    assert describe(value) == said
    assert preview(value) == shown


def test_long_values_are_cut() -> None:
    assert preview(np.arange(1000)).endswith(" ...")
    assert len(preview(np.arange(1000))) <= 64
    assert len(preview(b"x" * 500)) <= 60
    assert preview("é".encode() * 400).startswith("éééé")


def test_json_keeps_every_value() -> None:
    row = {
        "text": b"caf\xc3\xa9",
        "raw": b"\x00\xff",
        "numbers": np.float32([0.5, np.nan, -np.inf]),
        "steps": [np.int64([1]), np.int64([])],
        "none": None,
    }
    shown = {name: plain(value) for name, value in row.items()}
    assert json.loads(json.dumps(shown)) == {
        "text": "café",
        "raw": {"base64": "AP8="},
        "numbers": [0.5, "nan", "-inf"],
        "steps": [[1], []],
        "none": None,
    }

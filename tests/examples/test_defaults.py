"""Defaults that no record could be given are refused when the feature is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.examples.helpers import example, put
from tfrio.errors import SchemaError
from tfrio.examples.decode import read
from tfrio.examples.schema import Feature
from tfrio.examples.schema_json import schema_from_json

IMPOSSIBLE = [
    ({"kind": "int64", "shape": (), "dtype": "int8", "default": 300}, "300 does not fit int8"),
    ({"kind": "int64", "dtype": "uint8", "default": (1, -1)}, "-1 does not fit uint8"),
    ({"kind": "int64", "shape": ("h",), "dtype": "bool", "default": 2}, "2 does not fit bool"),
    ({"kind": "int64", "default": 1 << 63}, "does not fit"),
    ({"kind": "float", "dtype": "float16", "default": 1e6}, "does not fit float16"),
    ({"kind": "float", "default": 1e39}, "does not fit float32"),
    ({"kind": "float", "default": 10**400}, "does not fit"),
    ({"kind": "float", "shape": (-1, 4), "default": 0.0}, "1 values cannot form (-1,4)"),
    ({"kind": "bytes", "dtype": "str", "default": b"\xff"}, "no UTF-8 text"),
    ({"kind": "bytes", "default": "\ud800"}, "does not fit"),
    (
        {"kind": "bytes", "codec": "raw", "dtype": "int16", "default": b"abc"},
        "3 bytes are no whole",
    ),
    ({"kind": "bytes", "codec": "zlib", "dtype": "int8", "default": b"abc"}, "not a zlib stream"),
    ({"kind": "bytes", "codec": "tensor", "default": b"abc"}, "not a TensorProto"),
    ({"kind": "bytes", "codec": "image", "default": b"abc"}, "not an image"),
]


@pytest.mark.parametrize(("options", "why"), IMPOSSIBLE)
def test_impossible_defaults_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(SchemaError, match="default") as caught:
        Feature(**options)
    assert why in caught.value.message


def test_an_edited_schema_is_refused_by_the_name_of_its_feature() -> None:
    text = """{"format": "tfrio-schema", "version": 1,
        "features": {"x": {"kind": "int64", "shape": [], "dtype": "int8", "default": 300}}}"""
    with pytest.raises(SchemaError, match="feature 'x': default 300: 300 does not fit int8"):
        schema_from_json(json.loads(text))


@pytest.mark.parametrize(
    ("feature", "given"),
    [
        (Feature("int64", (2, 3), dtype="int8", default=-128), [[-128] * 3] * 2),
        (Feature("float", (-1, 2), default=(0.0, 1.0)), [[0.0, 1.0]]),
        (Feature("float", (), default=float("inf")), float("inf")),
        (Feature("bytes", (2, 1), codec="raw", dtype="int16", default=b"ab\0\0"), [[25185], [0]]),
        (Feature("int64", (0, 3), default=1), []),
    ],
)
def test_others_are_what_an_absent_feature_becomes(
    tmp_path: Path, feature: Feature, given: Any
) -> None:
    path = put(tmp_path / "a", example({"y": [1]}))
    (row,) = read(path, schema={"x": feature})
    assert row["x"].tolist() == given

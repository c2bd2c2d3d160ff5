"""Schemas saved and loaded: our JSON, TFX text, features.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples.helpers import example, put
from tfrio.errors import SchemaError
from tfrio.examples.decode import read
from tfrio.examples.schema import Feature, Schema
from tfrio.examples.schema_files import parse_schema
from tfrio.examples.schema_json import schema_from_json, schema_to_json


@st.composite
def features(draw: st.DrawFn) -> Feature:
    kind = draw(st.sampled_from(["bytes", "float", "int64"]))
    shape = draw(st.none() | st.lists(st.integers(0, 4), max_size=3).map(tuple))
    values = {
        "bytes": st.binary(),
        "float": st.floats(allow_nan=False, width=32),
        "int64": st.integers(-(1 << 63), (1 << 63) - 1),
    }
    return Feature(
        kind,  # type: ignore[arg-type]
        shape,
        required=draw(st.booleans()),
        default=draw(st.none() | values[kind]),
        place=draw(st.sampled_from(["context", "list"])),
        name=draw(st.none() | st.text(max_size=5)),
        lengths=draw(st.none() | st.tuples(st.integers(0, 3), st.integers(3, 9))),
    )


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=6), features(), max_size=4))
def test_json_round_trip(made: dict[str, Feature]) -> None:
    schema = Schema(dict(made))
    again = parse_schema(schema_to_json(schema))
    assert again == schema
    assert [f.lengths for f in again.values()] == [f.lengths for f in schema.values()]


def test_saved_edited_and_passed_back(tmp_path: Path) -> None:
    schema = Schema(
        {
            "x": Feature("float", (2, 3), default=0.5),
            "img": Feature("bytes", ("h", "w"), codec="raw", dtype="uint8", byte_order="big"),
            "words": Feature("bytes", default=(b"\xff", b"")),
        }
    )
    schema.save(tmp_path / "s.json")
    text = (tmp_path / "s.json").read_text()
    assert Schema.load(tmp_path / "s.json") == schema
    assert '"x": {"kind": "float", "shape": [2, 3], "default": 0.5}' in text
    (tmp_path / "s.json").write_text(text.replace('"shape": [2, 3]', '"shape": [3, 2]'))
    edited = Schema.load(tmp_path / "s.json")
    assert edited["x"].shape == (3, 2)
    path = put(tmp_path / "a", example({"x": [0.0] * 6}))
    (row,) = read(path, schema=edited.select(["x"]))
    assert row["x"].shape == (3, 2)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"format": "tfrio-schema", "version": 2, "features": {}}', "version 2 is not 1"),
        ('{"format": "tfrio-schema", "version": 1}', 'an object "features"'),
        ('{"format": "other"}', "neither a schema of tfrio"),
        ('{"format": ', "broken JSON"),
        (
            '{"format": "tfrio-schema", "version": 1, "features": {"x": {"shape": []}}}',
            "'x' needs at least a kind",
        ),
        (
            '{"format": "tfrio-schema", "version": 1, "features": {"x": {"kind": "float", '
            '"shap": 3}}}',
            r"'x' has unknown options \['shap'\]",
        ),
        (
            '{"format": "tfrio-schema", "version": 1, "features": {"x": {"kind": "flot"}}}',
            "'x': kind must be one of",
        ),
        (
            '{"format": "tfrio-schema", "version": 1, "features": {"x": {"kind": "bytes", '
            '"default": {"hex": "00"}}}}',
            "default bytes are written",
        ),
    ],
)
def test_a_broken_schema_is_named(text: str, told: str) -> None:
    with pytest.raises(SchemaError, match=told):
        parse_schema(text)


def test_a_bare_kind_is_a_list_and_other_files_are_refused(tmp_path: Path) -> None:
    made = schema_from_json({"format": "tfrio-schema", "version": 1, "features": {"x": "float"}})
    assert made == Schema({"x": "float"})
    (tmp_path / "s").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SchemaError, match="neither JSON nor text"):
        Schema.load(tmp_path / "s")
    (tmp_path / "s").write_text("{}")
    with pytest.raises(SchemaError, match=r"s: neither a schema"):
        Schema.load(tmp_path / "s")


TFX = """
# generated
feature {
  name: "age"  value_count { min: 1 max: 1 }
  type: FLOAT
  presence { min_fraction: 1.0 min_count: 1 }
  float_domain { min: -1.5e3 }
}
feature: <
  name: 'tags' type: BYTES; presence: { min_count: 1 }
  annotation { tag: "a" "b" comment: ["x", "y\\n"] }
>
feature { name: "box" type: 3 shape { dim { size: 2 } dim { size: 4 } } }
feature { name: "old" type: INT lifecycle_stage: DEPRECATED }
feature { name: "id" type: INT shape { } presence { min_fraction: 1 } }
feature {
  name: "s"
  type: STRUCT
  struct_domain { feature { name: "inner" type: INT value_count { min: 0 max: 3 } } }
}
string_domain { name: "d" value: "v" }
"""


def test_tfx_text() -> None:
    schema = parse_schema(TFX)
    assert dict(schema) == {
        "age": Feature("float", (1,)),
        "tags": Feature("bytes", required=False),
        "box": Feature("float", (2, 4), required=False),
        "id": Feature("int64", ()),
        "s/inner": Feature("int64", required=False),
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no feature in this TFX schema"),
        ("feature { name: 'x' type: FLOAT", "ends within a message"),
        ("feature { name: 'x' type: FLOAT } }", "closes more braces"),
        ("feature { type: FLOAT }", "has no name"),
        ("feature { name: 'x' type: STRUCT }", "'x' has type STRUCT"),
        ("feature { name: }", "field name .* has no value"),
        ("feature $", "line 1"),
        ("feature: 5", "has no name"),
    ],
)
def test_broken_tfx_text(text: str, told: str) -> None:
    with pytest.raises(SchemaError, match=told):
        parse_schema(text)


def tensor(dtype: str, *dims: int, **options: str) -> dict:
    shape = {"dimensions": [str(d) for d in dims]} if dims else {}
    return {"tensor": {"shape": shape, "dtype": dtype, **options}}


FEATURES = {
    "pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict",
    "featuresDict": {
        "features": {
            "id": {"text": {}},
            "label": {"classLabel": {"numClasses": "10"}},
            "flag": tensor("bool"),
            "embed": tensor("float64", 3, 4),
            "free": tensor("int32", -1, 2),
            "packed": tensor("uint16", 5, 6, encoding="zlib"),
            "image": {"image": {"shape": {"dimensions": ["-1", "-1", "3"]}, "dtype": "uint8"}},
            "nested": {
                "sequence": {"feature": {"sequence": {"feature": tensor("int64"), "length": "-1"}}}
            },
            "pair": {"sequence": {"feature": tensor("float32"), "length": "2"}},
            "steps": {
                "sequence": {
                    "length": "-1",
                    "feature": {
                        "featuresDict": {
                            "features": {
                                "action": tensor("float32", 7),
                                "is_last": tensor("bool"),
                                "observation": {
                                    "featuresDict": {
                                        "features": {
                                            "image": {
                                                "image": {
                                                    "shape": {"dimensions": ["2", "2", "3"]},
                                                    "dtype": "uint8",
                                                    "encodingFormat": "png",
                                                }
                                            }
                                        }
                                    }
                                },
                                "text": {"text": {}},
                            }
                        }
                    },
                }
            },
        }
    },
}


def test_features_json() -> None:
    schema = parse_schema(json.dumps(FEATURES))
    assert dict(schema) == {
        "id": Feature("bytes", ()),
        "label": Feature("int64", (), dtype="int64"),
        "flag": Feature("int64", (), dtype="bool"),
        "embed": Feature("float", (3, 4), dtype="float64"),
        "free": Feature("int64", (-1, 2), dtype="int32"),
        "packed": Feature("bytes", (5, 6), dtype="uint16", codec="zlib"),
        "image": Feature("bytes", dtype="uint8", codec="image"),
        "nested": Feature(
            "int64",
            dtype="int64",
            name="nested/ragged_flat_values",
            row_lengths=("nested/ragged_row_lengths_0",),
        ),
        "pair": Feature("float", (2,), dtype="float32"),
        "steps/action": Feature("float", (-1, 7), dtype="float32"),
        "steps/is_last": Feature("int64", (-1,), dtype="bool"),
        "steps/observation/image": Feature(
            "bytes", (2, 2, 3), dtype="uint8", codec="image", many=True
        ),
        "steps/text": Feature("bytes", (-1,)),
    }


def test_nested_sequences_of_features_json_read(tmp_path: Path) -> None:
    schema = parse_schema(json.dumps(FEATURES)).select(["nested"])
    path = put(
        tmp_path / "a",
        example(
            {
                "nested/ragged_flat_values": [1, 2, 3, 4, 5, 6],
                "nested/ragged_row_lengths_0": [2, 1, 3],
            }
        ),
    )
    (row,) = read(path, schema=schema)
    assert [inner.tolist() for inner in row["nested"]] == [[1, 2], [3], [4, 5, 6]]


def test_the_older_form_of_features_json() -> None:
    inner = {"features": {"x": tensor("int64", 3)}}
    old = {"type": "...FeaturesDict", "content": json.dumps(inner)}
    assert parse_schema(json.dumps(old)) == Schema({"x": Feature("int64", (3,), dtype="int64")})


@pytest.mark.parametrize(
    ("node", "told"),
    [
        ({"video_thing": {}, "pythonClassName": "a.b.Video"}, r"no rule for feature 'x' \(Video\)"),
        (tensor("float99"), "unknown dtype 'float99'"),
        (5, "'x' is no object"),
    ],
)
def test_what_features_json_does_not_tell(node: object, told: str) -> None:
    with pytest.raises(SchemaError, match=told):
        parse_schema(json.dumps({"featuresDict": {"features": {"x": node}}}))
    with pytest.raises(SchemaError, match="no feature in this"):
        parse_schema('{"featuresDict": {"features": {}}}')


@pytest.mark.parametrize(
    "text",
    [
        '{"featuresDict": 1.5}',
        '{"featuresDict": {"features": {"a": []}}}',
        '{"pythonClassName": ["x"], "featuresDict": {"features": {"a": {"tensor": "x"}}}}',
        '{"pythonClassName": "x.Tensor", "tensor": {"shape": {"dimensions": ["i"]}}}',
        'feature { name: "a" type: INT presence { min_fraction: 1-0 } }',
        'feature { name: "a" type: INT presence: 1 shape: 2 }',
        'feature { name: "a" type: INT shape { dim { size: x } } }',
    ],
)
def test_values_of_a_wrong_type_are_one_clear_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "s").write_text(text)
    with pytest.raises(SchemaError) as caught:
        Schema.load(tmp_path / "s")
    assert str(tmp_path / "s") in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("name", 5),
        ("name", ["x"]),
        ("required", None),
        ("many", "x"),
        ("row_lengths", 1),
        ("row_lengths", [1]),
        ("lengths", 1),
        ("lengths", [1]),
        ("shape", [2**70]),
        ("shape", [2**20, 2**20, -1]),
    ],
)
def test_options_of_a_wrong_type_are_refused_when_loaded(
    tmp_path: Path, option: str, value: object
) -> None:
    features = {"a": {"kind": "int64", option: value}}
    text = json.dumps({"format": "tfrio-schema", "version": 1, "features": features})
    (tmp_path / "s").write_text(text)
    with pytest.raises(SchemaError, match=f"feature 'a': .*{option}"):
        Schema.load(tmp_path / "s")

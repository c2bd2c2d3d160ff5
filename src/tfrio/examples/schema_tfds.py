"""TensorFlow Datasets' ``features.json``: how its feature tree lies in flat Examples. Pure.

Nested dicts become names joined with ``/``. A sequence of tensors is stored flat, one free axis in
front; a sequence of images is a list of encoded images; tensors with several free axes are stored
as ``NAME/ragged_flat_values`` and ``NAME/ragged_row_lengths_0``, ``_1`` ...
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import numpy as np

from tfrio.errors import SchemaError
from tfrio.examples.schema import Codec, Feature, Kind, Schema

__all__ = ["schema_from_tfds"]

_SCALARS: Final = {"classLabel": "int64", "text": "string", "translation": "string"}
_DICTS: Final = "featuresDict"


def schema_from_tfds(value: Any) -> Schema:
    """Make a schema of a parsed ``features.json``.

    Args:
        value: What ``json.loads`` gave.

    Returns:
        The schema, with the names that the Examples have.

    Raises:
        SchemaError: Not such a file, or a feature that no rule is known for.
    """
    features = _walk(value, "")
    if not features:
        raise SchemaError("no feature in this features.json")
    return Schema(dict(features))


def _walk(node: Any, name: str) -> dict[str, Feature]:
    """Return the features below a node of the tree, by stored name."""
    if not isinstance(node, dict):
        raise SchemaError(f"features.json: '{name}' is no object", feature=name or None)
    if isinstance(node.get("content"), str):  # the older form: a string of JSON
        node = {_DICTS: json.loads(node["content"])} if not name else json.loads(node["content"])
    if isinstance(node.get("content"), dict):
        node = {_DICTS: node["content"]}
    if _DICTS in node:
        found: dict[str, Feature] = {}
        for key, child in node[_DICTS].get("features", {}).items():
            found.update(_walk(child, f"{name}/{key}" if name else key))
        return found
    if "sequence" in node:
        length = int(node["sequence"].get("length", -1) or -1)
        inner = _walk(node["sequence"]["feature"], name)
        return {key: _repeated(key, feature, length) for key, feature in inner.items()}
    return {name: _leaf(node, name)}


def _leaf(node: dict[str, Any], name: str) -> Feature:
    if "image" in node:
        return _image(node["image"])
    if "labeledImage" in node:
        return _image(node["labeledImage"])
    for key, dtype in _SCALARS.items():
        if key in node:
            return _tensor({"dtype": dtype}, name)
    if "boundingBox" in node or "bbox" in node:
        return _tensor({"dtype": "float32", "shape": {"dimensions": ["4"]}}, name)
    if "audio" in node:
        options = node["audio"]
        return _tensor({"dtype": "int64", "shape": {"dimensions": ["-1"]}, **options}, name)
    for key in ("tensor", "scalar"):
        if key in node:
            return _tensor(node[key], name)
    known = str(node.get("pythonClassName", "")).rpartition(".")[2]
    raise SchemaError(
        f"features.json: no rule for feature '{name}' ({known or sorted(node)}); describe it by "
        "hand with Schema.updated",
        feature=name,
    )


def _image(options: dict[str, Any]) -> Feature:
    shape = _dims(options)
    fixed = shape if shape and -1 not in shape else None
    dtype = options.get("dtype") or "uint8"
    return Feature("bytes", fixed, dtype=dtype, codec="image")


def _tensor(options: dict[str, Any], name: str) -> Feature:
    dtype = _dtype(options.get("dtype"))
    shape = _dims(options)
    encoding = str(options.get("encoding", "none")).lower()
    if dtype == "string":
        return Feature("bytes", shape)
    if encoding in ("bytes", "zlib"):
        codec: Codec = "zlib" if encoding == "zlib" else "raw"
        return Feature("bytes", shape, dtype=dtype, codec=codec)
    letter = np.dtype(dtype).kind
    kind: Kind = "float" if letter == "f" else "int64"
    return _ragged(name, Feature(kind, None, dtype=dtype), shape)


def _repeated(key: str, feature: Feature, length: int) -> Feature:
    """Return a feature in a sequence: one more axis in front."""
    if feature.codec is not None:
        return replace(feature, many=True)
    if feature.row_lengths or feature.shape is None:
        return _ragged(key, feature, (-1, *(-1 for _ in feature.row_lengths or (0,)), -1))
    return _ragged(key, feature, (length, *(d for d in feature.shape if isinstance(d, int))))


def _ragged(key: str, feature: Feature, shape: tuple[int, ...]) -> Feature:
    """Return a feature of a shape that may have several free axes."""
    free = shape.count(-1)
    if free < 2:
        return replace(feature, shape=shape)
    inner = shape[max(i for i, d in enumerate(shape) if d == -1) + 1 :]
    return replace(
        feature,
        shape=(-1, *inner) if inner else None,
        name=f"{key}/ragged_flat_values",
        row_lengths=tuple(f"{key}/ragged_row_lengths_{i}" for i in range(free - 1)),
    )


def _dims(options: dict[str, Any]) -> tuple[int, ...]:
    shape = options.get("shape") or {}
    dims = shape.get("dimensions", ()) if isinstance(shape, dict) else shape
    return tuple(-1 if d in (None, "None") else int(d) for d in dims)


def _dtype(name: Any) -> str:
    text = str(name or "float32").lower()
    if text in ("string", "object", "bytes", "str"):
        return "string"
    try:
        return np.dtype("float32" if text == "bfloat16" else text).name
    except TypeError as error:
        raise SchemaError(f"features.json: unknown dtype {name!r}") from error

"""Schemas as JSON. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import MISSING, fields
from typing import Any, Final

from tfrio.errors import SchemaError
from tfrio.examples.schema import Default, Feature, Schema

__all__ = ["FORMAT", "schema_from_json", "schema_to_json"]

FORMAT: Final = "tfrio-schema"
_VERSION: Final = 1
_DEFAULTS: Final = {f.name: f.default for f in fields(Feature) if f.default is not MISSING}
_TUPLES: Final = ("shape", "row_lengths", "lengths")


def schema_to_json(schema: Schema) -> str:
    """Return a schema as JSON text, one line a feature, made to be edited by hand.

    Args:
        schema: The schema.

    Returns:
        JSON. Only what differs from the defaults of ``Feature`` is written; bytes are
        ``{"base64": ...}``.
    """
    lines = [f"    {json.dumps(name)}: {json.dumps(_plain(f))}" for name, f in schema.items()]
    body = ",\n".join(lines)
    inside = f"{{\n{body}\n  }}" if lines else "{}"
    return f'{{\n  "format": "{FORMAT}",\n  "version": {_VERSION},\n  "features": {inside}\n}}\n'


def schema_from_json(value: Any) -> Schema:
    """Make a schema of parsed JSON.

    Args:
        value: What ``json.loads`` gave.

    Returns:
        The schema.

    Raises:
        SchemaError: Not such a schema, a newer version, or an option that does not exist.
    """
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise SchemaError(f'not a schema of tfrio: "format" must be "{FORMAT}"')
    if value.get("version") != _VERSION:
        raise SchemaError(
            f"schema version {value.get('version')} is not {_VERSION}; a newer tfrio wrote it"
        )
    features = value.get("features")
    if not isinstance(features, dict):
        raise SchemaError('a schema has an object "features"')
    return Schema({name: _feature(name, options) for name, options in features.items()})


def _plain(feature: Feature) -> dict[str, Any]:
    """Return the options of a feature that differ from the defaults."""
    found: dict[str, Any] = {"kind": feature.kind}
    for name, default in _DEFAULTS.items():
        value = getattr(feature, name)
        if name == "default" and value is not None:
            found[name] = _plain_default(value)
        elif value != default:
            found[name] = list(value) if isinstance(value, tuple) else value
    return found


def _plain_default(value: Default) -> Any:
    if isinstance(value, tuple):
        return [_plain_default(v) for v in value]
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _feature(name: str, options: Any) -> Feature:
    if isinstance(options, str):
        options = {"kind": options}
    if not isinstance(options, dict) or "kind" not in options:
        raise SchemaError(f"feature '{name}' needs at least a kind", feature=name)
    known = {f.name for f in fields(Feature)}
    unknown = sorted(set(options) - known)
    if unknown:
        raise SchemaError(
            f"feature '{name}' has unknown options {unknown}; there are {sorted(known)}",
            feature=name,
        )
    values = dict(options)
    for key in _TUPLES:
        if isinstance(values.get(key), list):
            values[key] = tuple(values[key])
    if "default" in values:
        values["default"] = _read_default(name, values["default"])
    try:
        return Feature(**values)
    except (SchemaError, TypeError) as error:
        raise SchemaError(f"feature '{name}': {error}", feature=name) from error


def _read_default(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_read_default(name, v) for v in value)
    if not isinstance(value, dict):
        return value
    try:
        return base64.b64decode(value["base64"], validate=True)
    except (KeyError, TypeError, binascii.Error) as error:
        raise SchemaError(
            f'feature \'{name}\': default bytes are written {{"base64": "..."}}', feature=name
        ) from error

"""TFX schemas (``schema.pbtxt``, message tensorflow.metadata.v0.Schema in text form). Pure."""

from __future__ import annotations

import re
from typing import Any, Final

from tfrio.errors import SchemaError
from tfrio.examples.schema import Feature, Kind, Schema

__all__ = ["schema_from_tfx"]

# FeatureType of schema.proto, by name and by number.
_KINDS: Final[dict[str, Kind]] = {
    "BYTES": "bytes",
    "INT": "int64",
    "FLOAT": "float",
    "TYPE_UNKNOWN": "unknown",
    "1": "bytes",
    "2": "int64",
    "3": "float",
}
_TOKEN: Final = re.compile(
    r"""\s+|\#[^\n]*|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<word>[\w.+/\-]+)|(?P<mark>[{}<>\[\]:;,])"""
)
_CLOSING: Final = {"{": "}", "<": ">"}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\"}


def schema_from_tfx(text: str) -> Schema:
    """Make a schema of a TFX schema in text form.

    A fixed ``shape`` gives that shape, ``value_count`` with min = max = 1 a list of one, anything
    else a list of free length. ``presence.min_fraction: 1`` makes a feature required. Domains,
    annotations and environments are passed over; features marked ``DEPRECATED`` are left out.
    ``struct_domain`` features are named ``outer/inner``.

    Args:
        text: The content of the file.

    Returns:
        The schema.

    Raises:
        SchemaError: Not the text form of such a schema.
    """
    message = _parse(text)
    features: dict[str, Feature | Kind] = {}
    for feature in message.get("feature", ()):
        features.update(_features(feature, ""))
    if not features:
        raise SchemaError("no feature in this TFX schema; is it a schema.pbtxt?")
    return Schema(features)


def _features(message: Any, prefix: str) -> dict[str, Feature]:
    if not isinstance(message, dict) or "name" not in message:
        raise SchemaError("a feature of a TFX schema has no name")
    name = prefix + message["name"][0]
    if message.get("lifecycle_stage", [""])[0] in ("DEPRECATED", "DISABLED"):
        return {}
    inner = message.get("struct_domain")
    if inner:
        found: dict[str, Feature] = {}
        for child in inner[0].get("feature", ()):
            found.update(_features(child, f"{name}/"))
        return found
    kind = message.get("type", ["TYPE_UNKNOWN"])[0]
    if kind not in _KINDS:
        raise SchemaError(f"feature '{name}' has type {kind}, which no Example holds", feature=name)
    return {name: Feature(_KINDS[kind], _shape(message), required=_required(message))}


def _shape(message: dict[str, Any]) -> tuple[int, ...] | None:
    if "shape" in message:
        dims = message["shape"][0].get("dim", ())
        sizes = [int(dim["size"][0]) for dim in dims if "size" in dim]
        return tuple(sizes) if len(sizes) == len(dims) else None
    counts = message.get("value_count", [{}])[0]
    low, high = counts.get("min", [""])[0], counts.get("max", [""])[0]
    return (int(low),) if low == high and low.isdigit() and int(low) > 0 else None


def _required(message: dict[str, Any]) -> bool:
    presence = message.get("presence", [{}])[0]
    return float(presence.get("min_fraction", ["0"])[0]) >= 1.0


def _parse(text: str) -> dict[str, Any]:
    """Parse protobuf's text form: every field is a list of strings or of messages."""
    tokens = _tokens(text)
    return _message(tokens, 0, None)[0]


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            line = text.count("\n", 0, at) + 1
            raise SchemaError(
                f"not the text form of a TFX schema: line {line}, {text[at : at + 20]!r}"
            )
        if match.lastgroup is not None:
            found.append(match.group())
        at = match.end()
    return found


def _message(tokens: list[str], at: int, closing: str | None) -> tuple[dict[str, Any], int]:
    fields: dict[str, Any] = {}
    while at < len(tokens) and tokens[at] != closing:
        if tokens[at] in ";,":
            at += 1
            continue
        name = tokens[at]
        if name in "}>":
            raise SchemaError("a TFX schema closes more braces than it opens")
        at += 1
        if at < len(tokens) and tokens[at] == ":":
            at += 1
        values, at = _values(tokens, at, name)
        fields.setdefault(name, []).extend(values)
    if closing is not None and at >= len(tokens):
        raise SchemaError("a TFX schema ends within a message")
    return fields, at


def _values(tokens: list[str], at: int, name: str) -> tuple[list[Any], int]:
    if at >= len(tokens) or tokens[at] in "}>]:":
        raise SchemaError(f"field {name} of a TFX schema has no value")
    if tokens[at] == "[":
        found: list[Any] = []
        at += 1
        while at < len(tokens) and tokens[at] != "]":
            if tokens[at] == ",":
                at += 1
                continue
            values, at = _values(tokens, at, name)
            found.extend(values)
        return found, at + 1
    if tokens[at] in _CLOSING:
        message, at = _message(tokens, at + 1, _CLOSING[tokens[at]])
        return [message], at + 1
    text = ""
    if tokens[at][0] not in "\"'":
        return [tokens[at]], at + 1
    while at < len(tokens) and tokens[at][0] in "\"'":  # neighbouring strings are one
        text += _unquoted(tokens[at])
        at += 1
    return [text], at


def _unquoted(token: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match.group(1), match.group(0)), token[1:-1])

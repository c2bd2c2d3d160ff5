"""Rows from protobuf messages: what ``process_feature`` and ``extract_feature_dict`` promise.

Also the way for the rare record that columns cannot hold, a feature list with several kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.compat._columns import object_array
from tfrio.compat._wanted import NAME_OF, missing, wrong_type
from tfrio.errors import require

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrio.compat._wanted import Description, Wanted

__all__ = ["extract_feature_dict", "message_row", "process_feature"]

_DTYPES = {"float_list": np.float32, "int64_list": np.int64}
_FIELDS = {"byte": "bytes_list", "float": "float_list", "int": "int64_list"}


def _value(field: str, values: Any) -> Any:
    if field in _DTYPES:
        return np.array(values, dtype=_DTYPES[field])
    return values[0] if len(values) == 1 else object_array(list(values))


def process_feature(
    feature: Any, typename: str | None, typename_mapping: Mapping[str, str], key: str
) -> Any:
    """Return the value of one protobuf ``Feature``.

    Args:
        feature: The message.
        typename: Type asked for, or None for the stored one.
        typename_mapping: Type name -> field of the message, ``{"int": "int64_list"}``.
        key: Name of the feature, for errors.

    Returns:
        float32 or int64 array (values,), ``bytes`` for one byte string, or an array of objects
        (values,) for several. Without any kind: an empty array of the type asked for, or None.

    Raises:
        KeyError: An unknown type name.
        TypeError: Stored as another type.
    """
    stored = feature.WhichOneof("kind")
    asked = None if typename is None else typename_mapping[typename]
    if stored is None:
        return None if asked is None else _value(asked, [])
    if asked is not None and asked != stored:
        names = {field: name for name, field in typename_mapping.items()}
        raise wrong_type(key, str(typename), names.get(stored, stored))
    return _value(stored, getattr(feature, stored).value)


def extract_feature_dict(
    features: Any, description: Description, typename_mapping: Mapping[str, str]
) -> dict[str, Any]:
    """Return the features of a protobuf ``Features`` or ``FeatureLists``.

    Args:
        features: The message, of this package's or anybody's classes.
        description: None for all, names, or names with type names.
        typename_mapping: Type name -> field of the message.

    Returns:
        Values by name, as ``process_feature`` gives them; for ``FeatureLists`` lists of them.

    Raises:
        KeyError: An absent feature or an unknown type name.
        TypeError: Another message, or a feature of another type.
    """
    message = getattr(getattr(features, "DESCRIPTOR", None), "name", type(features).__name__)
    if message not in ("Features", "FeatureLists"):
        raise TypeError(f"expected a Features or FeatureLists message, got {message}")
    lists = message == "FeatureLists"
    table = features.feature_list if lists else features.feature
    wanted: Any = description or sorted(table)
    typed = wanted.items() if hasattr(wanted, "items") else ((key, None) for key in wanted)
    found = {}
    for key, typename in typed:
        if key not in table:
            raise missing(key, table)
        steps = table[key].feature if lists else [table[key]]
        values = [process_feature(step, typename, typename_mapping, key) for step in steps]
        found[key] = values if lists else values[0]
    return found


def message_row(payload: bytes, wanted: Mapping[Any, Wanted | None]) -> Any:
    """Decode one payload through protobuf.

    Args:
        payload: A serialized Example or SequenceExample.
        wanted: Features by place: ``"context"`` and, for a SequenceExample, ``"list"``.

    Returns:
        A dict, or a pair of dicts for a SequenceExample.

    Raises:
        MissingExtraError: protobuf is not installed.
    """
    require("google.protobuf", extra="protobuf")
    from tfrio.compat import example_pb2

    described = {
        place: {name: None if kind is None else NAME_OF[kind] for name, kind in names.items()}
        for place, names in wanted.items()
        if names
    }
    if "list" not in wanted:
        example = example_pb2.Example.FromString(payload)
        return extract_feature_dict(example.features, described.get("context"), _FIELDS)
    sequence = example_pb2.SequenceExample.FromString(payload)
    return (
        extract_feature_dict(sequence.context, described.get("context"), _FIELDS),
        extract_feature_dict(sequence.feature_lists, described.get("list"), _FIELDS),
    )

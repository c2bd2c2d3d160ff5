"""Make record files by other means than the code under test: protobuf and the framing call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.core.payloads import protobuf_classes
from tfrio import _core
from tfrio.examples.columns import Batch
from tfrio.examples.decode import read_batches
from tfrio.examples.schema import Feature

KINDLESS = object()


def example(features: dict[str, Any]) -> bytes:
    """Serialize an Example with protobuf: lists of float, int or bytes, or KINDLESS."""
    message = protobuf_classes()[0]()
    for name, values in features.items():
        _fill(message.features.feature[name], values)
    return message.SerializeToString(deterministic=True)


def sequence(context: dict[str, Any], lists: dict[str, list[Any]]) -> bytes:
    """Serialize a SequenceExample with protobuf."""
    message = protobuf_classes()[1]()
    for name, values in context.items():
        _fill(message.context.feature[name], values)
    for name, steps in lists.items():
        target = message.feature_lists.feature_list[name]
        for values in steps:
            _fill(target.feature.add(), values)
    return message.SerializeToString(deterministic=True)


def parse(payload: bytes) -> dict[str, Any]:
    """Read an Example with protobuf: kind and values by name."""
    message = protobuf_classes()[0].FromString(payload)
    found = {}
    for name, feature in message.features.feature.items():
        kind = feature.WhichOneof("kind")
        values = list(getattr(feature, kind).value) if kind else []
        found[name] = (kind, values)
    return found


def put(path: Path, *payloads: bytes) -> str:
    """Write a plain record file."""
    path.write_bytes(_core.frame(list(payloads)))
    return str(path)


def payloads(path: Any) -> list[bytes]:
    """Return the payloads of a plain record file."""
    data = Path(path).read_bytes()
    spans = _core.scan(data, final=True).spans.tolist()
    return [data[a : a + n] for a, n in spans]


def one_batch(path: str, schema: dict[str, Feature], **options: Any) -> Batch:
    """Read the at most 100 records of a file as one batch, by a schema."""
    (batch,) = read_batches(path, 100, schema=schema, **options)
    return batch


def _fill(feature: Any, values: Any) -> None:
    if values is KINDLESS:
        feature.SetInParent()
    elif isinstance(values, Empty):
        getattr(feature, values.kind).SetInParent()
    elif isinstance(values[0], bytes):
        feature.bytes_list.value.extend(values)
    elif isinstance(values[0], float):
        feature.float_list.value.extend(values)
    else:
        feature.int64_list.value.extend(values)


class Empty:
    """An empty list of a kind: ``"bytes_list"``, ``"float_list"`` or ``"int64_list"``."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

"""Real files by many writers: each reads as protobuf reads it, or is named as no Example."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import DecodeError as ProtobufError

from tests.conftest import REPOSITORY
from tests.core.payloads import protobuf_classes
from tfrio.errors import DecodeError
from tfrio.examples.decode import read, read_batches
from tfrio.records.reader import read_records

FILES = sorted(
    str(path.relative_to(REPOSITORY.parent / "shared"))
    for path in (REPOSITORY.parent / "shared" / "data").glob("[ew]*/**/*")
    if path.is_file() and path.suffix not in (".json", ".tfrindex")
)
# Whole files of thousands of records are compared in part: protobuf is slow.
COMPARED = 400


def parsed(payload: bytes) -> Any:
    """Return the payload as protobuf's SequenceExample, None where it is neither kind."""
    try:
        message = protobuf_classes()[1].FromString(payload)
    except ProtobufError:
        return None
    held = message.context.feature or message.feature_lists.feature_list
    return message if held or payload in (b"", b"\x0a\x00") else None


def values(feature: Any) -> list[Any] | None:
    kind = feature.WhichOneof("kind")
    return None if kind is None else list(getattr(feature, kind).value)


def expected(message: Any) -> dict[str, Any]:
    lists = message.feature_lists.feature_list
    found = {}
    for name, feature in message.context.feature.items():
        if (held := values(feature)) is not None:
            found[f"context/{name}" if name in lists else name] = held
    for name, steps in lists.items():
        found[name] = [values(step) or [] for step in steps.feature]
    return found


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return [value]
    return (
        [plain(v) if hasattr(v, "tolist") else v for v in value]
        if isinstance(value, list)
        else value.tolist()
    )


@pytest.mark.parametrize("name", FILES or [""])
def test_a_real_file(name: str, shared: Path) -> None:
    path = str(shared / name)
    payloads = list(read_records(path))
    assert payloads
    messages = [parsed(payload) for payload in payloads[:COMPARED]]
    if messages[0] is None:
        with pytest.raises(DecodeError, match="not a tf.train.Example|not a well-formed"):
            list(read(path))
        return
    rows = list(read(path))
    assert len(rows) == len(payloads)
    assert sum(batch.rows for batch in read_batches(path, 1009)) == len(payloads)
    for row, message in zip(rows, messages, strict=False):
        assert {key: plain(value) for key, value in row.items()} == expected(message)

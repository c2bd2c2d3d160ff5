"""The plain-Python reader against golden bytes: it is the yardstick, so it is checked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tfrio.testing import reference
from tfrio.testing.reference import BYTES, FLOAT, INT64, Feature

GOLDEN: list[tuple[str, dict[bytes, Feature]]] = [
    ("0a0c0a0a0a016112051a030a0101", {b"a": Feature(INT64, [1])}),
    (
        "0a280a260a017812211a1f0a1dffffffffffffffffff0180808080808080808001ffffffffffffffff7f",
        {b"x": Feature(INT64, [-1, -(1 << 63), (1 << 63) - 1])},
    ),
    (
        "0a2b0a160a017812111a0f080308fcffffffffffffffff0108050a110a0179120c120a0d0000c03f0d000000c0",
        {b"x": Feature(INT64, [3, -4, 5]), b"y": Feature(FLOAT, [1.5, -2.0])},
    ),
    ("0a120a100a0178120b1a090a02010208030a0104", {b"x": Feature(INT64, [1, 2, 3, 4])}),
    (
        "0a130a050a017812000a0a0a017912051a030a0107",
        {b"x": Feature(), b"y": Feature(INT64, [7])},
    ),
    (
        "0a150a070a017812021a000a0a0a017912051a030a0107",
        {b"x": Feature(INT64, []), b"y": Feature(INT64, [7])},
    ),
    ("0a180a0a0a017812051a030a01010a0a0a017812051a030a0102", {b"x": Feature(INT64, [2])}),
    ("0a0c0a0a12051a030a01090a0178", {b"x": Feature(INT64, [9])}),
    ("0a0c0a0a0a017812051a030a01057a06667574757265704d", {b"x": Feature(INT64, [5])}),
    ("0a140a120a0178120d12060a040000803f1a030a0102", {b"x": Feature(INT64, [2])}),
    ("", {}),
    ("0a00", {}),
]
SEQUENCE = (
    "0a0c0a0a0a016e12051a030a0103123d0a1c0a03746f6b12150a061a040a0200010a021a000a071a050a03020304"
    "0a1d0a03696d6712160a060a040a02ffd80a040a020a000a060a040a026162"
)


@pytest.mark.parametrize(("payload", "features"), GOLDEN)
def test_examples(payload: str, features: dict[bytes, Feature]) -> None:
    assert reference.decode_example(bytes.fromhex(payload)) == features


def test_a_sequence_example() -> None:
    context, lists = reference.decode_sequence_example(bytes.fromhex(SEQUENCE))
    assert context == {b"n": Feature(INT64, [3])}
    assert lists == {
        b"tok": [Feature(INT64, [0, 1]), Feature(INT64, []), Feature(INT64, [2, 3, 4])],
        b"img": [Feature(BYTES, [b"\xff\xd8"]), Feature(BYTES, [b""]), Feature(BYTES, [b"ab"])],
    }


@pytest.mark.parametrize(
    "payload",
    [
        "0a0d0a0b0a02fffe12051a030a0105",  # a name that is not UTF-8
        "0a0c0a0a0a017812051a030a01",  # cut
        "0a0c0a0a0a017812051a030a01ff",  # a cut varint
        "0a160a140a0178120f1a0d0a0bffffffffffffffffffff01",  # a varint of 11 bytes
        "0a100a0e0a0178120912070a050102030405",  # 5 bytes of packed floats
        "7b7c",  # a group
        "7e",  # no such wire type
        "0201",  # field 0
        "8a80808010",  # a field number beyond 2^29
    ],
)
def test_malformed_payloads(payload: str) -> None:
    with pytest.raises(reference.MalformedError):
        reference.decode_example(bytes.fromhex(payload))


def test_framing() -> None:
    assert reference.masked_crc32c(b"123456789") == 0xC78AB0E5
    assert reference.frame(b"").hex() == "000000000000000029039807d8ea82a2"
    data = reference.frame(b"one") + reference.frame(b"")
    assert reference.read_frames(data) == ([b"one", b""], None)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda d: d[:-1], "footer-cut"),
        (lambda d: d[:-5], "payload-cut"),
        (lambda d: d[:-8], "header-cut"),
        (lambda d: d[:-6] + b"z" + d[-5:], "payload-crc"),
        (lambda d: d[:19] + b"\x03" + d[20:], "length-crc"),
        (lambda d: d + bytes(12), "length-crc"),
    ],
)
def test_damage(change: Any, code: str) -> None:
    data = change(reference.frame(b"one") + reference.frame(b"xy"))
    payloads, damage = reference.read_frames(data)
    intact = 2 if data[:37] == reference.frame(b"one") + reference.frame(b"xy") else 1
    assert payloads == [b"one", b"xy"][:intact]
    assert damage == reference.Damage(code, intact, [0, 19, 37][intact])


def test_golden_files(shared: Path) -> None:
    payloads, damage = reference.read_frames((shared / "fixtures" / "three.tfrecord").read_bytes())
    ids = [reference.decode_example(p)[b"id"].values for p in payloads]
    assert (ids, damage) == ([[10], [20], [30]], None)

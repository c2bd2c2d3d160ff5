"""Random payloads: valid, odd but valid, and damaged; and tf.train messages for protobuf."""

from __future__ import annotations

import random
import struct
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

NAMES = [
    b"a",
    b"bc",
    b"def",
    b"id",
    b"",
    "größe".encode(),
    b"sixteen_bytes_xx",
    b"a_name_of_21_bytes__1",
]
_FIELD = descriptor_pb2.FieldDescriptorProto


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def long_varint(value: int, rng: random.Random) -> bytes:
    """The same value in more bytes than needed, at most 10."""
    plain = varint(value)
    extra = rng.randrange(0, 11 - len(plain))
    if not extra:
        return plain
    return plain[:-1] + bytes([plain[-1] | 128]) + b"\x80" * (extra - 1) + b"\x00"


def field(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def unknown_field(rng: random.Random, least: int = 4) -> bytes:
    number = rng.randrange(least, 30)
    match rng.randrange(4):
        case 0:
            return varint(number << 3) + varint(rng.getrandbits(rng.choice([7, 14, 64])))
        case 1:
            return varint(number << 3 | 1) + rng.randbytes(8)
        case 2:
            return varint(number << 3 | 5) + rng.randbytes(4)
        case _:
            return field(number, rng.randbytes(rng.randrange(6)))


def int64(rng: random.Random) -> int:
    return rng.choice(
        [0, 1, 127, 128, 300, -1, 1 << 62, -(1 << 63), (1 << 63) - 1, rng.getrandbits(20)]
    )


def list_message(kind: int, rng: random.Random) -> bytes:
    """A BytesList, FloatList or Int64List: packed, in pieces, one by one, or mixed."""
    out = b""
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        n = rng.choice([0, 1, 1, 2, 3, 9])
        if kind == 1:
            out += field(1, rng.randbytes(rng.choice([0, 1, 3, 130])))
        elif kind == 2:
            packed = rng.randbytes(4 * n)
            loose = [b"\x0d" + packed[i : i + 4] for i in range(0, 4 * n, 4)]
            out += field(1, packed) if rng.random() < 0.7 else b"".join(loose)
        else:
            coded = [long_varint(int64(rng), rng) for _ in range(n)]
            packed = b"".join(coded)
            out += field(1, packed) if rng.random() < 0.7 else b"".join(b"\x08" + c for c in coded)
        if rng.random() < 0.04:
            out += unknown_field(rng, 2)
    return out


def feature_message(rng: random.Random) -> bytes:
    out = b""
    for _ in range(rng.choice([0, 1, 1, 1, 1, 1, 2, 3])):
        kind = rng.randrange(1, 4)
        out += field(kind, list_message(kind, rng))
        if rng.random() < 0.04:
            out += unknown_field(rng)
    return out


def map_entry(value: bytes, rng: random.Random) -> bytes:
    """An entry: nearly always key then value, sometimes as other writers or fuzzers put it."""
    key = field(1, rng.choice(NAMES))
    form = rng.random()
    if form < 0.8:
        return key + field(2, value)
    if form < 0.9:
        return field(2, value) + key
    if form < 0.93:
        return key
    if form < 0.96:
        return field(2, value)
    return key + field(2, value) + field(2, feature_message(rng))


def map_message(value: Any, rng: random.Random) -> bytes:
    entries = [field(1, map_entry(value(rng), rng)) for _ in range(rng.choice([0, 1, 1, 2, 3, 4]))]
    if rng.random() < 0.04:
        entries.append(unknown_field(rng))
    return b"".join(entries)


def list_of_features(rng: random.Random) -> bytes:
    return b"".join(field(1, feature_message(rng)) for _ in range(rng.choice([0, 1, 2, 3])))


def example(rng: random.Random) -> bytes:
    out = field(1, map_message(feature_message, rng))
    if rng.random() < 0.05:
        out += field(1, map_message(feature_message, rng))
    return out + (unknown_field(rng) if rng.random() < 0.05 else b"")


def sequence(rng: random.Random) -> bytes:
    out = b""
    for _ in range(rng.choice([1, 1, 1, 1, 2])):
        if rng.random() < 0.8:
            out += field(1, map_message(feature_message, rng))
        if rng.random() < 0.9:
            out += field(2, map_message(list_of_features, rng))
    return out


def mutate(payload: bytes, rng: random.Random) -> bytes:
    """Change a few bytes, drop some, put some in, or cut."""
    data = bytearray(payload)
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(data):
                data[at] = rng.choice([0, 1, 2, 8, 10, 18, 26, 127, 128, 255])
            case 2:
                del data[at : at + rng.randrange(1, 5)]
            case 3:
                data[at:at] = rng.randbytes(rng.randrange(1, 4))
            case _:
                del data[at:]
    return bytes(data)


def _message(file: Any, name: str, *fields: tuple[str, int, int, int, str]) -> Any:
    message = file.message_type.add(name=name)
    for field_name, number, kind, label, type_name in fields:
        added = message.field.add(name=field_name, number=number, type=kind, label=label)
        if type_name:
            added.type_name = f".tfrio_test.{type_name}"
    return message


def _add_map(message: Any, name: str, value: str) -> None:
    entry_name = name.title().replace("_", "") + "Entry"
    entry = message.nested_type.add(name=entry_name)
    entry.options.map_entry = True
    one = _FIELD.LABEL_OPTIONAL
    entry.field.add(name="key", number=1, type=_FIELD.TYPE_STRING, label=one)
    entry.field.add(
        name="value",
        number=2,
        type=_FIELD.TYPE_MESSAGE,
        label=one,
        type_name=f".tfrio_test.{value}",
    )
    message.field.add(
        name=name,
        number=1,
        type=_FIELD.TYPE_MESSAGE,
        label=_FIELD.LABEL_REPEATED,
        type_name=f".tfrio_test.{message.name}.{entry_name}",
    )


@cache
def protobuf_classes() -> tuple[Any, Any]:
    """Return protobuf's classes for Example and SequenceExample, in a pool of their own."""
    file = descriptor_pb2.FileDescriptorProto(
        name="tfrio_test/example.proto", package="tfrio_test", syntax="proto3"
    )
    one, many, message = _FIELD.LABEL_OPTIONAL, _FIELD.LABEL_REPEATED, _FIELD.TYPE_MESSAGE
    _message(file, "BytesList", ("value", 1, _FIELD.TYPE_BYTES, many, ""))
    _message(file, "FloatList", ("value", 1, _FIELD.TYPE_FLOAT, many, ""))
    _message(file, "Int64List", ("value", 1, _FIELD.TYPE_INT64, many, ""))
    kinds = [
        ("bytes_list", 1, "BytesList"),
        ("float_list", 2, "FloatList"),
        ("int64_list", 3, "Int64List"),
    ]
    feature = _message(file, "Feature", *((n, i, message, one, t) for n, i, t in kinds))
    feature.oneof_decl.add(name="kind")
    for added in feature.field:
        added.oneof_index = 0
    _add_map(_message(file, "Features"), "feature", "Feature")
    _message(file, "FeatureList", ("feature", 1, message, many, "Feature"))
    _add_map(_message(file, "FeatureLists"), "feature_list", "FeatureList")
    _message(file, "Example", ("features", 1, message, one, "Features"))
    _message(
        file,
        "SequenceExample",
        ("context", 1, message, one, "Features"),
        ("feature_lists", 2, message, one, "FeatureLists"),
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    classes = message_factory.GetMessageClassesForFiles([file.name], pool)
    return classes["tfrio_test.Example"], classes["tfrio_test.SequenceExample"]


def float_bits(values: list[float]) -> bytes:
    """Return float32 values as bytes, so that NaNs compare."""
    return struct.pack(f"<{len(values)}f", *values)

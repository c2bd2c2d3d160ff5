"""Read TFRecord framing and tf.train messages in plain Python: slow, short, obviously right.

This is the yardstick for the native core and for readers that others write. It follows the
protobuf rules to the letter and nothing else: no shortcuts, no tables, no state.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "BYTES",
    "FLOAT",
    "INT64",
    "Damage",
    "Feature",
    "MalformedError",
    "crc32c",
    "decode_example",
    "decode_feature",
    "decode_sequence_example",
    "fields",
    "frame",
    "masked_crc32c",
    "read_frames",
]

BYTES, FLOAT, INT64 = 1, 2, 3
"""Kinds of a Feature: the field numbers of its oneof. 0 stands for no kind."""

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


class MalformedError(ValueError):
    """The payload is not a well-formed message."""


@dataclass(frozen=True, slots=True)
class Damage:
    """The first thing wrong in a run of records.

    Attributes:
        code: The same names as the native core uses: ``"length-crc"``, ``"payload-cut"`` and so on.
        record: Index of the record, from 0.
        offset: Byte offset of its header.
    """

    code: str
    record: int
    offset: int


@dataclass(slots=True)
class Feature:
    """One Feature: its kind (0 where it has none) and its values."""

    kind: int = 0
    values: list[Any] = field(default_factory=list)


def crc32c(data: bytes) -> int:
    """Return the CRC32C of `data`, bit by bit.

    Args:
        data: Any bytes.

    Returns:
        The checksum, 0 to 2**32 - 1.
    """
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            # 0x82F63B78: the Castagnoli polynomial, bits reflected (RFC 3720, appendix B.4).
            register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """Return the CRC32C of `data` as a TFRecord file stores it.

    Args:
        data: Any bytes.

    Returns:
        The checksum, rotated right by 15 bits, plus a constant.
    """
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frame(payload: bytes) -> bytes:
    """Return `payload` as a framed record.

    Args:
        payload: The bytes of one record.

    Returns:
        Length, checksum of the length, payload, checksum of the payload.
    """
    length = struct.pack("<Q", len(payload))
    header = length + struct.pack("<I", masked_crc32c(length))
    return header + payload + struct.pack("<I", masked_crc32c(payload))


def read_frames(data: bytes) -> tuple[list[bytes], Damage | None]:
    """Take a whole file apart.

    Args:
        data: All bytes of an uncompressed TFRecord file.

    Returns:
        The payloads before the first damage, and the damage, None where there is none.
    """
    payloads: list[bytes] = []
    at = 0
    while at < len(data):
        code = _damage_at(data, at)
        if code:
            return payloads, Damage(code, len(payloads), at)
        (length,) = struct.unpack_from("<Q", data, at)
        payloads.append(data[at + 12 : at + 12 + length])
        at += length + 16
    return payloads, None


def _damage_at(data: bytes, at: int) -> str:
    rest = len(data) - at
    if rest < 12:
        return "header-cut"
    length, crc = struct.unpack_from("<QI", data, at)
    if crc != masked_crc32c(data[at : at + 8]):
        return "length-crc"
    if length > 1 << 40 and length > rest - 16:
        return "too-long"
    if length > rest - 12:
        return "payload-cut"
    if length > rest - 16:
        return "footer-cut"
    (crc,) = struct.unpack_from("<I", data, at + 12 + length)
    return "" if crc == masked_crc32c(data[at + 12 : at + 12 + length]) else "payload-crc"


def _varint(data: bytes, at: int, most: int = 10) -> tuple[int, int]:
    value = 0
    for i in range(most):
        if at + i >= len(data):
            raise MalformedError("cut within a varint")
        byte = data[at + i]
        value |= (byte & 127) << (7 * i)
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at + i + 1
    raise MalformedError(f"a varint of more than {most} bytes")


def fields(message: bytes) -> Iterator[tuple[int, int, Any]]:
    """Walk the fields of a message in order.

    Args:
        message: The bytes of one message.

    Yields:
        Field number, wire type, and the value: an int for varints, else bytes.

    Raises:
        MalformedError: The bytes are cut, or hold a group or an unknown wire type.
    """
    at = 0
    while at < len(message):
        tag, at = _varint(message, at, 5)
        number, wire_type = tag >> 3, tag & 7
        if number == 0 or tag >= 1 << 32:
            raise MalformedError("field number out of range")
        value: Any
        if wire_type == _VARINT:
            value, at = _varint(message, at)
        else:
            if wire_type == _LENGTH:
                size, at = _varint(message, at, 5)
            elif wire_type in (_FIXED64, _FIXED32):
                size = 8 if wire_type == _FIXED64 else 4
            else:
                raise MalformedError("a group or an unknown wire type")
            if size > len(message) - at:
                raise MalformedError("a field reaches past the end")
            value = message[at : at + size]
            at += size
        yield number, wire_type, value


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _floats(packed: bytes) -> list[float]:
    if len(packed) % 4:
        raise MalformedError("a packed float list is no multiple of 4 bytes long")
    return list(struct.unpack(f"<{len(packed) // 4}f", packed))


def _int64s(packed: bytes) -> list[int]:
    values: list[int] = []
    at = 0
    while at < len(packed):
        value, at = _varint(packed, at)
        values.append(_signed(value))
    return values


def _list(kind: int, message: bytes) -> list[Any]:
    values: list[Any] = []
    for number, wire_type, value in fields(message):
        if number != 1:
            continue
        if wire_type == _LENGTH:
            if kind == BYTES:
                values.append(value)
            else:
                values += _floats(value) if kind == FLOAT else _int64s(value)
        elif wire_type == _FIXED32 and kind == FLOAT:
            values += _floats(value)
        elif wire_type == _VARINT and kind == INT64:
            values.append(_signed(value))
    return values


def decode_feature(message: bytes) -> Feature:
    """Decode a tf.train.Feature.

    Args:
        message: The bytes of the message.

    Returns:
        Its kind and values: the last kind set, to which the same kind set twice adds up.

    Raises:
        MalformedError: The message is malformed.
    """
    feature = Feature()
    for number, wire_type, value in fields(message):
        if wire_type == _LENGTH and number in (BYTES, FLOAT, INT64):
            if feature.kind != number:
                feature = Feature(number)
            feature.values += _list(number, value)
    return feature


def _map(message: bytes) -> Iterator[tuple[bytes, bytes]]:
    for number, wire_type, entry in fields(message):
        if number != 1 or wire_type != _LENGTH:
            continue
        key = value = b""
        for part, part_type, content in fields(entry):
            if part_type == _LENGTH and part == 1:
                try:
                    content.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise MalformedError("a feature name is not UTF-8") from error
                key = content
            elif part_type == _LENGTH and part == 2:
                value += content  # messages put one after the other are the merged message
        yield key, value


def _features(message: bytes) -> dict[bytes, Feature]:
    return {key: decode_feature(value) for key, value in _map(message)}


def _feature_lists(message: bytes) -> dict[bytes, list[Feature]]:
    return {
        key: [
            decode_feature(step)
            for number, wire_type, step in fields(value)
            if number == 1 and wire_type == _LENGTH
        ]
        for key, value in _map(message)
    }


def decode_example(payload: bytes) -> dict[bytes, Feature]:
    """Decode a tf.train.Example.

    Args:
        payload: The bytes of the message.

    Returns:
        Features by name; of two with one name, the last.

    Raises:
        MalformedError: The message is malformed.
    """
    features: dict[bytes, Feature] = {}
    for number, wire_type, value in fields(payload):
        if number == 1 and wire_type == _LENGTH:
            features |= _features(value)
    return features


def decode_sequence_example(
    payload: bytes,
) -> tuple[dict[bytes, Feature], dict[bytes, list[Feature]]]:
    """Decode a tf.train.SequenceExample.

    Args:
        payload: The bytes of the message.

    Returns:
        The context features, and the steps of each feature list, by name.

    Raises:
        MalformedError: The message is malformed.
    """
    context: dict[bytes, Feature] = {}
    lists: dict[bytes, list[Feature]] = {}
    for number, wire_type, value in fields(payload):
        if wire_type == _LENGTH and number == 1:
            context |= _features(value)
        elif wire_type == _LENGTH and number == 2:
            lists |= _feature_lists(value)
    return context, lists

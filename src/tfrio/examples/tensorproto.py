"""Serialized TensorProto (``tf.io.serialize_tensor``) to arrays and back. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tfrio.errors import DecodeError, EncodeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfrio.examples.columns import Array

__all__ = ["decode_tensor", "encode_tensor"]

# tensorflow/core/framework/types.proto: DataType numbers.
_BFLOAT16: Final = 14
_HALF: Final = 19
_DTYPES: Final = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    9: "int64",
    10: "bool",
    17: "uint16",
    _HALF: "float16",
    22: "uint32",
    23: "uint64",
}
_NUMBERS: Final = {name: number for number, name in _DTYPES.items()}
_NAMES: Final = {7: "string", 8: "complex64", 18: "complex128", 20: "resource", 21: "variant"}

# tensorflow/core/framework/tensor.proto: the typed value lists, used instead of tensor_content.
_FLOAT_VAL, _DOUBLE_VAL, _HALF_VAL = 5, 6, 13
# Wire types each may have: packed, or one value at a time.
_WIRES: Final = {_FLOAT_VAL: (2, 5), _DOUBLE_VAL: (1, 2)} | dict.fromkeys(
    (7, 10, 11, _HALF_VAL, 16, 17), (0, 2)
)


def decode_tensor(data: bytes) -> Array:
    """Read a serialized TensorProto.

    Args:
        data: The message's bytes.

    Returns:
        The array, in its own shape and type (bfloat16 as float32). It may be read-only, and a
        tensor stored as one repeated value takes no more memory than that value.

    Raises:
        DecodeError: Not a TensorProto, or one of a type that is no number.
    """
    number, content = 0, b""
    shape: tuple[int, ...] = ()
    values: list[Any] = []
    for field, wire, value in _fields(data):
        if field == 1 and wire == 0:
            number = value
        elif field == 2 and wire == 2:
            shape = _shape(value)
        elif field == 4 and wire == 2:
            content = value
        elif wire in _WIRES.get(field, ()):
            values.extend(_typed(field, wire, value))
    if number not in _DTYPES and number != _BFLOAT16:
        name = _NAMES.get(number, f"type number {number}")
        raise DecodeError(
            f"a TensorProto of {name} cannot become an array of numbers; leave the codec out to "
            "get its bytes"
        )
    if content:
        return _shaped(_from_content(number, content), shape)
    return _shaped(_repeated(_from_values(number, values), shape), shape)


def encode_tensor(array: Array) -> bytes:
    """Serialize an array as a TensorProto with ``tensor_content``.

    Args:
        array: Numbers or booleans of any shape.

    Returns:
        The message's bytes.

    Raises:
        EncodeError: A type that TensorProto does not know.
    """
    number = _NUMBERS.get(array.dtype.name)
    if number is None:
        raise EncodeError(f"dtype {array.dtype} cannot be stored as a TensorProto")
    dims = b"".join(
        b"\x12" + _with_length(b"\x08" + _varint(size) if size else b"") for size in array.shape
    )
    content = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    shape = b"\x12" + _with_length(dims)
    return b"\x08" + _varint(number) + shape + b"\x22" + _with_length(content.tobytes())


def _from_content(number: int, content: bytes) -> Array:
    dtype = np.dtype("<u2" if number == _BFLOAT16 else _DTYPES[number]).newbyteorder("<")
    if len(content) % dtype.itemsize:
        raise DecodeError(f"TensorProto: {len(content)} bytes are no whole {dtype.name} values")
    flat: Array = np.frombuffer(content, dtype)
    return _widened(flat) if number == _BFLOAT16 else flat.astype(flat.dtype.newbyteorder("="))


def _from_values(number: int, values: list[Any]) -> Array:
    if number == _BFLOAT16:
        return _widened(np.array(values, np.uint64).astype(np.uint16))
    if number == _HALF:
        return np.array(values, np.uint64).astype(np.uint16).view(np.float16)
    dtype = np.dtype(_DTYPES[number])
    if dtype.kind == "i":
        return np.array(values, np.uint64).view(np.int64).astype(dtype)
    return np.array(values, dtype=np.uint64 if dtype.kind == "u" else None).astype(dtype)


def _widened(bits: Array) -> Array:
    """Return bfloat16 bit patterns as float32: the upper half of the same bits."""
    wide: Array = (bits.astype(np.uint32) << 16).view(np.float32)
    return wide


def _repeated(flat: Array, shape: tuple[int, ...]) -> Array:
    """Return typed values with the last repeated: that is how constant tensors are stored.

    No value at all stands for zeros, as TensorFlow reads it (tensor.cc, FromProtoField).
    """
    size = math.prod(shape)
    if not len(flat):
        flat = np.zeros(1, flat.dtype)
    if len(flat) == 1:
        return np.broadcast_to(flat, (size,))
    if 1 < len(flat) < size and size * flat.itemsize < 1 << 31:
        return np.concatenate([flat, np.repeat(flat[-1:], size - len(flat))])
    return flat


def _shaped(flat: Array, shape: tuple[int, ...]) -> Array:
    if len(flat) != math.prod(shape):
        raise DecodeError(f"TensorProto: {len(flat)} values cannot form {shape}")
    return flat.reshape(shape)


def _shape(data: bytes) -> tuple[int, ...]:
    dims = []
    for field, wire, value in _fields(data):
        if field == 2 and wire == 2:
            sizes = [size for f, w, size in _fields(value) if f == 1 and w == 0]
            dims.append(sizes[-1] if sizes else 0)
        elif field == 3 and wire == 0 and value:
            raise DecodeError("TensorProto: the shape is of unknown rank")
    if math.prod(dims) >> 40 or any(size >> 40 for size in dims):
        raise DecodeError(f"TensorProto: shape {tuple(dims)} is negative or past all memory")
    return tuple(dims)


def _typed(field: int, wire: int, value: Any) -> list[Any]:
    if field in (_FLOAT_VAL, _DOUBLE_VAL):
        dtype = "<f4" if field == _FLOAT_VAL else "<f8"
        if len(value) % np.dtype(dtype).itemsize:
            raise DecodeError("TensorProto: a value list is cut")
        unpacked: list[Any] = np.frombuffer(value, dtype).tolist()
        return unpacked
    if wire == 0:
        return [value]
    found, at = [], 0
    while at < len(value):
        item, at = _read_varint(value, at)
        found.append(item)
    return found


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yield field number, wire type and value (int or bytes) of each field of a message."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        field, wire = key >> 3, key & 7
        if wire == 0:
            number, at = _read_varint(data, at)
            yield field, wire, number
            continue
        size, at = _size(data, at, wire)
        if size > len(data) - at:
            raise DecodeError(f"not a TensorProto: field {field} runs past the end")
        yield field, wire, data[at : at + size]
        at += size


def _size(data: bytes, at: int, wire: int) -> tuple[int, int]:
    if wire == 2:
        return _read_varint(data, at)
    if wire in (1, 5):
        return (8 if wire == 1 else 4), at
    raise DecodeError(f"not a TensorProto: wire type {wire} at byte {at}")


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):  # a 64-bit varint has ten bytes at most
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise DecodeError(f"not a TensorProto: bad varint before byte {at}")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _with_length(data: bytes) -> bytes:
    return _varint(len(data)) + data

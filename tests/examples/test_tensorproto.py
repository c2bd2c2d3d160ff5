"""TensorProto: against hand-made bytes and protobuf's rules."""

from __future__ import annotations

import contextlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.payloads import field, varint
from tfrio.errors import DecodeError, EncodeError
from tfrio.examples.tensorproto import decode_tensor, encode_tensor


def tensor(dtype: int, dims: list[int], rest: bytes) -> bytes:
    shape = b"".join(field(2, b"\x08" + varint(d)) for d in dims)
    return b"\x08" + varint(dtype) + field(2, shape) + rest


def test_tensor_content() -> None:
    data = struct.pack("<6f", *range(6))
    array = decode_tensor(tensor(1, [2, 3], field(4, data)))
    assert array.dtype == np.float32
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_one_float_val_fills_the_shape() -> None:
    packed = decode_tensor(tensor(1, [2, 3], field(5, struct.pack("<f", 0.5))))
    assert packed.shape == (2, 3)
    assert (packed == 0.5).all()
    unpacked = decode_tensor(tensor(1, [2, 3], b"\x2d" + struct.pack("<f", 0.5)))
    assert (unpacked == 0.5).all()


def test_the_last_value_is_repeated() -> None:
    values = field(7, b"\x01\x02")
    assert decode_tensor(tensor(3, [4], values)).tolist() == [1, 2, 2, 2]


@pytest.mark.parametrize(("dtype", "name"), [(1, "float32"), (9, "int64"), (14, "float32")])
def test_a_tensor_without_values_is_zeros(dtype: int, name: str) -> None:
    array = decode_tensor(tensor(dtype, [2, 3], b""))
    assert (array.dtype, array.shape) == (np.dtype(name), (2, 3))
    assert not array.any()
    assert decode_tensor(tensor(dtype, [0, 3], b"")).shape == (0, 3)


@pytest.mark.parametrize(
    ("dtype", "rest", "expected"),
    [
        (2, field(6, struct.pack("<2d", 0.1, -2.0)), np.array([0.1, -2.0])),
        (3, field(7, varint(-5) + b"\x07"), np.array([-5, 7], np.int32)),
        (4, field(7, varint(255) + b"\x00"), np.array([255, 0], np.uint8)),
        (9, field(10, varint(-(1 << 63)) + b"\x01"), np.array([-(1 << 63), 1], np.int64)),
        (10, field(11, b"\x01\x00"), np.array([True, False])),
        (23, field(17, varint((1 << 64) - 1) + b"\x00"), np.array([(1 << 64) - 1, 0], np.uint64)),
        (19, field(13, varint(0x3C00) + varint(0xC000)), np.array([1, -2], np.float16)),
        (14, field(13, varint(0x3F80) + varint(0xC000)), np.array([1, -2], np.float32)),
        (14, field(4, struct.pack("<2H", 0x3F80, 0xC000)), np.array([1, -2], np.float32)),
    ],
)
def test_typed_values(dtype: int, rest: bytes, expected: np.ndarray) -> None:
    array = decode_tensor(tensor(dtype, [2], rest))
    assert array.dtype == expected.dtype
    assert array.tolist() == expected.tolist()


def test_a_scalar_has_no_axes() -> None:
    assert decode_tensor(tensor(3, [], field(7, b"\x09"))).shape == ()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (tensor(7, [1], field(8, b"text")), "TensorProto of string"),
        (tensor(99, [1], b""), "type number 99"),
        (tensor(1, [2], field(4, b"123")), "no whole float32"),
        (tensor(1, [7], field(4, b"12345678")), "2 values cannot form"),
        (tensor(1, [1 << 50], field(5, struct.pack("<f", 1))), "past all memory"),
        (tensor(1, [-1], field(5, struct.pack("<f", 1))), "past all memory"),
        (b"\x08\x01\x22\x7f1", "runs past the end"),
        (b"\x08" + b"\xff" * 11, "bad varint"),
        (b"\x0b", "wire type 3"),
        (b"\x08\x01\x12\x02\x18\x01", "unknown rank"),
        (b"\x08\x01\x2a\x03123", "a value list is cut"),
    ],
)
def test_damage_is_named(data: bytes, text: str) -> None:
    with pytest.raises(DecodeError, match=text):
        decode_tensor(data)


@pytest.mark.parametrize(
    "name", ["float32", "float64", "int8", "uint16", "int64", "bool", "float16"]
)
def test_round_trip(name: str) -> None:
    array = (np.arange(12) % 5).reshape(3, 4).astype(name)
    again = decode_tensor(encode_tensor(array.T))
    assert again.dtype == array.dtype
    assert again.tolist() == array.T.tolist()


def test_what_tensorproto_does_not_know_is_refused() -> None:
    with pytest.raises(EncodeError, match="complex64"):
        encode_tensor(np.zeros(2, np.complex64))


@given(st.binary(max_size=60))
def test_any_bytes_give_an_array_or_a_decode_error(data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        assert isinstance(decode_tensor(data), np.ndarray)

"""The writer: bytes as ever, what it takes and what it refuses, files that appear when whole."""

from __future__ import annotations

import os
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compat.bytes_of import (
    entry,
    example,
    field,
    floats,
    frame,
    ints,
    masked_crc,
    numbers,
    sequence,
    strings,
)
from tfrio.compat import TFRecordWriter, example_pb2, tfrecord_loader

serialize = TFRecordWriter.serialize_tf_example
serialize_sequence = TFRecordWriter.serialize_tf_sequence_example


def body(value: Any, typename: str) -> bytes:
    return serialize({"k": (value, typename)})


@pytest.mark.parametrize(
    ("value", "typename", "feature"),
    [
        ([1, 300], "int", ints(1, 300)),
        (-1, "int", ints(-1)),
        ([], "int", ints()),
        ([], "float", floats()),
        (np.array([]), "int", ints()),
        (np.zeros((0, 3)), "int", ints()),
        ([], "byte", strings()),
        ((2**63 - 1, -(2**63)), "int", ints(2**63 - 1, -(2**63))),
        (np.int8(-3), "int", ints(-3)),
        (np.arange(3, dtype=np.uint8), "int", ints(0, 1, 2)),
        (np.arange(3, dtype=np.uint64), "int", ints(0, 1, 2)),
        ([np.int32(5), 7, True], "int", ints(5, 7, 1)),
        ([np.array(4), np.array([5])[0]], "int", ints(4, 5)),
        (np.array([4, 5], dtype=object), "int", ints(4, 5)),
        (np.arange(2), "float", floats(0, 1)),
        (np.array([True]), "float", floats(1)),
        (
            [1.5, 2, Fraction(1, 4), Decimal("0.5"), np.float16(3)],
            "float",
            floats(1.5, 2, 0.25, 0.5, 3),
        ),
        (1e40, "float", floats(float("inf"))),
        ([-(10**400), 10**40], "float", floats(float("-inf"), float("inf"))),
        (np.array([1e300]), "float", floats(float("inf"))),
        ([b"v", b""], "byte", strings(b"v", b"")),
        (np.bytes_(b"v\0"), "byte", strings(b"v\0")),
        (np.array([b"ab", b"c"]), "byte", strings(b"ab", b"c")),
        (np.array([b"a\0", b"c"], dtype=object), "byte", strings(b"a\0", b"c")),
        (memoryview(b"xy"), "byte", strings(b"xy")),
    ],
)
def test_values_that_are_taken(value, typename, feature):
    assert body(value, typename) == example(k=feature)


@pytest.mark.parametrize(
    ("value", "typename", "error", "text"),
    [
        (1.5, "int", TypeError, "cannot be interpreted as an integer"),
        ([1, 2.0], "int", TypeError, "integer"),
        (np.array([1.0]), "int", TypeError, "float64"),
        ("1", "int", TypeError, "integer"),
        (None, "int", TypeError, "integer"),
        (range(3), "int", TypeError, "integer"),
        (2**63, "int", ValueError, "Value out of range: 9223372036854775808"),
        (np.array([2**63], np.uint64), "int", ValueError, "Value out of range"),
        ([[1, 2], [3, 4]], "int", TypeError, "integer"),
        ([np.arange(2), np.arange(3)], "int", TypeError, "ambiguous.*one step per item"),
        ("1.5", "float", TypeError, "expected a number, str found"),
        (np.str_("1.5"), "float", TypeError, "expected a number"),
        (b"1", "float", TypeError, "expected a number, bytes found"),
        (1j, "float", TypeError, "complex"),
        (np.array([1j]), "float", TypeError, "complex128"),
        (np.array(["2020-01-01"], "datetime64[D]"), "float", TypeError, "datetime64"),
        (None, "float", TypeError, "NoneType found"),
        ([[1.0], [2.0]], "float", TypeError, "list found"),
        ("ab", "byte", TypeError, "expected bytes, str found; encode it"),
        (5, "byte", TypeError, "expected bytes, int found"),
        (np.zeros(3, np.uint8), "byte", TypeError, "tobytes"),
    ],
)
def test_values_that_are_refused(value, typename, error, text):
    with pytest.raises(error, match=f"feature 'k'.*{text}") as caught:
        body(value, typename)
    assert type(caught.value) is error


@pytest.mark.parametrize("typename", ["int64", "INT", "float32", None, int])
def test_unknown_type_names(typename):
    with pytest.raises(KeyError, match="'byte', 'float' or 'int'"):
        body(1, typename)


@pytest.mark.parametrize(
    ("datum", "error"),
    [
        ({"k": 1}, TypeError),
        ({"k": (1, "int", 2)}, ValueError),
        ({"k": [[1, 2], [3, 4]]}, TypeError),
        ({5: (1, "int")}, TypeError),
        ({b"\xff": (1, "int")}, UnicodeDecodeError),
        (None, AttributeError),
    ],
)
def test_rows_that_are_none(datum, error):
    with pytest.raises(error):
        serialize(datum)


def test_names_of_features():
    row = {"größe": (1, "int"), b"b": [2, "int"], "": (3, "int")}
    message = example_pb2.Example.FromString(serialize(MappingProxyType(row)))
    assert {key: item.int64_list.value[0] for key, item in message.features.feature.items()} == {
        "größe": 1,
        "b": 2,
        "": 3,
    }


@pytest.mark.parametrize(
    ("steps", "typename", "expected"),
    [
        ([[1], [2, 3]], "int", [ints(1), ints(2, 3)]),
        ([1, 2], "int", [ints(1), ints(2)]),
        ([], "int", []),
        ([[], [1]], "int", [ints(), ints(1)]),
        (np.array([[1, 2], [3, 4]]), "int", [ints(1, 2), ints(3, 4)]),
        (np.arange(2, dtype=np.uint8), "int", [ints(0), ints(1)]),
        (np.array([0.5, 1.5]), "float", [floats(0.5), floats(1.5)]),
        (np.zeros((1, 2, 3), np.float32), "float", [floats(*[0] * 6)]),
        ([np.ones(2), np.ones(3)], "float", [floats(1, 1), floats(1, 1, 1)]),
        ([b"a", [b"b", b"c"]], "byte", [strings(b"a"), strings(b"b", b"c")]),
        (b"ab", "int", [ints(97), ints(98)]),
        ((k for k in (1, 2)), "int", [ints(1), ints(2)]),
    ],
)
def test_steps_of_a_sequence(steps, typename, expected):
    assert serialize_sequence({"n": (3, "int")}, {"s": (steps, typename)}) == sequence(
        {"n": ints(3)}, {"s": expected}
    )


def test_steps_must_be_iterable():
    with pytest.raises(TypeError, match="iterable"):
        serialize_sequence({}, {"s": (5, "int")})


VALUES = st.one_of(
    st.tuples(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4), st.just("int")),
    st.tuples(st.lists(st.floats(width=32), max_size=4), st.just("float")),
    st.tuples(st.lists(st.binary(max_size=5), max_size=4), st.just("byte")),
)


@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=6))
def test_bytes_are_those_of_the_wire_format_names_sorted(row):
    bodies = {"int": ints, "float": floats, "byte": strings}
    entries = sorted(
        (name.encode(), bodies[typename](*values)) for name, (values, typename) in row.items()
    )
    payload = serialize(row)
    assert payload == field(1, b"".join(entry(name, body) for name, body in entries))
    assert example_pb2.Example.FromString(payload).features.feature.keys() == row.keys()


def test_whole_files(tmp_path):
    with TFRecordWriter(tmp_path / "a") as writer:
        writer.write({"k": (1, "int")})
        writer.write({})
        writer.write({"a": (1, "int")}, {})
    expected = [example(k=ints(1)), example(), sequence({"a": ints(1)}, {})]
    assert (tmp_path / "a").read_bytes() == b"".join(map(frame, expected))


def test_a_failing_write_leaves_the_file_sound(tmp_path):
    writer = TFRecordWriter(tmp_path / "a")
    writer.write({"i": (1, "int")})
    for bad in ({"a": (2, "int"), "i": ("x", "int")}, {"i": (1, "nosuch")}):
        with pytest.raises((TypeError, KeyError)):
            writer.write(bad)
    writer.write({"i": (2, "int")})
    writer.close()
    writer.close()
    assert numbers(tfrecord_loader(tmp_path / "a")) == [1, 2]
    with pytest.raises(ValueError, match="write to closed file"):
        writer.write({"i": (3, "int")})


def test_many_records_of_all_sizes(tmp_path):
    rng = np.random.default_rng(0)
    patches = [rng.random(size, np.float32) for size in (0, 1, 30_000, 5, 400_000, 2)] * 5
    with TFRecordWriter(tmp_path / "a") as writer:
        for k, patch in enumerate(patches):
            writer.write({"p": (patch, "float"), "i": (k, "int")})
    rows = list(tfrecord_loader(tmp_path / "a", None, {"i": "int", "p": "float"}))
    assert numbers(rows) == list(range(len(patches)))
    assert all(np.array_equal(row["p"], patch) for row, patch in zip(rows, patches, strict=True))


def test_an_error_in_the_block_leaves_no_file(tmp_path):
    with pytest.raises(TypeError), TFRecordWriter(tmp_path / "a") as writer:
        writer.write({"i": (1.5, "int")})
    assert os.listdir(tmp_path) == []


def test_a_writer_that_nobody_closed_still_writes(tmp_path):
    writer = TFRecordWriter(tmp_path / "a")
    writer.write({"i": (1, "int")})
    del writer
    assert numbers(tfrecord_loader(tmp_path / "a")) == [1]


@pytest.mark.parametrize("what", ["bytes path", "descriptor"])
def test_where_records_can_go(tmp_path, what):
    path = tmp_path / "a"
    target: Any = os.fsencode(path)
    if what == "descriptor":
        target = os.open(path, os.O_WRONLY | os.O_CREAT)
    with TFRecordWriter(target) as writer:
        writer.write({"i": (1, "int")})
    assert path.read_bytes() == frame(example(i=ints(1)))


def test_a_name_ending_gz_alone_compresses_nothing(tmp_path):
    with TFRecordWriter(tmp_path / "a.gz") as writer:
        writer.write({"i": (1, "int")})
    assert (tmp_path / "a.gz").read_bytes() == frame(example(i=ints(1)))


def test_a_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        TFRecordWriter(tmp_path / "no" / "a")


@pytest.mark.parametrize("data", [b"123456789", b"", bytes(1000)])
def test_masked_crc(data):
    assert TFRecordWriter.masked_crc(data) == masked_crc(data)
    assert TFRecordWriter.masked_crc(b"123456789").hex() == "e5b08ac7"

"""Rows decoded by columns: equal to protobuf's reading of each record, whatever the order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compat.bytes_of import (
    UNSET,
    entry,
    example,
    field,
    floats,
    frame,
    ints,
    sequence,
    strings,
    write,
)
from tfrio.compat import example_pb2, extract_feature_dict, tfrecord_loader
from tfrio.errors import DecodeError

FIELDS = {"byte": "bytes_list", "float": "float_list", "int": "int64_list"}
BODIES = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3).map(lambda v: ints(*v)),
    st.lists(st.floats(width=32, allow_nan=False), max_size=3).map(lambda v: floats(*v)),
    st.lists(st.binary(max_size=4), max_size=3).map(lambda v: strings(*v)),
)
ROWS = st.dictionaries(st.sampled_from("abcd"), BODIES, max_size=4)
LISTS = st.dictionaries(st.sampled_from("stu"), st.lists(BODIES, max_size=3), max_size=3)


def plain(value: Any) -> Any:
    """Make values comparable with their types: arrays as dtype and list."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return (value.dtype.str, value.tolist()) if isinstance(value, np.ndarray) else value


def load(path: Any, *payloads: bytes, **options: Any) -> list[Any]:
    return list(tfrecord_loader(write(path, *payloads), **options))


def by_protobuf(payload: bytes, described: Any = None) -> dict[str, Any]:
    message = example_pb2.Example.FromString(payload)
    return extract_feature_dict(message.features, described, FIELDS)


def outcome(action: Any) -> Any:
    try:
        return action()
    except (KeyError, TypeError) as error:
        return error


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, max_size=12))
def test_examples_equal_protobufs_reading_of_each(tmp_path_factory, rows):
    payloads = [example(**row) for row in rows]
    read = load(tmp_path_factory.mktemp("rows") / "a", *payloads)
    assert plain(read) == plain([by_protobuf(payload) for payload in payloads])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(ROWS, LISTS), max_size=8))
def test_sequences_equal_protobufs_reading_of_each(tmp_path_factory, rows):
    payloads = [sequence(context, lists) for context, lists in rows]
    path = tmp_path_factory.mktemp("rows") / "a"
    messages = [example_pb2.SequenceExample.FromString(payload) for payload in payloads]
    expected = [
        (
            extract_feature_dict(message.context, None, FIELDS),
            extract_feature_dict(message.feature_lists, None, FIELDS),
        )
        for message in messages
    ]
    assert plain(load(path, *payloads, sequence_description=[])) == plain(expected)


@settings(max_examples=40, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=8), st.permutations("abcd"), st.data())
def test_descriptions_equal_protobufs_reading_or_error(tmp_path_factory, rows, names, data):
    types = st.sampled_from([None, "byte", "float", "int"])
    wanted = {name: data.draw(types) for name in names[: data.draw(st.integers(1, 3))]}
    path = write(tmp_path_factory.mktemp("rows") / "a", *(example(**row) for row in rows))
    reader = iter(tfrecord_loader(path, None, wanted))
    for row in rows:
        expected = outcome(lambda row=row: by_protobuf(example(**row), wanted))
        if isinstance(expected, Exception):
            with pytest.raises(type(expected)) as caught:
                next(reader)
            assert str(caught.value).startswith(str(expected)[:-1].rstrip("'\""))
            assert next(reader, "end") == "end"
            return
        got = next(reader)
        assert list(got) == list(wanted)
        assert plain(got) == plain(expected)
    assert next(reader, "end") == "end"


def test_steps_of_several_kinds_in_one_list(tmp_path):
    rows = load(
        tmp_path / "a",
        sequence({"n": ints(1)}, {"s": [ints(1)]}),
        sequence({"n": ints(2)}, {"s": [ints(1), floats(0.5), strings(b"x")]}),
        sequence({"n": ints(3)}, {"s": [floats(2.5)]}),
        sequence_description=["s"],
    )
    assert plain([lists["s"] for _, lists in rows]) == [
        [("<i8", [1])],
        [("<i8", [1]), ("<f4", [0.5]), b"x"],
        [("<f4", [2.5])],
    ]
    assert [int(context["n"][0]) for context, _ in rows] == [1, 2, 3]


def test_new_features_and_other_kinds_on_the_way(tmp_path):
    payloads = [example(a=ints(k)) for k in range(300)]
    payloads += [example(a=floats(k), b=strings(b"x")) for k in range(300)]
    rows = load(tmp_path / "a", *payloads)
    assert [row["a"].dtype.str for row in rows] == ["<i8"] * 300 + ["<f4"] * 300
    assert [row.get("b") for row in rows] == [None] * 300 + [b"x"] * 300
    assert [float(row["a"][0]) for row in rows] == [*range(300), *range(300)]


def test_a_description_of_one_place_and_all_of_the_other(tmp_path):
    payloads = [
        sequence({"n": ints(k), "m": floats(1)}, {"s": [ints(k)], "t": []}) for k in range(3)
    ]
    payloads.append(sequence({"n": ints(3), "new": ints(0)}, {"s": [ints(3)], "u": [ints(0)]}))
    rows = load(tmp_path / "a", *payloads, description={"n": "int"}, sequence_description=[])
    assert [(int(c["n"][0]), sorted(c)) for c, _ in rows] == [(k, ["n"]) for k in range(4)]
    assert [sorted(lists) for _, lists in rows] == [["s", "t"]] * 3 + [["s", "u"]]
    rows = load(tmp_path / "a", *payloads[:3], description=[], sequence_description=["s"])
    assert [(sorted(c), sorted(lists)) for c, lists in rows] == [(["m", "n"], ["s"])] * 3


def test_rows_before_a_bad_one_come_first(tmp_path):
    payloads = [example(i=ints(k)) for k in range(300)]
    read: list[Any] = []
    with pytest.raises(TypeError, match="Incompatible type 'int' for `i` .should be 'float'"):
        read.extend(
            tfrecord_loader(
                write(tmp_path / "a", *payloads, example(i=floats(1))), None, {"i": "int"}
            )
        )
    assert len(read) == 300


@pytest.mark.parametrize("payload", [b"\xff\xff\xff", b"\x0a\x05\x0a", b"plain text"])
def test_a_payload_that_is_no_example(tmp_path, payload):
    path, read = write(tmp_path / "a", example(i=ints(1)), payload), []
    with pytest.raises(DecodeError, match="record 1"):
        read.extend(tfrecord_loader(path))
    assert len(read) == 1


def test_wire_forms_that_protobuf_takes(tmp_path):
    payloads = {
        "unpacked": example(k=field(3, b"\x08\x05\x08\x06")),
        "joined": example(k=ints(5) + ints(6)),
        "last key wins": field(1, entry(b"k", ints(1)) + entry(b"k", ints(5, 6))),
        "merged features": example() + example(k=ints(5, 6)),
        "unknown field": example(k=ints(5, 6)) + field(15, b"zz"),
    }
    rows = load(tmp_path / "a", *payloads.values())
    assert [row["k"].tolist() for row in rows] == [[5, 6]] * len(payloads)


def test_an_example_without_features(tmp_path):
    assert load(tmp_path / "a", b"", example()) == [{}, {}]
    assert load(tmp_path / "a", b"", sequence_description=[]) == [({}, {})]


def test_arrays_are_writable_and_do_not_overlap(tmp_path):
    rows = load(tmp_path / "a", *(example(k=ints(k, k)) for k in range(5)))
    rows[1]["k"][:] = 9
    assert [row["k"].tolist() for row in rows] == [[0, 0], [9, 9], [2, 2], [3, 3], [4, 4]]


@pytest.mark.parametrize("wanted", [["k"], {"k": None}, ("k",)])
def test_untyped_descriptions(tmp_path, wanted):
    payloads = [example(k=ints(1), j=ints(2)), example(j=ints(3), k=UNSET)]
    rows = load(tmp_path / "a", *payloads, description=wanted)
    assert plain(rows) == [{"k": ("<i8", [1])}, {"k": None}]


@pytest.mark.parametrize("wanted", ["k", 5, {"k"}])
def test_descriptions_that_are_none(tmp_path, wanted):
    with pytest.raises(TypeError, match="description|len"):
        load(tmp_path / "a", example(k=ints(1)), description=wanted)


def test_large_rows_do_not_share_memory_with_small_ones(tmp_path):
    big = np.arange(300_000, dtype=np.float32)
    body = field(2, field(1, big.tobytes()))
    path = tmp_path / "a"
    path.write_bytes(b"".join(frame(example(p=body, i=ints(k))) for k in range(3)))
    rows = list(tfrecord_loader(path))
    assert all(np.array_equal(row["p"], big) for row in rows)
    assert [int(row["i"][0]) for row in rows] == [0, 1, 2]

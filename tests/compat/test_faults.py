"""Known faults of the published package in values and writing, by symptom: none is left."""

from __future__ import annotations

import inspect
import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.compat.bytes_of import (
    UNSET,
    example,
    floats,
    frame,
    ints,
    numbers,
    strings,
    write,
)
from tfrio import compat
from tfrio.compat import TFRecordWriter, tfrecord_iterator, tfrecord_loader


def one(path: Path, body: bytes, description: object = None) -> object:
    (row,) = tfrecord_loader(write(path, example(k=body)), None, description)
    return row.get("k", "no key")


# F2
def test_f02_duplicate_symbol_beside_another_tensorflow_example():
    code = """
import tfrio.compat, tfrio.compat.example_pb2
from google.protobuf import descriptor_pb2, descriptor_pool
file = descriptor_pb2.FileDescriptorProto(name="x.proto", package="tensorflow", syntax="proto3")
file.message_type.add(name="BytesList")
descriptor_pool.Default().AddSerializedFile(file.SerializeToString())
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# F7
def test_f07_a_feature_without_a_kind_is_an_index_error(tmp_path):
    path = tmp_path / "a"
    assert one(path, UNSET) == "no key"
    assert one(path, UNSET, ["k"]) is None
    for typename, dtype in (("int", np.int64), ("float", np.float32), ("byte", object)):
        value = one(path, UNSET, {"k": typename})
        assert (value.dtype, value.shape) == (dtype, (0,))


def test_f07_only_the_records_without_a_kind_differ(tmp_path):
    path = write(tmp_path / "a", *(example(k=ints(1, 2) if k % 3 else UNSET) for k in range(600)))
    typed = [row["k"].tolist() for row in tfrecord_loader(path, None, {"k": "int"})]
    assert typed == [[1, 2] if k % 3 else [] for k in range(600)]
    named = [row["k"] is None for row in tfrecord_loader(path, None, ["k"])]
    assert named == [not k % 3 for k in range(600)]
    assert [sorted(row) for row in tfrecord_loader(path)] == [
        ["k"] if k % 3 else [] for k in range(600)
    ]


# F8
def test_f08_several_byte_strings_lose_their_trailing_nuls(tmp_path):
    value = one(tmp_path / "a", strings(b"a\0", b"\0b\0", b""))
    assert value.tolist() == [b"a\0", b"\0b\0", b""]


def test_f08_several_byte_strings_are_padded_to_the_longest(tmp_path):
    value = one(tmp_path / "a", strings(b"x" * 10**6, *[b"y"] * 50))
    assert value.nbytes < 10_000
    assert [len(item) for item in value] == [10**6] + [1] * 50


# F9
def test_f09_a_list_of_raw_records_holds_the_last_one_only(tmp_path):
    views = list(tfrecord_iterator(write(tmp_path / "a", b"one", b"two", b"three")))
    assert [bytes(view) for view in views] == [b"one", b"two", b"three"]
    views[0][0] = 0x4F
    assert [bytes(view) for view in views] == [b"One", b"two", b"three"]


# F10
@pytest.mark.parametrize(
    ("value", "typename", "stored"),
    [
        (np.array([[1.5, 2], [3, 4]]), "float", [1.5, 2, 3, 4]),
        (np.array([True, False]), "int", [1, 0]),
        (np.arange(6).reshape(2, 3)[:, ::2], "int", [0, 2, 3, 5]),
    ],
)
def test_f10_arrays_are_written_as_empty_lists(tmp_path, value, typename, stored):
    with TFRecordWriter(tmp_path / "a") as writer:
        writer.write({"k": (value, typename)})
    (row,) = tfrecord_loader(tmp_path / "a")
    assert row["k"].tolist() == stored


def test_f10_floats_written_as_int_are_an_empty_list():
    with pytest.raises(TypeError, match=r"feature 'k'.*float64"):
        TFRecordWriter.serialize_tf_example({"k": (np.array([1.0, 2.0]), "int")})


# F13
def test_f13_the_type_names_of_the_readme_are_key_errors(tmp_path):
    path = write(tmp_path / "a", example(b=strings(b"x"), i=ints(3)))
    (row,) = tfrecord_loader(path, None, {"b": "bytes", "i": "int "})
    assert row == {"b": b"x", "i": np.array([3])}
    payload = TFRecordWriter.serialize_tf_example({"b": (b"x", "bytes"), "i": (3, " int")})
    assert payload == example(b=strings(b"x"), i=ints(3))


# F16
def test_f16_an_absent_key_ends_the_pass_without_saying_where(tmp_path):
    payloads = [example(i=ints(k), j=ints(k)) for k in range(400)]
    payloads[300] = example(i=ints(300), other=ints(0))
    path, read = write(tmp_path / "a", *payloads), []
    with pytest.raises(KeyError, match=rf"Key j doesn't exist .*i.*other.*Record 300 of {path}"):
        read.extend(numbers(tfrecord_loader(path, None, ["i", "j"])))
    assert [sorted(row) for row in tfrecord_loader(path)][299:302] == [
        ["i", "j"],
        ["i", "other"],
        ["i", "j"],
    ]


# F20
def test_f20_output_bytes_change_from_run_to_run(tmp_path):
    code = """
import sys
from tfrio.compat import TFRecordWriter
row = {f"key{k}": (k, "int") for k in range(20)}
print(TFRecordWriter.serialize_tf_example(row).hex())
"""
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(runs) == 1
    forward, backward = {"a": (1, "int"), "b": (2, "int")}, {"b": (2, "int"), "a": (1, "int")}
    assert TFRecordWriter.serialize_tf_example(forward) == TFRecordWriter.serialize_tf_example(
        backward
    )
    assert list(next(tfrecord_loader(write(tmp_path / "a", example(z=ints(1), b=ints(2)))))) == [
        "b",
        "z",
    ]


# F21
def test_f21_no_with_no_append_no_flush_no_file_object(tmp_path):
    path = tmp_path / "a"
    with TFRecordWriter(path) as writer:
        writer.write({"i": (1, "int")})
        writer.flush()
        assert numbers(tfrecord_loader(path)) == [1]
    with TFRecordWriter(path, mode="a") as writer:
        writer.write({"i": (2, "int")})
    assert numbers(tfrecord_loader(path)) == [1, 2]
    file = io.BytesIO()
    with TFRecordWriter(file) as writer:
        writer.write({"i": (1, "int")})
    assert file.getvalue() == frame(example(i=ints(1)))


@pytest.mark.parametrize(
    ("value", "typename", "feature"),
    [
        (bytearray(b"ab"), "byte", strings(b"ab")),
        (True, "int", ints(1)),
        (np.bool_(True), "int", ints(1)),
        (torch.arange(3), "int", ints(0, 1, 2)),
        (torch.tensor([0.5], requires_grad=True), "float", floats(0.5)),
        (np.array(5), "int", ints(5)),
        (np.float64(2.5), "float", floats(2.5)),
        (np.ones((2, 2), np.int8), "int", ints(1, 1, 1, 1)),
    ],
)
def test_f21_unambiguous_values_are_refused(value, typename, feature):
    assert TFRecordWriter.serialize_tf_example({"k": (value, typename)}) == example(k=feature)


# F26
def test_f26_arrays_are_encoded_one_number_at_a_time(monkeypatch):
    from tfrio.compat import _values

    monkeypatch.setattr(_values, "_items", None)  # the way that looks at every item
    patch = np.random.default_rng(0).random((5, 3), np.float32)
    for value in (patch, patch.astype(np.float64), patch[:, ::2], patch.T, list(range(3))):
        payload = TFRecordWriter.serialize_tf_example({"k": (value, "float")})
        flat = np.ravel(value).astype(np.float32)
        assert payload == example(k=floats(*flat.tolist()))


# F27
def test_f27_no_wheel_no_bounds_on_dependencies():
    import tomllib

    project = tomllib.loads(
        (Path(__file__).parents[2] / "dropin" / "pyproject.toml").read_text(encoding="utf-8")
    )
    assert all(">=" in need for need in project["project"]["dependencies"])
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/tfrecord"]


def test_every_function_keeps_its_arguments():
    names = {
        "tfrecord_iterator": "data_path index_path shard compression_type",
        "example_loader": "data_path index_path description shard compression_type",
        "sequence_loader": "data_path index_path context_description features_description shard "
        "compression_type",
        "tfrecord_loader": "data_path index_path description shard sequence_description "
        "compression_type",
        "multi_tfrecord_loader": "data_pattern index_pattern splits description "
        "sequence_description compression_type infinite shard",
        "process_feature": "feature typename typename_mapping key",
        "extract_feature_dict": "features description typename_mapping",
        "cycle": "iterator_fn",
        "sample_iterators": "iterators ratios infinite",
        "shuffle_iterator": "iterator queue_size",
        "TFRecordWriter": "data_path",
    }
    for function, arguments in names.items():
        parameters = inspect.signature(getattr(compat, function)).parameters.values()
        positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert positional == arguments.split(), function

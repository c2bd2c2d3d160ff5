"""The protobuf classes: those of TensorFlow's files, in a pool of their own."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest

from tfrio.compat import example_pb2
from tfrio.compat.example_pb2 import Example, Feature, Features, Int64List, SequenceExample

# What brings the same symbols into protobuf's default pool, as TensorFlow does.
REGISTER = """
from google.protobuf import descriptor_pb2, descriptor_pool
file = descriptor_pb2.FileDescriptorProto(
    name="tensorflow/core/example/feature.proto", package="tensorflow", syntax="proto3")
for name in ("BytesList", "Example", "Feature"):
    file.message_type.add(name=name)
descriptor_pool.Default().AddSerializedFile(file.SerializeToString())
"""
USE = """
from tfrio.compat.example_pb2 import Example
assert Example.FromString(bytes.fromhex("0a0c0a0a0a016b12051a030a0101")).features.feature["k"]
"""


@pytest.mark.parametrize("order", [(REGISTER, USE), (USE, REGISTER)])
def test_lives_beside_another_tensorflow_example_in_either_order(order):
    subprocess.run([sys.executable, "-c", "".join(order)], check=True, timeout=60)


def test_nothing_is_registered_in_the_default_pool():
    ask = """
from google.protobuf import descriptor_pool
try:
    descriptor_pool.Default().FindMessageTypeByName("tensorflow.Example")
except KeyError:
    print("free")
"""
    done = subprocess.run(
        [sys.executable, "-c", USE + ask], check=True, timeout=60, capture_output=True, text=True
    )
    assert done.stdout == "free\n"


def test_names_are_those_of_the_proto_file():
    assert Example.DESCRIPTOR.full_name == "tensorflow.Example"
    assert example_pb2.DESCRIPTOR.name == "example.proto"


def test_bytes_are_those_of_the_published_classes():
    message = Example(features=Features(feature={"k": Feature(int64_list=Int64List(value=[1]))}))
    assert message.SerializeToString().hex() == "0a0c0a0a0a016b12051a030a0101"
    steps = SequenceExample()
    steps.feature_lists.feature_list["s"].feature.add().int64_list.value.append(1)
    assert steps.SerializeToString().hex() == "120e0a0c0a017312070a051a030a0101"


def test_a_feature_has_one_kind():
    feature = Feature()
    feature.float_list.value.append(1.5)
    feature.bytes_list.value.append(b"x")
    assert feature.WhichOneof("kind") == "bytes_list"


def test_messages_copy_and_pickle():
    message = Example.FromString(bytes.fromhex("0a0c0a0a0a016b12051a030a0101"))
    assert pickle.loads(pickle.dumps(message)) == message
    assert copy.deepcopy(message) == message


@pytest.mark.parametrize("name", example_pb2.__all__)
def test_every_name_is_there(name):
    assert getattr(example_pb2, name).__class__ is not None

"""Protobuf classes of tf.train.Example, served by ``tfrio.compat.example_pb2``."""

from tfrio.compat.example_pb2 import (
    DESCRIPTOR,
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)

__all__ = [
    "DESCRIPTOR",
    "BytesList",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
]

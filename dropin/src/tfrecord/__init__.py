"""The import name ``tfrecord``, served by ``tfrio.compat``."""

from __future__ import annotations

import importlib

from tfrecord import iterator_utils, reader, tools, writer
from tfrio.compat import (
    TFRecordWriter,
    cycle,
    example_loader,
    extract_feature_dict,
    multi_tfrecord_loader,
    process_feature,
    sample_iterators,
    sequence_loader,
    shuffle_iterator,
    tfrecord_iterator,
    tfrecord_loader,
)

__all__ = [
    "TFRecordWriter",
    "cycle",
    "example_loader",
    "extract_feature_dict",
    "iterator_utils",
    "multi_tfrecord_loader",
    "process_feature",
    "reader",
    "sample_iterators",
    "sequence_loader",
    "shuffle_iterator",
    "tfrecord_iterator",
    "tfrecord_loader",
    "tools",
    "writer",
]


def __getattr__(name: str) -> object:
    """Load ``torch`` and ``example_pb2`` at their first use: both import big packages."""
    if name in ("torch", "example_pb2"):
        try:
            return importlib.import_module(f"tfrecord.{name}")
        except ImportError as error:
            raise AttributeError(f"tfrecord.{name} needs a package: {error}") from error
    raise AttributeError(f"module 'tfrecord' has no attribute {name!r}")

"""The public modules and names of PyPI ``tfrecord``, thin over tfrio's own floors.

``import tfrio.compat as tfrecord`` is enough for most programs; the distribution
``tfrio-tfrecord`` provides the import name ``tfrecord`` itself.
"""

from __future__ import annotations

import importlib

from tfrio.compat import iterator_utils, reader, tools, writer
from tfrio.compat.iterator_utils import cycle, sample_iterators, shuffle_iterator
from tfrio.compat.reader import (
    example_loader,
    extract_feature_dict,
    multi_tfrecord_loader,
    process_feature,
    sequence_loader,
    tfrecord_iterator,
    tfrecord_loader,
)
from tfrio.compat.writer import TFRecordWriter

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
            return importlib.import_module(f"tfrio.compat.{name}")
        except ImportError as error:
            raise AttributeError(f"tfrio.compat.{name} needs a package: {error}") from error
    raise AttributeError(f"module 'tfrio.compat' has no attribute {name!r}")

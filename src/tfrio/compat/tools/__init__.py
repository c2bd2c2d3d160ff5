"""Tools: text indexes of record files."""

from __future__ import annotations

import importlib

from tfrio.compat._index import create_index

__all__ = ["create_index"]


def __getattr__(name: str) -> object:
    """Load the command's module late, so that ``python -m`` finds it not yet imported."""
    if name == "tfrecord2idx":
        return importlib.import_module("tfrio.compat.tools.tfrecord2idx")
    raise AttributeError(f"module 'tfrio.compat.tools' has no attribute {name!r}")

"""TFRecord without TensorFlow: read, write, check, export rasters and tables, bring maps back.

Importing this package imports nothing but the standard library. Each public name is loaded at
its first use (PEP 562), so that `import tfrio` stays quick and optional packages stay optional.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfrio import compat, geo, tables, torch
    from tfrio.errors import TfrioError, TfrioWarning
    from tfrio.examples.columns import Batch, BytesColumn, Ragged
    from tfrio.examples.decode import read, read_batches
    from tfrio.examples.infer import infer_schema
    from tfrio.examples.schema import Feature, Schema
    from tfrio.examples.writer import Writer
    from tfrio.records.reader import read_records
    from tfrio.records.verify import verify
    from tfrio.records.writer import RecordWriter
    from tfrio.survey import InfoReport, info
    from tfrio.types import XY

__version__ = "0.1.0"

__all__ = [
    "XY",
    "Batch",
    "BytesColumn",
    "Feature",
    "InfoReport",
    "Ragged",
    "RecordWriter",
    "Schema",
    "TfrioError",
    "TfrioWarning",
    "Writer",
    "__version__",
    "compat",
    "geo",
    "infer_schema",
    "info",
    "read",
    "read_batches",
    "read_records",
    "tables",
    "torch",
    "verify",
]

_HOMES = {
    "XY": "tfrio.types",
    "Batch": "tfrio.examples.columns",
    "BytesColumn": "tfrio.examples.columns",
    "Feature": "tfrio.examples.schema",
    "Ragged": "tfrio.examples.columns",
    "RecordWriter": "tfrio.records.writer",
    "Schema": "tfrio.examples.schema",
    "TfrioError": "tfrio.errors",
    "TfrioWarning": "tfrio.errors",
    "Writer": "tfrio.examples.writer",
    "infer_schema": "tfrio.examples.infer",
    "read": "tfrio.examples.decode",
    "read_batches": "tfrio.examples.decode",
    "read_records": "tfrio.records.reader",
    "verify": "tfrio.records.verify",
}
_MODULES = frozenset({"compat", "geo", "tables", "torch"})


def __getattr__(name: str) -> object:
    """Load a public name at its first use."""
    if name in _MODULES:
        return importlib.import_module(f"tfrio.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'tfrio' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)

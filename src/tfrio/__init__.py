"""TFRecord without TensorFlow: read, write, check, export rasters and tables, bring maps back.

Importing this package imports nothing but the standard library. Each public name is loaded at
its first use (PEP 562), so that `import tfrio` stays quick and optional packages stay optional.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfrio import compat, geo, tables, torch
    from tfrio.datasets.arrays import ArrayDataset
    from tfrio.datasets.mixing import mix
    from tfrio.errors import TfrioError, TfrioWarning
    from tfrio.examples.arrow import from_arrow, to_arrow
    from tfrio.examples.check import check_schema
    from tfrio.examples.columns import Batch, BytesColumn, Ragged
    from tfrio.examples.decode import read, read_batches
    from tfrio.examples.infer import infer_schema
    from tfrio.examples.opened import ExampleSequence, open  # noqa: A004
    from tfrio.examples.repair import repair
    from tfrio.examples.reshard import merge, reshard
    from tfrio.examples.schema import Feature, Schema
    from tfrio.examples.schema_files import load_schema, save_schema
    from tfrio.examples.stats import stats
    from tfrio.examples.where import filter_examples
    from tfrio.examples.writer import Writer
    from tfrio.records.counting import count
    from tfrio.records.damage import Damage, DamageReport
    from tfrio.records.reader import read_records
    from tfrio.records.sequence import RecordSequence
    from tfrio.records.sharded import ShardedWriter
    from tfrio.records.verify import VerifyReport, verify
    from tfrio.records.writer import RecordWriter
    from tfrio.survey import InfoReport, info
    from tfrio.types import XY

__version__ = "0.1.0"

__all__ = [
    "XY",
    "ArrayDataset",
    "Batch",
    "BytesColumn",
    "Damage",
    "DamageReport",
    "ExampleSequence",
    "Feature",
    "InfoReport",
    "Ragged",
    "RecordSequence",
    "RecordWriter",
    "Schema",
    "ShardedWriter",
    "TfrioError",
    "TfrioWarning",
    "VerifyReport",
    "Writer",
    "__version__",
    "check_schema",
    "compat",
    "count",
    "filter_examples",
    "from_arrow",
    "geo",
    "infer_schema",
    "info",
    "load_schema",
    "merge",
    "mix",
    "open",
    "read",
    "read_batches",
    "read_records",
    "repair",
    "reshard",
    "save_schema",
    "stats",
    "tables",
    "to_arrow",
    "torch",
    "verify",
]

_MODULES = frozenset({"compat", "geo", "tables", "torch"})
_CONTENTS = {
    "tfrio.datasets.arrays": ("ArrayDataset",),
    "tfrio.datasets.mixing": ("mix",),
    "tfrio.errors": ("TfrioError", "TfrioWarning"),
    "tfrio.examples.arrow": ("from_arrow", "to_arrow"),
    "tfrio.examples.check": ("check_schema",),
    "tfrio.examples.columns": ("Batch", "BytesColumn", "Ragged"),
    "tfrio.examples.decode": ("read", "read_batches"),
    "tfrio.examples.infer": ("infer_schema",),
    "tfrio.examples.opened": ("ExampleSequence", "open"),
    "tfrio.examples.schema": ("Feature", "Schema"),
    "tfrio.examples.schema_files": ("load_schema", "save_schema"),
    "tfrio.examples.stats": ("stats",),
    "tfrio.examples.where": ("filter_examples",),
    "tfrio.examples.writer": ("Writer",),
    "tfrio.records.counting": ("count",),
    "tfrio.records.damage": ("Damage", "DamageReport"),
    "tfrio.records.reader": ("read_records",),
    "tfrio.examples.repair": ("repair",),
    "tfrio.examples.reshard": ("merge", "reshard"),
    "tfrio.records.sequence": ("RecordSequence",),
    "tfrio.records.sharded": ("ShardedWriter",),
    "tfrio.records.verify": ("VerifyReport", "verify"),
    "tfrio.records.writer": ("RecordWriter",),
    "tfrio.survey": ("InfoReport", "info"),
    "tfrio.types": ("XY",),
}
_HOMES = {name: module for module, names in _CONTENTS.items() for name in names}


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

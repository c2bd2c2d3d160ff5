"""Tables to TFRecord and back: Arrow, Parquet, GeoParquet, GeoJSON, CSV, NumPy archives.

Each public name is loaded at its first use, so that optional packages stay optional.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfrio.tables.export import TableExportReport, export_table
    from tfrio.tables.extract import ExtractReport, extract_images
    from tfrio.tables.load import TableImportReport, import_table
    from tfrio.tables.manifest import TableManifest
    from tfrio.tables.patches import read_patches
    from tfrio.tables.transcode import ConvertReport, convert

__all__ = [
    "ConvertReport",
    "ExtractReport",
    "TableExportReport",
    "TableImportReport",
    "TableManifest",
    "convert",
    "export_table",
    "extract_images",
    "import_table",
    "read_patches",
]

_HOMES = {
    "ConvertReport": "transcode",
    "ExtractReport": "extract",
    "TableExportReport": "export",
    "TableImportReport": "load",
    "TableManifest": "manifest",
    "convert": "transcode",
    "export_table": "export",
    "extract_images": "extract",
    "import_table": "load",
    "read_patches": "patches",
}


def __getattr__(name: str) -> object:
    """Load a public name at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tfrio.tables' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"tfrio.tables.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)

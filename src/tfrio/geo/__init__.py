"""Rasters to TFRecord shards with a mixer, and predictions back to the map.

Each public name is loaded at its first use, so that optional packages stay optional.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfrio.geo.arrays import array_source
    from tfrio.geo.assemble import import_image
    from tfrio.geo.assemble_extract import extract_patches
    from tfrio.geo.assemble_open import open_export
    from tfrio.geo.assemble_predictions import PredictionWriter, write_predictions
    from tfrio.geo.assemble_quicklook import quicklook
    from tfrio.geo.assemble_report import ImportReport
    from tfrio.geo.assemble_upload import upload_manifest, upload_manifests
    from tfrio.geo.export import export_image, export_images
    from tfrio.geo.grid import PatchGrid
    from tfrio.geo.labels import Labels
    from tfrio.geo.lost import lost_patches
    from tfrio.geo.manifest import Manifest, read_manifest
    from tfrio.geo.mixer import Mixer, read_mixer
    from tfrio.geo.points import PatchesAt, Split
    from tfrio.geo.report import ExportReport

__all__ = [
    "ExportReport",
    "ImportReport",
    "Labels",
    "Manifest",
    "Mixer",
    "PatchGrid",
    "PatchesAt",
    "PredictionWriter",
    "Split",
    "array_source",
    "export_image",
    "export_images",
    "extract_patches",
    "import_image",
    "lost_patches",
    "open_export",
    "quicklook",
    "read_manifest",
    "read_mixer",
    "upload_manifest",
    "upload_manifests",
    "write_predictions",
]

_HOMES = {
    "ExportReport": "report",
    "ImportReport": "assemble_report",
    "Labels": "labels",
    "Manifest": "manifest",
    "Mixer": "mixer",
    "PatchGrid": "grid",
    "PatchesAt": "points",
    "PredictionWriter": "assemble_predictions",
    "Split": "points",
    "array_source": "arrays",
    "export_image": "export",
    "export_images": "export",
    "extract_patches": "assemble_extract",
    "import_image": "assemble",
    "lost_patches": "lost",
    "open_export": "assemble_open",
    "quicklook": "assemble_quicklook",
    "read_manifest": "manifest",
    "read_mixer": "mixer",
    "upload_manifest": "assemble_upload",
    "upload_manifests": "assemble_upload",
    "write_predictions": "assemble_predictions",
}


def __getattr__(name: str) -> object:
    """Load a public name at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tfrio.geo' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"tfrio.geo.{_HOMES[name]}"), name)
    if name == "open_export" and importlib.util.find_spec("xarray") is not None:
        importlib.import_module("tfrio.accessor")  # its arrays lead on to datasets
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)

"""Rasters to TFRecord shards with a mixer, and predictions back to the map.

Each public name is loaded at its first use, so that optional packages stay optional.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfrio.geo.arrays import array_source
    from tfrio.geo.assemble import import_image
    from tfrio.geo.export import export_image, export_images
    from tfrio.geo.grid import PatchGrid
    from tfrio.geo.labels import Labels
    from tfrio.geo.manifest import Manifest, read_manifest
    from tfrio.geo.mixer import Mixer, read_mixer
    from tfrio.geo.points import PatchesAt, Split
    from tfrio.geo.report import ExportReport

__all__ = [
    "ExportReport",
    "Labels",
    "Manifest",
    "Mixer",
    "PatchGrid",
    "PatchesAt",
    "Split",
    "array_source",
    "export_image",
    "export_images",
    "import_image",
    "read_manifest",
    "read_mixer",
]

_HOMES = {
    "ExportReport": "report",
    "Labels": "labels",
    "Manifest": "manifest",
    "Mixer": "mixer",
    "PatchGrid": "grid",
    "PatchesAt": "points",
    "Split": "points",
    "array_source": "arrays",
    "export_image": "export",
    "export_images": "export",
    "import_image": "assemble",
    "read_manifest": "manifest",
    "read_mixer": "mixer",
}


def __getattr__(name: str) -> object:
    """Load a public name at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tfrio.geo' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"tfrio.geo.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)

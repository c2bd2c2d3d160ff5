"""What marks masked pixels in the shards of exports, as the manifests beside them tell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfrio import storage
from tfrio.geo.manifest import is_of_table, read_manifest
from tfrio.geo.naming import group_exports
from tfrio.storage import is_stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tfrio.geo.manifest import Manifest
    from tfrio.geo.naming import ExportNames

__all__ = ["ExportFill", "alike", "exports_beside", "fills_beside", "manifests_beside"]


@dataclass(frozen=True, slots=True)
class ExportFill:
    """What marks masked pixels in the shards of one export.

    Attributes:
        manifest: The manifest's file.
        values: The fill of each feature that has a number for it.
        shared: Features in which a real pixel may have that value, too.
    """

    manifest: str
    values: Mapping[str, float]
    shared: tuple[str, ...]


def exports_beside(paths: Iterable[str]) -> Iterator[ExportNames]:
    """Find the exports that files are shards of.

    Args:
        paths: Files; a stream has no neighbours.

    Yields:
        The names of each export, in order of folders and prefixes.
    """
    files = [path for path in paths if not is_stream(path)]
    mine = {path.rpartition("/")[2] for path in files}
    for folder in sorted({path.rpartition("/")[0] for path in files}):
        names = [entry.path for entry in storage.list_folder(folder or ".")]
        for export in group_exports(names):
            if mine & {name.rpartition("/")[2] for name in export.shards}:
                yield export


def manifests_beside(paths: Iterable[str]) -> Iterator[tuple[str, Manifest]]:
    """Read the manifests of the images that files are shards of.

    Args:
        paths: Files.

    Yields:
        Path and manifest of each export that has one.

    Raises:
        GeoError: A manifest is damaged.
    """
    for export in exports_beside(paths):
        if export.manifest is not None and not is_of_table(export.manifest):
            yield export.manifest, read_manifest(export.manifest)


def fills_beside(paths: Iterable[str]) -> list[ExportFill]:
    """Read what marks masked pixels in these files.

    Args:
        paths: Shards of exports; others are passed over.

    Returns:
        One entry for each export with a manifest.

    Raises:
        GeoError: A manifest is damaged.
    """
    return [_fill(path, manifest) for path, manifest in manifests_beside(paths)]


def alike(fills: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the fill by feature, without features that have several.

    Args:
        fills: Features and a fill of each, in any order and number.
    """
    found: dict[str, set[float]] = {}
    for name, value in fills:
        found.setdefault(name, set()).add(value)
    return {name: values.pop() for name, values in found.items() if len(values) == 1}


def _fill(path: str, manifest: Manifest) -> ExportFill:
    bands = [b for b in manifest.bands if b.kind != "bytes" and not math.isnan(b.fill_value)]
    shared = {band.feature for band in bands if band.nodata_value != band.fill_value}
    fills = alike((band.feature, band.fill_value) for band in bands)
    return ExportFill(path, fills, tuple(name for name in fills if name in shared))

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

    from tfrio.geo.naming import ExportNames

__all__ = ["ExportFill", "exports_beside", "fills_beside"]


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


def fills_beside(paths: Iterable[str]) -> list[ExportFill]:
    """Read what marks masked pixels in these files.

    Args:
        paths: Shards of exports; others are passed over.

    Returns:
        One entry for each export with a manifest.

    Raises:
        GeoError: A manifest is damaged.
    """
    found = [export.manifest for export in exports_beside(paths)]
    return [_fill(path) for path in found if path is not None and not is_of_table(path)]


def _fill(path: str) -> ExportFill:
    fills: dict[str, set[float]] = {}
    shared = []
    for band in read_manifest(path).bands:
        if band.kind != "bytes" and not math.isnan(band.fill_value):
            fills.setdefault(band.feature, set()).add(band.fill_value)
            if band.nodata_value != band.fill_value:
                shared.append(band.feature)
    alike = {name: values.pop() for name, values in fills.items() if len(values) == 1}
    return ExportFill(path, alike, tuple(name for name in alike if name in shared))

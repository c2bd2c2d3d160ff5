"""The shards of an export against its manifest: all there, and of the sizes noted.

Sizes tell at the cost of one look at each file that a shard was renamed or written again; that
equally long ones hold the bytes noted is told by ``tfrio verify``, which reads them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tfrio import storage
from tfrio.errors import GeoError, listed
from tfrio.records.names import base_name, folder_of
from tfrio.records.noted import other_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrio.geo.assemble_files import Survey
    from tfrio.geo.assemble_target import Target
    from tfrio.geo.manifest import ShardRow

__all__ = ["check_own_shards", "of_export", "shards_here"]


def shards_here(target: Target, rows: Sequence[ShardRow], *, partial: bool) -> list[ShardRow]:
    """Return the shards that are there, each of the size noted.

    Args:
        target: The export, known by its manifest.
        rows: The shards wanted.
        partial: Whether some may be missing.

    Returns:
        Their rows, in order.

    Raises:
        GeoError: Shards are missing, or one has another size.
    """
    folder = folder_of(target.name)
    sizes = [storage.size_of(folder + row.name) for row in rows]
    lost = [row for row, size in zip(rows, sizes, strict=True) if size is None]
    if lost and (not partial or len(lost) == len(rows)):
        raise _lost(target, lost, len(rows))
    for row, size in zip(rows, sizes, strict=True):
        if size is not None and size != row.size:
            what = f"{size:,} bytes, not {row.size:,}"
            raise GeoError(
                other_bytes(folder + row.name, "the manifest", what),
                path=folder + row.name,
                expected=row.size,
                got=size,
            )
    return [row for row, size in zip(rows, sizes, strict=True) if size is not None]


def check_own_shards(survey: Survey, target: Target) -> None:
    """Compare files with the manifest where they are the shards of the export themselves.

    Predictions may lie beside a copy of the manifest under the very names of the shards; other
    features than the export's tell them.

    Raises:
        GeoError: A shard has another size.
    """
    if target.manifest is None:
        return
    known = {row.feature for row in target.manifest.bands} | {target.manifest.index_feature}
    folder = os.path.normpath(folder_of(target.name) or ".")
    names = {
        base_name(path)
        for path in survey.paths
        if os.path.normpath(folder_of(path) or ".") == folder
    }
    rows = [row for row in target.manifest.shards if row.name in names]
    if rows and set(survey.features) <= known:
        shards_here(target, rows, partial=True)


def of_export(survey: Survey, target: Target) -> bool:
    """Tell whether the files bear the prefix of the export: its shards, not predictions."""
    if target.prefix is None:
        return False
    own = os.path.normpath(target.prefix)
    return all(os.path.normpath(file.prefix) == own for file in survey.files)


def _lost(target: Target, lost: Sequence[ShardRow], total: int) -> GeoError:
    """Return the error that names missing shards and says how to go on."""
    shown = listed((shard.name for shard in lost), most=5)
    remedy = "" if len(lost) == total else ", or pass partial=True to read those that are here"
    return GeoError(
        f"{target.name}: {len(lost)} of {total} shards are missing: {shown}. Fetch them{remedy}",
        path=target.name,
    )

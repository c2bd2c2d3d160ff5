"""Which patches of an export are lost with the records of a damaged shard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrio.errors import GeoError
from tfrio.geo.fills import manifests_beside

if TYPE_CHECKING:
    from tfrio.examples.repair import RepairReport
    from tfrio.geo.manifest import Manifest, ShardRow

__all__ = ["lost_patches", "lost_with"]


def lost_patches(report: RepairReport) -> list[int]:
    """Tell which patches are lost with what ``tfrio.repair`` could not keep of a shard.

    Args:
        report: What repairing the shard did; its export's manifest lies beside the shard.

    Returns:
        Indices of the patches, counted row by row from the upper left corner of the raster.

    Raises:
        GeoError: There is no manifest, or damage in several places hides which records are lost.
    """
    found = lost_with(report)
    if found is None:
        raise GeoError(
            f"{report.path}: no manifest of an export lies beside it, so nothing tells which "
            "patches its records are",
            path=report.path,
        )
    return found[1]


def lost_with(report: RepairReport) -> tuple[str, list[int]] | None:
    """Return the manifest beside a shard and the patches lost; None where there is no manifest."""
    name = report.path.rpartition("/")[2]
    for path, manifest in manifests_beside([report.path]):
        for row in manifest.shards:
            if row.name == name:
                return path, _patches(manifest, row, report)
    return None


def _patches(manifest: Manifest, row: ShardRow, report: RepairReport) -> list[int]:
    written = manifest.written
    return [written[row.first + record] for record in _records(row, report)]


def _records(row: ShardRow, report: RepairReport) -> list[int]:
    """Return the numbers of the lost records within the shard."""
    places = [damage for damage in report.damages if not damage.repairable]
    missing = row.records - report.kept
    if missing == sum(damage.lost_records for damage in places):
        return [d.record + k for d in places for k in range(d.lost_records)]
    if len(places) == 1 and 0 < missing <= row.records - places[0].record:
        return [places[0].record + k for k in range(missing)]
    raise GeoError(
        f"{report.path}: {missing} of {row.records} records are lost in {len(places)} places, and "
        "damage hides how many in each: export again",
        path=report.path,
    )

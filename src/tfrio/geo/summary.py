"""What an export says of itself: its manifest and its warnings."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from tfrio.geo.manifest import Account, BandRow, GridRow, Manifest, ShardRow, json_number
from tfrio.geo.stack import source_names

if TYPE_CHECKING:
    from tfrio.geo.options import ExportOptions
    from tfrio.geo.patches import Patches
    from tfrio.geo.work import Job, Notes

__all__ = ["describe", "notes_of"]


def describe(job: Job, options: ExportOptions, rows: list[ShardRow], seen: Notes) -> Manifest:
    """Return the manifest of an export.

    Args:
        job: The export.
        options: Its options.
        rows: Its shards, in order.
        seen: What was seen while it was written.
    """
    return Manifest(
        software=f"tfrio {version('tfrio')}",
        source=source_names(job.source),
        grid=_grid_row(job, options),
        bands=_band_rows(job),
        layout="pixel" if job.recipe.sequence else "patch",
        collapsed=options.collapse_bands,
        index_feature=job.recipe.index_feature,
        kept=None if job.patches.kept is None else [int(index) for index in job.patches.kept],
        masks=seen.masks,
        statistics={
            band.name: moments.row()
            for band, moments in zip(job.source.bands, seen.moments, strict=True)
            if job.statistics
        },
        account=_account(job.patches, seen.masked),
        shards=rows,
        options=options.as_json(),
    )


def _grid_row(job: Job, options: ExportOptions) -> GridRow:
    frame, patches = job.source.frame, job.patches
    free = patches.grid is None
    return GridRow(
        crs=frame.crs,
        affine=(*frame.affine,),
        size=(frame.size.x, frame.size.y),
        patch=(options.patch.x, options.patch.y),
        kernel=(options.kernel.x, options.kernel.y),
        stride=(options.stride.x, options.stride.y) if options.stride else None,
        edge=options.edge,
        origins=list(zip(patches.columns, patches.rows, strict=True)) if free else None,
    )


def _band_rows(job: Job) -> list[BandRow]:
    recipe, rows = job.recipe, []
    for number, band in enumerate(job.source.bands):
        feature = next(row for row in recipe.features if number in row.bands)
        depth = recipe.depths[number]
        varies = depth is not None and recipe.sequence and recipe.drop_masked
        rows.append(
            BandRow(
                name=band.name,
                dtype=band.dtype,
                feature=feature.name,
                kind=feature.kind,
                stored=feature.stored.name,
                fill=json_number(float(recipe.fills[number])),
                nodata=None if band.nodata is None else json_number(band.nodata),
                depth=0 if varies else depth,
            )
        )
    return rows


def _account(patches: Patches, masked: int) -> Account:
    pixels = patches.size.x * patches.size.y
    if patches.grid is not None and patches.kept is None:
        covered = patches.grid.coverage.covered
    else:
        counted = sum(patches.counted(position).pixels for position in range(len(patches)))
        covered = min(counted, pixels)
    return Account(
        patches=len(patches),
        pixels=pixels,
        covered=covered,
        dropped=pixels - covered,
        masked=masked,
    )


def notes_of(job: Job, seen: Notes) -> list[str]:
    """Return what the user should know, one sentence each.

    Args:
        job: The export.
        seen: What was seen while it was written.
    """
    notes = []
    for number, band in enumerate(job.source.bands):
        if seen.hidden[number] and seen.filled[number]:
            fill = job.recipe.fills[number]
            notes.append(
                f"band {band.name}: masked pixels were written as {fill}, which valid pixels have "
                "too; only the manifest tells them apart. Give another default_value to be safe"
            )
        if seen.coarse[number]:
            notes.append(
                f"band {band.name}: whole numbers above 16,777,216 were rounded to float32. Use "
                'dtype="native" to keep them'
            )
        if seen.huge[number]:
            notes.append(
                f"band {band.name}: values beyond 3.4e38 became infinite: Examples hold float32. "
                "Scale the band first"
            )
    return notes

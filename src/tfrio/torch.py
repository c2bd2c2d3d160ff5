"""Datasets for PyTorch: exact over workers and ranks, shuffled, resumable.

Needs the extra ``torch``: ``pip install 'tfrio[torch]'``. This is also where image exports and
datasets meet: what a manifest or mixer says becomes a layout of patches.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial as bound
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from tfrio.errors import CorruptRecordError, GeoError, UsageError, require, warn_user

require("torch", extra="torch")

from tfrio.datasets import patches  # noqa: E402
from tfrio.datasets.episodes import EpisodeDataset  # noqa: E402
from tfrio.datasets.loader import Loader  # noqa: E402
from tfrio.datasets.mixing import mix  # noqa: E402
from tfrio.datasets.patch_layout import BandLayout, PatchLayout  # noqa: E402
from tfrio.datasets.patches import predictions  # noqa: E402
from tfrio.datasets.split import spatial_blocks  # noqa: E402
from tfrio.datasets.state import merge_states  # noqa: E402
from tfrio.datasets.tensors import TensorBatch  # noqa: E402
from tfrio.datasets.torch_data import TFRecordDataset, TFRecordMapDataset  # noqa: E402
from tfrio.examples.infer import sample_stream  # noqa: E402
from tfrio.geo.assemble_files import find_files  # noqa: E402
from tfrio.geo.assemble_layout import read_layout  # noqa: E402
from tfrio.geo.assemble_order import first_records  # noqa: E402
from tfrio.geo.assemble_shards import shards_here  # noqa: E402
from tfrio.geo.assemble_target import Target, target_of  # noqa: E402
from tfrio.geo.grid import margin_of  # noqa: E402
from tfrio.records.access import RecordFile  # noqa: E402
from tfrio.records.names import folder_of  # noqa: E402
from tfrio.records.reader import RecordStream  # noqa: E402
from tfrio.types import XY, Shape  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from xarray import DataArray

    from tfrio.datasets.setup import Index
    from tfrio.examples.observe import Seen
    from tfrio.geo.assemble_files import PredictionFile
    from tfrio.geo.manifest import BandRow, Manifest

__all__ = [
    "EpisodeDataset",
    "Loader",
    "PatchDataset",
    "TFRecordDataset",
    "TFRecordMapDataset",
    "TensorBatch",
    "merge_states",
    "mix",
    "predictions",
    "read_patch_layout",
    "spatial_blocks",
]

_NUMPY_BYTE = "uint8"  # bytes bands of Earth Engine hold one byte a pixel


class PatchDataset(patches.PatchDataset):
    """Iterate over the patches of an image export as tensors."""

    __doc__ = patches.PatchDataset.__doc__

    @staticmethod
    def read_layout(
        export: str | Path | DataArray,
        *,
        kernel: tuple[int, int] | None,
        split: str | None,
        partial: bool,
        index: Index,
    ) -> PatchLayout:
        """Read the layout of an export from its side files (see ``read_patch_layout``)."""
        return read_patch_layout(export, kernel=kernel, split=split, partial=partial, index=index)


def read_patch_layout(
    export: str | Path | DataArray,
    *,
    kernel: tuple[int, int] | None = None,
    split: str | None = None,
    partial: bool = False,
    index: Index = "auto",
) -> PatchLayout:
    """Read the layout of an image export.

    Args:
        export: Prefix of the export, its mixer or manifest, or the array that
            ``tfrio.geo.open_export`` made of it.
        kernel: Kernel (x, y) where no manifest tells it; None infers it from the patches' size.
        split: Split whose shards are wanted, where the export divided its patches.
        partial: Take the shards that are here, where others are missing.
        index: How the records of an incomplete export without manifest are counted.

    Returns:
        The layout.

    Raises:
        GeoError: No export is found, shards are missing, or the kernel cannot be inferred.
        UsageError: There is no such split, or the array is a cut of an export.
    """
    target = target_of(_source(export))
    opened = {} if isinstance(export, str | PathLike) else export.encoding.get("tfrio", {})
    partial = partial or opened.get("partial", False)
    if target.manifest is not None:
        layout = _of_manifest(target, target.manifest, split, partial=partial, asked=kernel)
    elif split is None:
        files = find_files(target.prefix or target.name, prefix=target.prefix, partial=partial)
        layout = _of_mixer(target, files, kernel or opened.get("kernel"))
        if partial:
            layout = _partly_known(layout, files, index)
    else:
        raise UsageError(f"{target.name}: only a manifest tells splits; leave split away")
    if not isinstance(export, str | PathLike):
        layout = replace(layout, shown=_chosen(export, target, layout))
    return layout


def _source(export: str | Path | DataArray) -> str:
    if isinstance(export, str | PathLike):
        return str(export)
    source = getattr(export, "encoding", {}).get("source")
    if source is None:
        raise UsageError(
            "this array does not tell the export it is from: give the prefix of the export, or the "
            "array as tfrio.geo.open_export gave it"
        )
    return str(source)


def _chosen(array: DataArray, target: Target, layout: PatchLayout) -> tuple[str, ...] | None:
    """Return the bands that an array of an export shows, None for all; refuse a cut of its rows."""
    planes, size = sum(band.depth for band in layout.bands), target.frame.size
    if array.sizes.get("y") == size.y and array.sizes.get("x") == size.x:
        names = np.atleast_1d(array.coords.get("band", array.name)).tolist()
        if set(names) <= {band.name for band in layout.bands if band.depth == 1}:
            return tuple(names)
        if array.size == planes * size.y * size.x:
            return None
    raise UsageError(
        f"{target.name}: the array is a part of the export (shape {array.shape} of "
        f"{(planes, size.y, size.x)}). Give all of its rows and columns: a dataset reads whole "
        "patches, and its bands by name"
    )


def _cells(target: Target) -> NDArray[np.int64]:
    """Return grid row and column, pixel row and column of each patch, shape (patches, 4)."""
    windows = [target.places.window(index) for index in range(target.places.total)]
    left = np.array([window.column for window in windows], np.int64)
    top = np.array([window.row for window in windows], np.int64)
    row = np.unique(top, return_inverse=True)[1] if top.size else top
    column = np.unique(left, return_inverse=True)[1] if left.size else left
    return np.stack([row, column, top, left], axis=1)


def _of_manifest(
    target: Target,
    manifest: Manifest,
    split: str | None,
    *,
    partial: bool,
    asked: tuple[int, int] | None,
) -> PatchLayout:
    shards = [shard for shard in manifest.shards if split is None or shard.split == split]
    if not shards:
        known = sorted({shard.split for shard in manifest.shards} - {""}) or "none"
        raise UsageError(f"{target.name}: no shards of split {split!r}; splits: {known}")
    shards, folder = shards_here(target, shards, partial=partial), folder_of(target.name)
    kernel = target.kernel or XY(1, 1)
    if asked is not None and XY.of(asked, name="kernel") != kernel:
        raise UsageError(
            f"{target.name}: the export has kernel ({kernel.x}, {kernel.y}), not {asked}; leave "
            "kernel away"
        )
    margin = margin_of(kernel)
    stored = XY(target.patch.x + 2 * margin.x, target.patch.y + 2 * margin.y)
    return PatchLayout(
        paths=tuple(folder + shard.name for shard in shards),
        first=np.array([shard.first for shard in shards], np.int64),
        bands=tuple(_bands(manifest)),
        stored=stored.shape,
        margin=Shape(margin.y, margin.x),
        affine=target.frame.affine,
        cells=_cells(target),
        index_feature=manifest.index_feature,
        written=None if manifest.kept is None else np.array(manifest.kept, np.int64),
        masked=bound(_masked, target) if manifest.masks else None,
        total=sum(shard.records for shard in shards),
    )


def _masked(target: Target, index: int) -> NDArray[np.bool_] | None:
    return target.masks(index)


def _bands(manifest: Manifest) -> list[BandLayout]:
    made: list[BandLayout] = []
    planes: dict[str, int] = {}
    for row in manifest.bands:
        made.append(_band(row, manifest, planes.get(row.feature, 0)))
        planes[row.feature] = planes.get(row.feature, 0) + made[-1].depth
    return made


def _band(row: BandRow, manifest: Manifest, plane: int) -> BandLayout:
    known = manifest.statistics.get(row.name)
    return BandLayout(
        name=row.name,
        feature=row.feature,
        kind=row.kind,
        dtype=row.stored,
        plane=plane,
        depth=row.depth or 1,
        whole=np.dtype(row.dtype).kind in "iub",
        mean=None if known is None else known.mean,
        std=None if known is None else known.std,
    )


def _partly_known(
    layout: PatchLayout, files: Sequence[PredictionFile], index: Index
) -> PatchLayout:
    """Tell which patches the shards hold that are here, from their numbers and counts."""
    total = layout.total or 0
    try:
        counts = [RecordFile(file.path, index=index).count for file in files]
        if sum(counts) == total:
            return layout
        first = first_records([file.number for file in files], counts, total, name=files[0].path)
    except (GeoError, CorruptRecordError) as error:
        reason = str(error).split(". ", maxsplit=1)[0]
        warn_user(f"{reason}. So index, row and col of its patches are -1, transform is NaN")
        return replace(layout, total=None, placed=False)
    return replace(layout, total=None, first=np.array(first, np.int64))


def _of_mixer(
    target: Target, files: Sequence[PredictionFile], kernel: tuple[int, int] | None
) -> PatchLayout:
    """Take bands, in the order they are stored, and the kernel from the first record."""
    paths = [file.path for file in files]
    with RecordStream(paths[0]) as stream:
        seen = sample_stream(stream)
    features = [s for (_, place), s in seen.features.items() if place == "context"]
    given = None if kernel is None else XY.of(kernel, name="kernel")
    margin = _margin(features, target.patch, given, paths[0])
    stored = XY(target.patch.x + 2 * margin.x, target.patch.y + 2 * margin.y)
    kinds = {"bytes": "bytes", "float": "float", "int64": "int64"}
    return PatchLayout(
        paths=tuple(paths),
        first=None,
        bands=tuple(
            BandLayout(
                name=feature.name,
                feature=feature.name,
                kind=kinds[feature.kind],  # type: ignore[arg-type]
                dtype=_NUMPY_BYTE,
                depth=_depth(feature, stored),
                whole=feature.kind != "float",
            )
            for feature in features
        ),
        stored=stored.shape,
        margin=Shape(margin.y, margin.x),
        affine=target.frame.affine,
        cells=_cells(target),
        total=target.places.total,
    )


def _margin(features: Sequence[Seen], patch: XY, kernel: XY | None, path: str) -> XY:
    """Return the margin (x, y) of the stored patches."""
    if kernel is not None:
        return margin_of(kernel)
    for feature in features:
        if feature.kind != "bytes" and feature.lengths is not None:
            values = feature.lengths[0]
            return read_layout(feature.name, values, patch, where=path).margin
    return XY(0, 0)  # bytes bands alone: a wrong length is an error when they are decoded


def _depth(feature: Seen, stored: XY) -> int:
    if feature.kind == "bytes" or feature.lengths is None:
        return 1
    return max(1, feature.lengths[0] // (stored.x * stored.y))

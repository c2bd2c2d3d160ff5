"""Patches of an export as single GeoTIFFs, each with the transform of its own place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio import storage
from tfrio.errors import UsageError
from tfrio.geo.assemble_open import open_export
from tfrio.geo.assemble_raster import Palette, RasterLook, raster_sink
from tfrio.geo.assemble_target import resolve_target
from tfrio.geo.grid import Window
from tfrio.types import path_text, several

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tfrio.geo.assemble_target import ExportLike, Target
    from tfrio.records.access import IndexChoice
    from tfrio.types import PathLike, PathsLike

__all__ = ["extract_patches"]


def extract_patches(
    export: ExportLike,
    out: PathLike,
    *,
    records: PathsLike | None = None,
    patches: Iterable[int] | None = None,
    bands: Sequence[str] | None = None,
    crs: str | None = None,
    index: IndexChoice = "auto",
    overwrite: bool = False,
) -> list[str]:
    """Write patches as GeoTIFFs, without margins, each in its place on the map.

    Pixels that were masked at export are nodata: the source's nodata value, or NaN in floats. Whole
    numbers whose source had no nodata value have no value to spare, and keep what was stored.

    Args:
        export: A mixer or manifest (file or object), or the prefix or folder of the export.
        out: Folder, made if need be; files are called ``patch-000012.tif``.
        records: The TFRecord files; those of the export by default.
        patches: Indices of the patches; None writes all.
        bands: Features, in the order of the bands; None takes all.
        crs: CRS in place of the one named.
        index: How records are found by number; see ``tfrio.open``.
        overwrite: Replace files that exist.

    Returns:
        The files written, in the order of the patches.

    Raises:
        GeoError: Records and export do not fit together.
        UsageError: There is no such patch.
        FileExistsError: A file exists and ``overwrite`` is not set.
    """
    target = resolve_target(export, records, crs=crs)
    array = open_export(export, records, bands=bands, crs=crs, index=index)
    names = _names(array)
    written = list(target.written)
    folder = Path(path_text(out))
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for patch in written if patches is None else several(patches, "patches", "patch numbers"):
        if patch not in written:
            raise UsageError(f"{target.name}: no patch {patch}; there are {len(written)}")
        window = target.places.window(patch).clipped(target.frame.size)
        values = _pixels(array, window)
        nodata = _nodata(target, names, values.dtype)
        if nodata is not None:
            values = np.where(_masked(target, patch, names, values.shape), nodata, values)
        look = RasterLook(
            frame=target.frame.cropped(window),
            dtype=array.dtype,
            nodata=nodata,
            names=names,
            palette=Palette({}, {}),
            classes=(),
            patch=target.patch,
        )
        path = str(folder / f"patch-{patch:06d}.tif")
        storage.refuse_existing(path, overwrite=overwrite)
        with raster_sink(path, look, flip_rows=False, flip_columns=False) as sink:
            sink.write(Window(0, 0, window.width, window.height), values.astype(array.dtype))
        files.append(path)
    return files


def _pixels(array: Any, window: Window) -> Any:
    """Return (bands, height, width) of a window."""
    rows, columns = window.slices
    values = array.isel(y=rows, x=columns).values
    return values[None] if values.ndim == 2 else values


def _nodata(target: Target, names: Sequence[str], dtype: np.dtype[Any]) -> float | None:
    """Return the nodata value of the bands; None where there is none for all of them."""
    if target.manifest is None:
        return None
    noted = {row.name: row.nodata_value for row in target.manifest.bands}
    values = {noted.get(name) for name in names}
    alone = values.pop() if len(values) == 1 else None
    return np.nan if alone is None and dtype.kind == "f" else alone


def _masked(
    target: Target, patch: int, names: Sequence[str], shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Return which pixels were masked; bands of other names were where any exported one was."""
    masks = target.masks(patch)
    if masks is None or target.manifest is None:
        return np.zeros(shape, np.bool_)
    known = {row.name: number for number, row in enumerate(target.manifest.bands)}
    together = masks.any(axis=0)
    bands = np.stack([masks[known[name]] if name in known else together for name in names])
    return bands[:, : shape[1], : shape[2]]


def _names(array: Any) -> list[str]:
    return [str(array.name)] if array.ndim == 2 else [str(name) for name in array.band.values]

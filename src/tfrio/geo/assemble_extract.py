"""Patches of an export as single GeoTIFFs, each with the transform of its own place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfrio.errors import UsageError
from tfrio.geo.assemble_open import open_export
from tfrio.geo.assemble_raster import Palette, RasterLook, raster_sink
from tfrio.geo.assemble_target import resolve_target
from tfrio.geo.grid import Window
from tfrio.types import path_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfrio.geo.assemble_target import ExportLike
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
) -> list[str]:
    """Write patches as GeoTIFFs, without margins, each in its place on the map.

    Args:
        export: A mixer or manifest (file or object), or the prefix or folder of the export.
        out: Folder, made if need be; files are called ``patch-000012.tif``.
        records: The TFRecord files; those of the export by default.
        patches: Indices of the patches; None writes all.
        bands: Features, in the order of the bands; None takes all.
        crs: CRS in place of the one named.
        index: How records are found by number; see ``tfrio.open``.

    Returns:
        The files written, in the order of the patches.

    Raises:
        GeoError: Records and export do not fit together.
        UsageError: There is no such patch.
    """
    target = resolve_target(export, records, crs=crs)
    array = open_export(export, records, bands=bands, crs=crs, index=index)
    written = list(target.written)
    folder = Path(path_text(out))
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for patch in written if patches is None else patches:
        if patch not in written:
            raise UsageError(f"{target.name}: no patch {patch}; there are {len(written)}")
        window = target.places.window(patch).clipped(target.frame.size)
        values = _pixels(array, window)
        look = RasterLook(
            frame=target.frame.cropped(window),
            dtype=values.dtype,
            nodata=None,
            names=_names(array),
            palette=Palette({}, {}),
            classes=(),
            patch=target.patch,
        )
        path = str(folder / f"patch-{patch:06d}.tif")
        with raster_sink(path, look, flip_rows=False, flip_columns=False) as sink:
            sink.write(Window(0, 0, window.width, window.height), values)
        files.append(path)
    return files


def _pixels(array: Any, window: Window) -> Any:
    """Return (bands, height, width) of a window."""
    rows, columns = window.slices
    values = array.isel(y=rows, x=columns).values
    return values[None] if values.ndim == 2 else values


def _names(array: Any) -> list[str]:
    return [str(array.name)] if array.ndim == 2 else [str(name) for name in array.band.values]

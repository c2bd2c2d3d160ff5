"""What an import aims at: the raster, where each patch lies in it, and what export noted.

A mixer alone is enough. A manifest beside it adds the kernel, masks, left-out patches, strides
and shards; one that contradicts its mixer is refused, because one of the two is from another
export.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from tfrio import storage
from tfrio.errors import GeoError, UsageError, require
from tfrio.geo.assemble_files import PredictionFile, list_shards
from tfrio.geo.assemble_places import GridPlaces, Places, PointPlaces
from tfrio.geo.crs import crs_fault
from tfrio.geo.frame import Frame, lattice_offset
from tfrio.geo.grid import Window
from tfrio.geo.manifest import Manifest, is_of_table, read_manifest
from tfrio.geo.mixer import Mixer, read_mixer
from tfrio.geo.naming import group_exports, parse_shard_name
from tfrio.types import XY, path_text, several

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tfrio.types import PathLike

__all__ = [
    "ExportLike",
    "Target",
    "check_crs",
    "north_up",
    "resolve_target",
    "target_of",
]

ExportLike: TypeAlias = "PathLike | Mixer | Manifest"

_MIXER, _MANIFEST = "mixer.json", "-manifest.json"


@dataclass(frozen=True)
class Target:
    """The raster that predictions are to become.

    Args:
        name: File of the mixer or manifest, for messages.
        frame: CRS, affine and size of the raster, in the orientation of the export.
        patch: Patch (x, y) without margin.
        kernel: Kernel (x, y), None where only a mixer is known.
        places: Where each patch lies.
        written: Index of each patch that was exported, in the order of the records.
        manifest: What export noted, None without.
        prefix: What the names of the export begin with, None when given as an object.
    """

    name: str
    frame: Frame
    patch: XY
    kernel: XY | None
    places: Places
    written: Sequence[int]
    manifest: Manifest | None
    prefix: str | None = None

    def masks(self, index: int) -> NDArray[np.bool_] | None:
        """Return where a patch was masked at export, (bands, height, width), None if nowhere."""
        if self.manifest is None or index not in self.manifest.masks:
            return None
        return self.manifest.masked(index)


def resolve_target(
    export: ExportLike | None, predictions: Any, *, crs: str | None = None, whole: bool = False
) -> Target:
    """Find what an import aims at.

    Args:
        export: A mixer, a manifest, a file of either, the prefix or folder of an export; None
            looks beside the predictions.
        predictions: The predictions as the caller gave them.
        crs: CRS in place of the one named.
        whole: Aim at the whole grid that was exported, not only at the part within patches.

    Returns:
        The target, with a CRS that is known to be understood.

    Raises:
        GeoError: Nothing, or more than one export, is found; mixer and manifest disagree; the CRS
            is not understood.
    """
    target = target_of(export if export is not None else _beside(predictions))
    named = check_crs(crs or target.frame.crs, target.name)
    frame = replace(target.frame, crs=named)
    if whole and target.manifest is None:
        raise UsageError(
            f"{target.name}: a mixer does not tell the size of the source; extent='source' needs "
            "the manifest of the export"
        )
    if whole and target.manifest is not None:
        frame = replace(frame, size=XY(*target.manifest.grid.size))
    return replace(target, frame=frame)


def target_of(export: ExportLike) -> Target:
    """Find an export's mixer and manifest; its CRS is taken as it stands.

    Args:
        export: A mixer, a manifest, a file of either, the prefix or folder of an export.

    Returns:
        What they say.

    Raises:
        GeoError: Nothing, or more than one export, is found; mixer and manifest disagree.
    """
    if isinstance(export, Mixer):
        return _of_mixer(export, "the mixer", None)
    if isinstance(export, Manifest):
        return _of_manifest(export, "the manifest", None)
    path = path_text(export)
    if not path.endswith(".json"):
        path = _side_file(path)
    if path.endswith(_MANIFEST):
        return _of_manifest(read_manifest(path), path, path[: -len(_MANIFEST)])
    mixer = read_mixer(path)
    prefix = path[: -len(_MIXER)].removesuffix("-") if path.endswith(_MIXER) else path[:-5]
    beside = prefix + _MANIFEST
    if storage.size_of(beside) is None:
        return _of_mixer(mixer, path, prefix)
    manifest = read_manifest(beside)
    _check_agreement(mixer, manifest, path, beside)
    return _of_manifest(manifest, path, prefix)


def _check_agreement(mixer: Mixer, manifest: Manifest, path: str, beside: str) -> None:
    noted = manifest.mixer()
    if noted is not None and noted != mixer:
        raise GeoError(
            f"{path} and {beside} describe different grids: {_brief(mixer)} against "
            f"{_brief(noted)}. One is from another export: move it away",
            path=path,
        )


def _brief(mixer: Mixer) -> str:
    return f"{mixer.total_patches} patches of {mixer.patch}, origin {tuple(mixer.affine)[2::3]}"


def _side_file(path: str) -> str:
    """Return the manifest or mixer of a prefix or folder, the manifest first."""
    if storage.is_folder(path):
        return _only_side_file(path, "Give the prefix or the mixer of one")
    found = _of_prefix(path)
    if found is None:
        own = _own_prefixes(path)
        if own:
            raise GeoError(
                f"{path}: these are records. An export goes by its prefix: give {' or '.join(own)}",
                path=path,
            )
        raise GeoError(
            f"{path}: neither {path}-manifest.json nor {path}-mixer.json exists. Give the mixer "
            "that was written with the export",
            path=path,
        )
    return found


def _own_prefixes(path: str) -> list[str]:
    """Return the prefixes of exports whose record files a path or glob names."""
    try:
        prefixes = {PredictionFile.of(file).prefix for file in list_shards(path)}
    except OSError:
        return []
    return sorted(prefix for prefix in prefixes if _of_prefix(prefix) is not None)


def _of_prefix(prefix: str) -> str | None:
    endings = ("-manifest.json", "-mixer.json", "mixer.json", ".json")
    names = (prefix + ending for ending in endings)
    return next((name for name in names if storage.size_of(name) is not None), None)


def _only_side_file(where: str, remedy: str) -> str:
    entries = storage.list_folder(where)
    exports = group_exports(entry.path for entry in entries)
    found = [
        e.manifest or e.mixer for e in exports if e.manifest is not None or e.mixer is not None
    ]
    if not found:
        found = [e.path for e in entries if e.path.endswith((_MIXER, _MANIFEST))]
    if len(found) > 1:
        found = [path for path in found if path is not None and not is_of_table(path)]
    if len(found) == 1 and found[0] is not None:
        return found[0]
    listed = ", ".join(map(str, found)) or "none"
    raise GeoError(f"{where}: one export is needed; mixers here: {listed}. {remedy}", path=where)


def _beside(predictions: Any) -> str:
    """Return the mixer or manifest that lies beside the predictions.

    That of their own prefix comes first, else it is the only one in the folder.
    """
    alone = isinstance(predictions, str | os.PathLike)
    given = [predictions] if alone else several(predictions, "predictions", "files")
    if not given:
        raise UsageError("no predictions were given")
    prefixes = {prefix for path in list_shards(given) for prefix in _prefixes(path)}
    own = [found for found in map(_of_prefix, sorted(prefixes)) if found is not None]
    if len(own) == 1:
        return own[0]
    path = path_text(given[0])
    folder = path if storage.is_folder(path) else os.path.dirname(path) or "."  # noqa: PTH120
    return _only_side_file(folder, "Say which with mixer=")


def _prefixes(path: str) -> set[str]:
    """Return a file's name before its shard number and before its ending, folder and all."""
    named = parse_shard_name(path)
    whole = path if named is None else path[: len(path) - len(named.suffix)]
    return {PredictionFile.of(path).prefix, whole}


def _of_mixer(mixer: Mixer, name: str, prefix: str | None) -> Target:
    grid = mixer.grid()
    return Target(
        name=name,
        frame=Frame(mixer.crs, mixer.affine, mixer.size),
        patch=mixer.patch,
        kernel=None,
        places=GridPlaces(grid),
        written=range(mixer.total_patches),
        manifest=None,
        prefix=prefix,
    )


def _of_manifest(manifest: Manifest, name: str, prefix: str | None) -> Target:
    row = manifest.grid
    patch, size = XY(*row.patch), XY(*row.size)
    places: Places
    if row.origins is not None:
        places = PointPlaces(row.origins, patch, size)
    else:
        grid = manifest.patch_grid()
        places, size = GridPlaces(grid), grid.covered
    if manifest.layout == "pixel":
        raise GeoError(
            f"{name}: this export holds one SequenceExample per pixel, not patches. To train, read "
            "its files with tfrio.torch.EpisodeDataset; write predictions as patches "
            "(tfrio.geo.write_predictions) before bringing them back to a map",
            path=name,
        )
    return Target(
        name=name,
        frame=Frame(manifest.crs, manifest.affine, size),
        patch=patch,
        kernel=XY(*row.kernel),
        places=places,
        written=manifest.written,
        manifest=manifest,
        prefix=prefix,
    )


def check_crs(text: str, name: str) -> str:
    """Return a CRS as GDAL will write it, or say that it is not understood.

    Args:
        text: Authority code, WKT, ESRI or PROJ string.
        name: Where it stands, for the error.

    Returns:
        The same CRS: the text where it is a code, else its WKT.

    Raises:
        GeoError: The CRS is not understood. There is no default: a map in the wrong place looks
            right.
    """
    rasterio = require("rasterio", extra="geo")
    errors = require("rasterio.errors", extra="geo")
    try:
        with rasterio.Env():  # else GDAL prints to the terminal what the error says
            known = rasterio.CRS.from_user_input(text)
    except errors.CRSError as error:
        raise GeoError(
            f"{name}: CRS {text!r}: {crs_fault(text)}; pass crs= with an EPSG code, a WKT "
            "or a PROJ string",
            path=name,
        ) from error
    return str(text if known.to_authority() else known.to_wkt())


def north_up(frame: Frame) -> tuple[Frame, bool, bool]:
    """Turn a grid so that rows go south and columns east, without moving a pixel.

    Args:
        frame: The grid.

    Returns:
        The grid, whether its rows and whether its columns are reversed. A rotated grid has no such
        form and stays as it is.
    """
    a, b, _, d, e, _ = frame.affine
    rows, columns = e > 0, a < 0
    if b or d or not (rows or columns):
        return frame, False, False
    affine = frame.affine
    if rows:
        affine = affine._replace(e=-e, f=affine.f + e * frame.size.y)
    if columns:
        affine = affine._replace(a=-a, c=affine.c + a * frame.size.x)
    return replace(frame, affine=affine), rows, columns


def merged(targets: Sequence[Target]) -> tuple[Frame, list[tuple[int, int]]]:
    """Lay several exports onto one grid.

    Args:
        targets: The exports; all share CRS and pixels.

    Returns:
        The smallest grid over all of them, and the (column, row) of each within it.

    Raises:
        GeoError: Pixels differ in size, or corners do not meet.
    """
    first = targets[0].frame
    offsets = []
    for target in targets:
        same = target.frame.crs == first.crs
        offset = lattice_offset(first, target.frame) if same else None
        if offset is None:
            raise GeoError(
                f"{target.name} does not share the pixels of {targets[0].name}: "
                f"{target.frame.describe()} against {first.describe()}. Merge exports of one grid "
                "only, or warp the imported rasters",
                path=target.name,
            )
        offsets.append(offset)
    left, top = (min(offset[axis] for offset in offsets) for axis in (0, 1))
    right = max(o[0] + t.frame.size.x for o, t in zip(offsets, targets, strict=True))
    bottom = max(o[1] + t.frame.size.y for o, t in zip(offsets, targets, strict=True))
    frame = first.cropped(Window(left, top, right - left, bottom - top))
    return frame, [(column - left, row - top) for column, row in offsets]

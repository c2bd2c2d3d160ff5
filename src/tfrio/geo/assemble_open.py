"""An export or its predictions as a lazy xarray array, patches decoded when they are looked at."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import UsageError, require
from tfrio.examples.opened import open as open_examples
from tfrio.geo.assemble_bands import plan_bands
from tfrio.geo.assemble_cover import Cover, common, spare_patches
from tfrio.geo.assemble_files import FeatureLook, Survey, find_files
from tfrio.geo.assemble_layout import planes
from tfrio.geo.assemble_order import patch_order
from tfrio.geo.assemble_place import patch_mask
from tfrio.geo.assemble_shards import shards_here
from tfrio.geo.assemble_target import north_up as turn_north_up
from tfrio.geo.assemble_target import resolve_target
from tfrio.geo.grid import Window
from tfrio.records.access import RecordFile
from tfrio.types import XY, names_list, path_text, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tfrio.geo.assemble_bands import BandsPlan
    from tfrio.geo.assemble_target import ExportLike, Target
    from tfrio.geo.frame import Frame
    from tfrio.geo.options import Pair
    from tfrio.records.access import IndexChoice
    from tfrio.types import PathsLike

__all__ = ["open_export"]


def open_export(
    export: ExportLike,
    records: PathsLike | None = None,
    *,
    bands: Sequence[str] | None = None,
    kernel: Pair | None = None,
    depth: int | None = None,
    partial: bool = False,
    masked: bool = False,
    north_up: bool = False,
    crs: str | None = None,
    index: IndexChoice = "auto",
) -> Any:
    """Open an export, or predictions made from it, as an xarray array.

    Args:
        export: A mixer or manifest (file or object), or the prefix or folder of the export.
        records: The TFRecord files; those of the export by default.
        bands: Features, in the order of the bands; None takes all.
        kernel: Kernel (x, y); that of the manifest, or the only one that fits, by default.
        depth: Planes per patch of each feature, where the number of values does not tell.
        partial: Go on where shards are missing; their pixels have no patch.
        masked: Give NaN (and a float dtype) where pixels were masked at export or have no patch;
            otherwise masked pixels have the value stored, pixels without a patch 0.
        north_up: Turn a south-up or mirrored grid so that row 0 is the northern one and column 0
            the western one; otherwise rows and columns are as exported.
        crs: CRS in place of the one named.
        index: How records are found by number; see ``tfrio.open``.

    Returns:
        A ``xarray.DataArray`` (y, x), or (band, y, x) where there are several bands, with
        coordinates at the centres of the pixels and attributes ``crs`` and ``transform``. Nothing
        is decoded before it is looked at. The array of an export also gives its patches as tensors
        to train on: ``open_export(prefix).tfrio.patches(bands=[...], label=...)``, with all options
        of ``tfrio.torch.PatchDataset``.

    Raises:
        GeoError: Records and export do not fit together, or a shard is missing or has another size
            than the manifest says.
    """
    xarray = require("xarray", extra="xarray")
    given: Any = records if records is not None else export
    target = resolve_target(export, given, crs=crs)
    if records is None and target.prefix is None:
        raise UsageError("an export given as an object does not tell its files; pass records=")
    where = records if records is not None else target.prefix
    if records is None and target.manifest is not None:
        shards_here(target, target.manifest.shards, partial=partial)
    looked = _look(where, target, bands, index=index, partial=partial)
    asked = None if kernel is None else XY.of(kernel, name="kernel")
    planes = None if depth is None else whole_number(depth, "depth")
    plan = plan_bands(looked, target, kernel=asked, depth=planes, cells=None, layout="chw")
    if plan.scale != XY(1, 1):
        raise UsageError("these predictions are coarser than the pixels; use import_image")
    order = patch_order(looked, target, partial=partial).tolist()
    patches = _Patches(looked, target, plan, order, masked=masked, index=index)
    values = xarray.Variable(("band", "y", "x"), _lazy(patches))
    array = xarray.DataArray(values, coords=_coordinates(target.frame, plan), attrs=_attrs(target))
    if records is None and isinstance(export, str | os.PathLike):
        # As xarray does with files; read by tfrio.torch.
        array.encoding["source"] = path_text(export)
        array.encoding["tfrio"] = {"kernel": kernel, "partial": partial}
    if north_up:
        array = _turned(array, target.frame)
    if len(plan.names) == 1:
        return array.isel(band=0, drop=True).rename(plan.names[0])
    return array


def _turned(array: Any, frame: Frame) -> Any:
    """Return the array with rows from the north and columns from the west, still lazy."""
    turned, rows, columns = turn_north_up(frame)
    ways = {"y": slice(None, None, -1 if rows else 1), "x": slice(None, None, -1 if columns else 1)}
    return array.isel(ways).assign_attrs(transform=tuple(turned.affine))


def _lazy(patches: _Patches) -> Any:
    """Return what xarray asks for pixels when somebody looks at them."""
    base: Any = require("xarray.backends", extra="xarray").BackendArray
    core: Any = require("xarray.core.indexing", extra="xarray")

    class Lazy(base):  # type: ignore[misc]
        """Patches as an array that xarray reads from when values are asked for."""

        shape, dtype = patches.shape, patches.dtype

        def __getitem__(self, key: Any) -> Any:
            basic = core.IndexingSupport.BASIC
            return core.explicit_indexing_adapter(key, self.shape, basic, patches.read)

    return core.LazilyIndexedArray(Lazy())


def _look(
    records: Any,
    target: Target,
    bands: Sequence[str] | None,
    *,
    index: IndexChoice,
    partial: bool,
) -> Survey:
    """Look at names, counts and the first record; the others are checked when they are read."""
    files = find_files(records, prefix=target.prefix, partial=partial)
    counts = tuple(RecordFile(file.path, index=index).count for file in files)
    paths = [file.path for file in files]
    (row,) = open_examples(paths, index=index)[0:1]
    named = target.manifest.index_feature if target.manifest else ""
    order_name = named or ("patch_index" if "patch_index" in row else "")
    every = [name for name in row if name != order_name]
    names = every if bands is None else names_list(bands, "bands")
    for name in names:
        if name not in row:
            raise UsageError(f"no feature '{name}' in the records; there are {', '.join(row)}")
    looks = {name: _feature_look(name, row[name]) for name in names}
    order = None
    if order_name:
        column = open_examples(paths, features=[order_name], index=index)
        order = np.asarray(column.batch(slice(None))[order_name]).ravel()
    return Survey(tuple(files), counts, looks, order)


def _feature_look(name: str, value: Any) -> FeatureLook:
    if isinstance(value, bytes):
        return FeatureLook(name, "bytes", len(value))
    kind = np.asarray(value).dtype.kind
    return FeatureLook(name, "float" if kind == "f" else "int64", int(np.size(value)))


def _coordinates(frame: Frame, plan: BandsPlan) -> dict[str, Any]:
    """Return band names, and the centres of pixels where rows and columns are straight."""
    a, b, c, d, e, f = frame.affine
    coordinates: dict[str, Any] = {"band": list(plan.names)}
    if b == d == 0:
        coordinates["x"] = c + a * (np.arange(frame.size.x) + 0.5)
        coordinates["y"] = f + e * (np.arange(frame.size.y) + 0.5)
    return coordinates


def _attrs(target: Target) -> dict[str, Any]:
    return {"crs": target.frame.crs, "transform": tuple(target.frame.affine)}


class _Patches:
    """The pixels of an export, read patch by patch."""

    def __init__(
        self,
        looked: Survey,
        target: Target,
        plan: BandsPlan,
        order: list[int],
        *,
        masked: bool,
        index: IndexChoice,
    ) -> None:
        self._target = target
        self._plan = plan
        self._masked = masked
        self._rows = open_examples(looked.paths, schema=plan.schema, index=index)
        self._record = {patch: record for record, patch in enumerate(order)}
        size = target.frame.size
        self._spare = sorted(spare_patches(target.places, order))
        self._stand_ins = Cover(target.places.window(patch).clipped(size) for patch in self._spare)
        self.shape = (len(plan.names), size.y, size.x)
        self.dtype = _dtype(plan, masked=masked)

    def read(self, key: tuple[Any, ...]) -> NDArray[Any]:
        """Return pixels for whole numbers and slices of (band, y, x)."""
        spans = [_span(part, length) for part, length in zip(key, self.shape, strict=True)]
        (_, _), (top, bottom), (left, right) = spans
        window = Window(left, top, right - left, bottom - top)
        block = self._block(window)
        inner = tuple(
            part - start if isinstance(part, int | np.integer) else _moved(part, start, length)
            for part, (start, _), length in zip(key, spans, self.shape, strict=True)
        )
        return np.asarray(block[inner])

    def _block(self, window: Window) -> NDArray[Any]:
        """Return all bands of a window."""
        empty = np.nan if self._masked else 0
        block = np.full((self.shape[0], window.height, window.width), empty, self.dtype)
        places = self._target.places
        # Those that stand in for missing ones come first, so that the others cover them.
        for number in self._stand_ins.meeting(window):
            self._put(block, window, self._spare[number], self._stand_ins.windows[number])
        for patch in places.touching(window):
            if patch in self._record:
                self._put(block, window, patch, places.kept(patch))
        return block

    def _put(self, block: NDArray[Any], window: Window, patch: int, taken: Window) -> None:
        """Put the pixels of a patch that lie in a window into its block."""
        shared = common(taken, window)
        if shared.pixels:
            origin = self._target.places.window(patch)
            part = shared.moved(-origin.column, -origin.row)
            place = shared.moved(-window.column, -window.row)
            block[(slice(None), *place.slices)] = self._patch(patch)[(slice(None), *part.slices)]

    def _patch(self, patch: int) -> NDArray[Any]:
        batch = self._rows.batch([self._record[patch]])
        stacks = []
        for feature in self._plan.features:
            column = batch[feature.look.name]
            flat = (
                np.frombuffer(column[0], np.uint8)[None] if feature.look.kind == "bytes" else column
            )
            stacks.append(planes(np.asarray(flat), feature.reading)[0])
        values = np.concatenate(stacks).astype(self.dtype)
        if self._masked:
            hidden = patch_mask(self._target, patch, self._plan, rule="any")
            if hidden is not None:
                values[hidden] = np.nan
        return values


def _dtype(plan: BandsPlan, *, masked: bool) -> np.dtype[Any]:
    """Return the dtype of the source where export noted it, else that of the records."""
    kinds = {"bytes": "uint8", "float": "float32", "int64": "int64"}
    found = [
        np.dtype(kinds[feature.look.kind] if row is None else row.dtype)
        for feature in plan.features
        for row in feature.noted
    ]
    common = np.result_type(*found)
    common = np.dtype("uint8") if common.kind == "b" else common
    return np.result_type(common, np.float32) if masked and common.kind != "f" else common


def _span(part: Any, length: int) -> tuple[int, int]:
    """Return the first and past-the-last position that an index touches."""
    if isinstance(part, slice):
        chosen = range(length)[part]
        return (min(chosen), max(chosen) + 1) if chosen else (0, 0)
    return int(part), int(part) + 1


def _moved(part: slice, start: int, length: int) -> slice:
    """Return a slice within a block that begins at ``start``."""
    first, stop, step = part.indices(length)
    end = stop - start
    return slice(first - start, None if end < 0 else end, step)

"""The plan of an import: every check that can be made before a pixel is written."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import GeoError, UsageError
from tfrio.geo.assemble_bands import BandsPlan, class_bands, plan_bands
from tfrio.geo.assemble_cover import common
from tfrio.geo.assemble_files import Survey, find_files, survey
from tfrio.geo.assemble_order import patch_order
from tfrio.geo.assemble_place import MOST_CLASSES
from tfrio.geo.assemble_shards import check_own_shards
from tfrio.geo.assemble_target import Target, merged
from tfrio.geo.assemble_values import ValueRange, choose_dtype, choose_nodata, value_ranges
from tfrio.geo.grid import Window
from tfrio.types import XY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tfrio.geo.assemble_blend import Blend
    from tfrio.geo.assemble_layout import Layout
    from tfrio.geo.frame import Frame
    from tfrio.types import PathsLike

__all__ = ["Image", "Part", "Request", "coarse", "plan_image", "prepare"]


@dataclass(frozen=True, slots=True)
class Part:
    """One export and its predictions, checked.

    Args:
        target: What was exported.
        survey: What the files hold.
        order: Patch index of each record.
        plan: The bands.
        ranges: Ranges of the whole-number features.
    """

    target: Target
    survey: Survey
    order: NDArray[np.int64]
    plan: BandsPlan
    ranges: dict[str, ValueRange]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """How predictions are to be read; see ``import_image`` for what each option means."""

    bands: Sequence[str] | None = None
    kernel: XY | None = None
    depth: int | None = None
    cells: XY | None = None
    layout: Layout = "chw"
    index: str | None = "auto"
    partial: bool = False
    first_patch: int | None = None
    everything: bool = False


def prepare(predictions: PathsLike, target: Target, request: Request) -> Part:
    """Look at every record of one set of predictions and decide where each goes.

    Args:
        predictions: The files.
        target: What was exported.
        request: How to read them.

    Returns:
        The predictions, checked.
    """
    files = find_files(predictions, prefix=target.prefix, partial=request.partial)
    noted = target.manifest.index_feature if target.manifest else ""
    index = noted if request.index == "auto" and noted else request.index
    found = survey(files, features=request.bands, index=index)
    check_own_shards(found, target)
    order = patch_order(found, target, partial=request.partial, first_patch=request.first_patch)
    plan = plan_bands(
        found,
        target,
        kernel=request.kernel,
        depth=request.depth,
        cells=request.cells,
        layout=request.layout,
    )
    ranges = value_ranges(found.paths, plan, everything=request.everything)
    return Part(target, found, order, plan, ranges)


@dataclass(frozen=True, slots=True)
class Image:
    """The raster to write.

    Args:
        frame: Its grid, in the orientation of the export.
        offsets: (column, row) of each export in it.
        names: Names of the bands.
        dtype: Dtype.
        nodata: Nodata value, None for none.
        classes: Numbers of the bands that hold classes, whose areas are worth an account.
        overlapping: Whether patches at points, or exports, may share pixels.
        notes: What the user should know.
    """

    frame: Frame
    offsets: list[tuple[int, int]]
    names: tuple[str, ...]
    dtype: np.dtype[Any]
    nodata: float | None
    classes: tuple[int, ...]
    overlapping: bool
    notes: tuple[str, ...]


def plan_image(
    parts: Sequence[Part],
    *,
    argmax: bool,
    dtype: np.dtype[Any] | None,
    nodata: float | None,
    blend: Blend,
    named: bool,
) -> Image:
    """Decide grid, bands, dtype and nodata of the raster.

    Args:
        parts: The predictions, checked.
        argmax: Whether bands are scores.
        dtype: Dtype asked for.
        nodata: Nodata value asked for.
        blend: What happens where patches overlap.
        named: Whether classes have names.

    Returns:
        The plan of the raster.
    """
    first = parts[0]
    frame, offsets = _frame(parts)
    plan, ranges = first.plan, _all_ranges(parts)
    _check_same_bands(parts)
    if blend != "crop":
        _check_blend(first, blend, argmax=argmax)
    if argmax:
        top = len(plan.names) - 1
        plan = class_bands(plan)
        ranges = {"class": ValueRange(0, top, True, np.arange(256) <= top)}
    kind = choose_dtype(plan, ranges, dtype=dtype, nodata=nodata)
    overlapping = _overlapping(parts, offsets)
    holes = overlapping or _has_holes(parts, frame)
    needed = holes or (argmax and nodata is None)
    kind, value, note = choose_nodata(plan, ranges, kind, nodata=nodata, needed=needed)
    notes = [note] if note else []
    if overlapping and len(parts) > 1:
        notes.append("the exports overlap: where they do, those named later give the pixels")
    return Image(
        frame=frame,
        offsets=offsets,
        names=plan.names,
        dtype=kind,
        nodata=value,
        classes=_class_numbers(plan, ranges, kind, blended=blend != "crop", named=named),
        overlapping=overlapping,
        notes=tuple(notes),
    )


def _class_numbers(
    plan: BandsPlan,
    ranges: dict[str, ValueRange],
    dtype: np.dtype[Any],
    *,
    blended: bool,
    named: bool,
) -> tuple[int, ...]:
    """Return the bands of few whole numbers, or those that the user's names can only mean."""
    if blended and dtype.kind == "f":
        return ()
    found: list[int] = []
    many: list[int] = []
    number = 0
    for feature in plan.features:
        values = ranges.get(feature.look.name)
        bands = range(number, number + len(feature.bands))
        number = bands.stop
        if values is not None and values.whole and (feature.whole or named or dtype.kind in "iu"):
            (found if values.distinct <= MOST_CLASSES else many).extend(bands)
    return tuple(found or (many if named else ()))


def _frame(parts: Sequence[Part]) -> tuple[Frame, list[tuple[int, int]]]:
    """Return the grid of the raster and the place of each export in it."""
    scale = parts[0].plan.scale
    frame, offsets = merged([part.target for part in parts])
    if scale == XY(1, 1):
        return frame, offsets
    for part in parts:
        _check_scale(part, scale)
    for column, row in offsets:
        if column % scale.x or row % scale.y:
            raise GeoError(
                f"adjacent exports do not meet at multiples of {scale} pixels, the size of a "
                "predicted cell. Import them one by one"
            )
    a, b, c, d, e, f = frame.affine
    affine = frame.affine._replace(a=a * scale.x, d=d * scale.x, b=b * scale.y, e=e * scale.y)
    size = coarse(frame.size, scale)
    moved = [(column // scale.x, row // scale.y) for column, row in offsets]
    return replace(frame, affine=affine._replace(c=c, f=f), size=size), moved


def _check_scale(part: Part, scale: XY) -> None:
    manifest = part.target.manifest
    stride = manifest.grid.stride if manifest else None
    origins = manifest.grid.origins if manifest else None
    shifted = manifest is not None and manifest.grid.edge == "shift"
    if origins is not None or shifted or (stride and (stride[0] % scale.x or stride[1] % scale.y)):
        raise GeoError(
            f"{part.target.name}: patches do not begin at multiples of {scale} pixels, so coarser "
            "predictions have no grid. Repeat each value for its pixels before writing them",
            path=part.target.name,
        )


def coarse(size: XY, scale: XY) -> XY:
    """Return an extent in larger pixels; a cut one counts whole."""
    return XY(-(-size.x // scale.x), -(-size.y // scale.y))


def _all_ranges(parts: Sequence[Part]) -> dict[str, ValueRange]:
    ranges = dict(parts[0].ranges)
    for part in parts[1:]:
        for name, other in part.ranges.items():
            ranges[name] = ranges[name].join(other) if name in ranges else other
    return ranges


def _check_same_bands(parts: Sequence[Part]) -> None:
    for part in parts[1:]:
        if part.plan.names != parts[0].plan.names or part.plan.scale != parts[0].plan.scale:
            raise GeoError(
                f"{part.survey.files[0].path}: bands {', '.join(part.plan.names)} differ from "
                f"{', '.join(parts[0].plan.names)} of {parts[0].survey.files[0].path}. Merge "
                "predictions of one kind only"
            )


def _check_blend(part: Part, blend: Blend, *, argmax: bool) -> None:
    whole = [f.look.name for f in part.plan.features if f.look.kind != "float"]
    if whole and not argmax:
        raise UsageError(
            f"blend={blend!r} takes means, and '{whole[0]}' holds whole numbers. Blend scores "
            "with argmax=True, or use blend='crop' for classes"
        )
    if part.plan.scale != XY(1, 1):
        raise UsageError(f"blend={blend!r} needs predictions at the resolution of the pixels")
    if len({feature.reading.stored for feature in part.plan.features}) > 1:
        raise UsageError(f"blend={blend!r} needs features of one size; choose with bands=")
    if (np.diff(part.order) < 0).any():
        raise UsageError(
            f"blend={blend!r} needs records in the order of the export. Write them in order with "
            "tfrio.geo.write_predictions"
        )


def exports(parts: Sequence[Part], offsets: Sequence[tuple[int, int]]) -> list[Window]:
    """Return the pixels of the raster that each export may have."""
    sizes = [coarse(part.target.frame.size, part.plan.scale) for part in parts]
    return [Window(*offset, size.x, size.y) for offset, size in zip(offsets, sizes, strict=True)]


def _overlapping(parts: Sequence[Part], offsets: Sequence[tuple[int, int]]) -> bool:
    """Tell whether patches at points, or exports, may share pixels."""
    if any(_at_points(part) for part in parts):
        return True
    frames = exports(parts, offsets)
    return any(common(one, other).pixels for one, other in itertools.combinations(frames, 2))


def _at_points(part: Part) -> bool:
    manifest = part.target.manifest
    return manifest is not None and manifest.grid.origins is not None


def _has_holes(parts: Sequence[Part], frame: Frame) -> bool:
    """Tell whether some pixel will have no value."""
    if any(part.target.manifest is not None and part.target.manifest.masks for part in parts):
        return True
    placed = 0
    for part in parts:
        scale = part.plan.scale.x * part.plan.scale.y
        kept = (part.target.places.kept(index) for index in part.order.tolist())
        placed += sum(window.pixels for window in kept) // scale
    return placed < frame.size.x * frame.size.y

"""Predictions back to the map: checked first, then written window by window."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from tfrio import storage
from tfrio.errors import UsageError, warn_user
from tfrio.geo.assemble_area import pixel_area
from tfrio.geo.assemble_blend import Blend
from tfrio.geo.assemble_cover import Cover, spare_patches
from tfrio.geo.assemble_inputs import CheckRule, check_orientation
from tfrio.geo.assemble_layout import Layout
from tfrio.geo.assemble_place import Finish, Job, Tally, place_blended, place_cropped
from tfrio.geo.assemble_plan import Image, Part, Request, coarse, exports, plan_image, prepare
from tfrio.geo.assemble_quicklook import quicklook as draw
from tfrio.geo.assemble_raster import Palette, RasterLook, raster_sink
from tfrio.geo.assemble_report import ClassArea, ImportReport
from tfrio.geo.assemble_target import north_up, resolve_target
from tfrio.geo.assemble_values import known_dtype
from tfrio.types import XY, path_text, real_number, several, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import DTypeLike

    from tfrio.geo.assemble_target import ExportLike
    from tfrio.geo.options import Pair
    from tfrio.types import PathLike, PathsLike

__all__ = ["import_image"]

MaskRule = Literal["any", "all", "off"]
_CHOICES = {
    "blend": get_args(Blend),
    "mask": get_args(MaskRule),
    "layout": get_args(Layout),
    "orientation": ("north-up", "keep"),
    "extent": ("covered", "source"),
    "check": get_args(CheckRule),
}


def import_image(
    predictions: PathsLike | Sequence[PathsLike],
    out: PathLike,
    *,
    mixer: ExportLike | Sequence[ExportLike] | None = None,
    bands: Sequence[str] | None = None,
    kernel: Pair | None = None,
    depth: int | None = None,
    cells: Pair | None = None,
    layout: Layout = "chw",
    index: str | None = "auto",
    partial: bool = False,
    first_patch: int | None = None,
    blend: Blend = "crop",
    argmax: bool = False,
    dtype: DTypeLike | None = None,
    nodata: float | None = None,
    mask: MaskRule = "any",
    crs: str | None = None,
    orientation: Literal["north-up", "keep"] = "north-up",
    extent: Literal["covered", "source"] = "covered",
    class_names: Sequence[str] | Mapping[int, str] | None = None,
    colors: Sequence[Any] | Mapping[int, Any] | None = None,
    compress: str = "deflate",
    cog: bool = False,
    workers: int = 1,
    inputs: PathsLike | None = None,
    check: CheckRule = "error",
    quicklook: PathLike | bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ImportReport:
    """Write predictions, one record a patch, as a GeoTIFF in the place they were exported from.

    Counts, order, checksums and lengths are checked before a pixel is placed; after an error
    there is no file.

    Args:
        predictions: TFRecord files, a folder, a glob or a prefix. With several exports: one of
            these for each.
        out: GeoTIFF to write.
        mixer: A mixer or manifest (file or object), or the prefix or folder of the export; several
            adjacent exports of one grid are merged. None takes that of the predictions' prefix, or
            the only one in their folder. The manifest beside a mixer is used where there is one.
        bands: Features to place, in the order of the bands; None places all.
        kernel: Kernel (x, y) of padded predictions. By default that of the manifest, or the only
            one that fits.
        depth: Planes per patch of each feature, where the number of values does not tell.
        cells: Cells (x, y) per patch of predictions coarser than the pixels.
        layout: ``"chw"`` plane after plane, ``"hwc"`` all planes of a pixel together.
        index: int64 feature that holds the index of each patch, for records in any order;
            ``"auto"`` takes the one noted at export, or ``patch_index`` where it exists.
        partial: Place what there is; patches that are missing become nodata.
        first_patch: Position of the first record among those exported, where shard numbers do not
            tell.
        blend: What happens where patches overlap: ``"crop"`` takes each pixel from one patch,
            ``"mean"`` and ``"hann"`` weigh all patches (margins included).
        argmax: Take the bands as scores and write the number of the largest as band ``class``.
        dtype: Dtype of the raster. By default that of the exported band of the same name, else
            the smallest that holds every value.
        nodata: Nodata value. Without a manifest, pixels that already have it count as masked,
            with a warning.
        mask: ``"any"`` makes a pixel nodata where any exported band was masked, ``"all"`` where
            all were, ``"off"`` nowhere. A band of an exported band's name has that band's mask.
        crs: CRS in place of the one named by the mixer.
        orientation: ``"north-up"`` turns south-up grids, pixels stay where they are; ``"keep"``
            leaves rows as they were exported.
        extent: ``"covered"`` writes the pixels within patches, ``"source"`` the whole grid that was
            exported (its size is in the manifest), dropped edges as nodata.
        class_names: Names of classes, in order from 0 or by value.
        colors: Colours of classes likewise: ``"#1a9850"`` or (red, green, blue).
        compress: ``"deflate"``, ``"zstd"``, ``"lzw"`` or ``"none"``.
        cog: Write a Cloud Optimized GeoTIFF, with overviews.
        workers: Threads that compress.
        inputs: Shards of the export, to compare the predictions with; by default those beside the
            manifest, if they are there.
        check: What to do where the predictions fit the inputs better when transposed, flipped or
            in another order: ``"warn"``, ``"error"`` or ``"off"``.
        quicklook: Where to write a small PNG of the raster; True puts it beside the raster.
        overwrite: Allow ``out`` and the quicklook to exist.
        progress: Told patches placed and patches in all, after each patch.

    Returns:
        The account: patches placed, pixels covered, masked and missing, hectares per class.

    Raises:
        GeoError: Predictions and export do not fit together; the text says where and what next.
        CorruptRecordError: A record is damaged.
        UsageError: An option is wrong.
        FileExistsError: ``out`` or the quicklook exists and ``overwrite`` is not set.
    """
    _check_choices(
        blend=blend, mask=mask, layout=layout, orientation=orientation, extent=extent, check=check
    )
    picture = _picture(path_text(out), quicklook, overwrite=overwrite)
    palette = Palette.of(class_names, colors)
    wanted = None if dtype is None else known_dtype(dtype)
    nodata = None if nodata is None else real_number(nodata, "nodata")
    request = Request(
        bands=bands,
        kernel=None if kernel is None else XY.of(kernel, name="kernel"),
        depth=None if depth is None else whole_number(depth, "depth"),
        cells=None if cells is None else XY.of(cells, name="cells"),
        layout=layout,
        index=index,
        partial=partial,
        first_patch=first_patch,
        # Scores may be whole by chance, float bands with named classes may hold classes: look.
        everything=not argmax and (bool(palette) or (wanted is not None and wanted.kind in "iu")),
    )
    parts = [
        prepare(given, resolve_target(export, given, crs=crs, whole=extent == "source"), request)
        for given, export in _pairs(predictions, mixer)
    ]
    for part in parts:
        check_orientation(part, inputs, argmax=argmax, rule=check)
    image = plan_image(
        parts, argmax=argmax, dtype=wanted, nodata=nodata, blend=blend, named=bool(palette)
    )
    look = _look(image, parts[0], orientation=orientation, palette=palette)
    look = replace(look, compress=compress, cog=cog, workers=workers)
    rules = _Rules(
        blend=blend,
        argmax=argmax,
        mask=mask,
        fills=nodata is not None and parts[0].target.manifest is None,
        progress=progress,
    )
    tally = _write(path_text(out), parts, image, look, rules)
    report = _report(path_text(out), parts, image, look, tally)
    return report if picture is None else _with_quicklook(report, look, picture)


def _picture(out: str, place: PathLike | bool, *, overwrite: bool) -> str | None:
    """Return where the quicklook goes: beside the raster, or where asked; None without one.

    Raises:
        FileExistsError: It or the raster is there, and nobody asked to replace them.
    """
    beside = f"{os.path.splitext(out)[0]}.png" if place else None  # noqa: PTH122
    picture = beside if isinstance(place, bool) else path_text(place)
    storage.refuse_existing(out, picture, overwrite=overwrite)
    return picture


def _with_quicklook(report: ImportReport, look: RasterLook, path: str) -> ImportReport:
    """Draw the raster."""
    classes = True if report.classes and report.classes[0].band == report.bands[0] else None
    draw(report.path, path, classes=classes, colors=look.palette.colors or None)
    return replace(report, quicklook=path)


def _look(image: Image, first: Part, *, orientation: str, palette: Palette) -> RasterLook:
    """Return how the raster is stored."""
    frame = north_up(image.frame)[0] if orientation == "north-up" else image.frame
    patch = coarse(first.target.patch, first.plan.scale)
    return RasterLook(frame, image.dtype, image.nodata, image.names, palette, image.classes, patch)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """What becomes of the pixels; see ``import_image``."""

    blend: Blend
    argmax: bool
    mask: MaskRule
    fills: bool
    progress: Callable[[int, int], None] | None


def _write(
    path: str, parts: Sequence[Part], image: Image, look: RasterLook, rules: _Rules
) -> Tally:
    """Write the raster; nothing bears its name before all is done and warned of."""
    tally = Tally()
    total = sum(len(part.order) for part in parts)
    progress = rules.progress
    rows, columns = (look.frame.affine[term] != image.frame.affine[term] for term in (4, 0))
    with raster_sink(path, look, flip_rows=rows, flip_columns=columns) as sink:
        finish = Finish(
            sink=sink,
            names=[f"{path}: band '{name}'" for name in image.names],
            dtype=image.dtype,
            nodata=image.nodata,
            argmax=rules.argmax,
            fills=rules.fills,
            area=pixel_area(image.frame.affine, look.frame.crs) if image.classes else None,
            classes=image.classes,
            tally=tally,
            told=(lambda done: progress(done, total)) if progress else (lambda _: None),
        )
        for job in _jobs(parts, image, rules):
            if rules.blend == "crop":
                place_cropped(job, finish)
            else:
                place_blended(job, finish, rules.blend)
        _warn(path, image, tally)
        _warn_of_palette(path, look)
    return tally


def _jobs(parts: Sequence[Part], image: Image, rules: _Rules) -> list[Job]:
    """Return what is to be placed; where windows share pixels, with what covers what."""
    crop = rules.blend == "crop"
    jobs = []
    for part, offset in zip(parts, image.offsets, strict=True):
        order = part.order.tolist()
        spare = spare_patches(part.target.places, order) if crop else frozenset()
        job = Job(part.survey.paths, part.order, part.plan, part.target, rules.mask, offset, spare)
        jobs.append(job)
    if not image.overlapping and not any(job.spare for job in jobs):
        return jobs
    frames = exports(parts, image.offsets)
    each = [
        list(job.windows()) if crop else [frame] for job, frame in zip(jobs, frames, strict=True)
    ]
    cover = Cover(window for windows in each for window in windows)
    firsts = itertools.accumulate((len(windows) for windows in each), initial=0)
    return [
        replace(job, cover=cover, first=first) for job, first in zip(jobs, firsts, strict=False)
    ]


def _check_choices(**given: str) -> None:
    for name, value in given.items():
        if value not in _CHOICES[name]:
            raise UsageError(f"{name} must be one of {', '.join(_CHOICES[name])}; got {value!r}")


def _pairs(
    predictions: Any, mixer: ExportLike | Sequence[ExportLike] | None
) -> list[tuple[PathsLike, ExportLike | None]]:
    """Return each set of predictions with its export."""
    alone = isinstance(predictions, str | os.PathLike)
    sets = [predictions] if alone else several(predictions, "predictions", "files")
    if not isinstance(mixer, list | tuple):
        return [(sets, mixer)]  # type: ignore[list-item]
    if len(sets) != len(mixer):
        raise UsageError(
            f"{len(mixer)} exports need as many sets of predictions, one each; got {len(sets)}"
        )
    return list(zip(sets, mixer, strict=True))


def _warn(path: str, image: Image, tally: Tally) -> None:
    """Warn before the file gets its name."""
    if tally.clashes:
        warn_user(
            f"{path}: nodata {image.nodata} is also the value of {tally.clashes:,} valid pixels, "
            "which readers will take as missing. Pass another nodata="
        )
    if tally.filled:
        warn_user(
            f"{path}: nodata {image.nodata} is the value of {tally.filled:,} predicted pixels. "
            "Nothing tells which pixels the export masked, so all of these count as masked: pass "
            "another nodata= if that is a valid value, or give the manifest of the export"
        )


def _warn_of_palette(path: str, look: RasterLook) -> None:
    """Warn of names and colours that the raster cannot have."""
    if look.palette and not look.classes:
        lost = (
            "no band holds whole numbers only, so there are no classes to name or colour. Pass "
            "argmax=True for scores, or choose the band of classes with bands="
        )
    elif look.palette.colors and not look.keeps_colors:
        lost = (
            "a GeoTIFF keeps colours only with one band of uint8 or uint16; this one has "
            f"{len(look.names)} of {look.dtype}, so they are left out. Choose the band of classes "
            "with bands=, and dtype='uint8' for classes written as floats"
        )
    else:
        return
    warn_user(f"{path}: {lost}")


def _report(
    path: str, parts: Sequence[Part], image: Image, look: RasterLook, tally: Tally
) -> ImportReport:
    frame, names = look.frame, look.palette.names
    pixels = frame.size.x * frame.size.y
    manifests = [part.target.manifest for part in parts]
    dropped = [m.account.dropped for m in manifests if m is not None]
    classes = tuple(
        ClassArea(
            band=image.names[band],
            value=value,
            name=names.get(value, ""),
            pixels=count,
            hectares=tally.hectares[band, value],
        )
        for (band, value), count in sorted(tally.pixels.items())
    )
    return ImportReport(
        path=path,
        size=frame.size,
        crs=frame.crs,
        affine=frame.affine,
        bands=image.names,
        dtype=image.dtype.name,
        nodata=image.nodata,
        patches=tally.patches,
        expected=sum(part.target.places.total for part in parts),
        pixels=pixels,
        covered=tally.covered,
        masked=tally.masked,
        invalid=tally.invalid,
        missing=max(pixels - tally.covered - tally.masked - tally.invalid, 0),
        dropped=sum(dropped) if len(dropped) == len(manifests) else None,
        classes=classes,
        notes=image.notes,
    )

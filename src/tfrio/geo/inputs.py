"""From what a user hands over to one source on one grid."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

from tfrio.errors import GeoError, UsageError
from tfrio.geo.arrays import LazyArraySource, is_xarray, xarray_source
from tfrio.geo.labels import Labels
from tfrio.geo.raster import RasterSource, open_raster
from tfrio.geo.stack import MaskedSource, SeriesSource, StackSource, check_same_grid, stack
from tfrio.geo.target import GridRequest, align, choose_frame, geometry_of, meets, project_geometry
from tfrio.types import several, shown

if TYPE_CHECKING:
    from tfrio.geo.frame import Frame
    from tfrio.geo.raster_bands import BandSelection
    from tfrio.geo.scratch import Scratch
    from tfrio.geo.source import Source
    from tfrio.types import XY

__all__ = ["SourceRequest", "resolve_source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRequest:
    """What to take from the sources; see ``export_image`` for what each option means."""

    bands: BandSelection | None = None
    source_crs: str | None = None
    mask_band: str | int | None = None
    mask_outside: bool = False
    labels: Labels | Sequence[Labels] | None = None

    def __post_init__(self) -> None:
        """Check what is chosen by kind; names are checked where bands are known."""
        if self.bands is not None and not isinstance(self.bands, Mapping):
            several(self.bands, "bands", "names or numbers, or a dict of them by new name")
        if self.labels is not None and not all(isinstance(o, Labels) for o in self.all_labels):
            raise UsageError(
                f"labels must be a tfrio.geo.Labels(where=...), or a list of them; got "
                f"{shown(self.labels)}"
            )

    @property
    def all_labels(self) -> Sequence[Labels]:
        """Return the labels as a list."""
        if self.labels is None:
            return ()
        return self.labels if isinstance(self.labels, Sequence) else (self.labels,)


def resolve_source(
    given: Any, request: SourceRequest, grid: GridRequest, margin: XY, scratch: Scratch
) -> Source:
    """Turn what a user hands over into one source on the grid asked for.

    Args:
        given: A path, a source, an xarray object, a list to stack, or a mapping by band name.
        request: What to take.
        grid: The grid asked for.
        margin: Pixels (x, y) needed around the grid.
        scratch: Where to put what cannot be resampled while it is read.

    Returns:
        The source.

    Raises:
        GeoError: Grids differ and none was asked for, or a source has no usable grid.
        UsageError: Not a source.
    """
    parts = _parts(given, request)
    if not grid.fixes_grid:
        for part in _flat(parts):
            if not getattr(part, "exact", True):
                raise GeoError(
                    f"{part.name}: is placed by ground control points, not by a grid. Ask for a "
                    "grid to resample to, for example crs='EPSG:32618', scale=30"
                )
        check_same_grid(_flat(parts))
    frame = choose_frame(_flat(parts)[0].frame, grid)
    if grid.fixes_grid and not any(meets(part.frame, frame) for part in _flat(parts)):
        raise GeoError(
            f"the grid asked for ({frame.describe()}) does not meet the source "
            f"({parts[0].frame.describe()}). Check crs, crs_transform and region"
        )
    aligned = [_aligned(part, frame, margin, grid.resampling, scratch) for part in parts]
    aligned += [label.on(frame) for label in request.all_labels]
    return _masked(stack(aligned), request, grid, frame)


def _parts(given: Any, request: SourceRequest) -> list[Source]:
    if isinstance(given, Mapping) and not is_xarray(given):
        if not given:
            raise UsageError("there is no source to export")
        if request.bands is not None:
            raise UsageError("bands cannot go with a mapping of sources, which names them already")
        return [part for name, what in given.items() for part in _named(name, what, request)]
    if isinstance(given, Sequence) and not isinstance(given, str):
        if not given:
            raise UsageError("there is no source to export")
        return [part for each in given for part in _apart(_one(each, request))]
    return _apart(_one(given, request))


def _apart(source: Source) -> list[Source]:
    """Make series of the array bands whose steps have nodata values of their own."""
    if not isinstance(source, RasterSource):
        return [source]
    steps = [source.one_by_one(number) for number in range(len(source.bands))]
    if not any(steps):
        return [source]
    return [
        SeriesSource(tuple(members), band.name)
        if members
        else replace(source, bands=(band,), numbers=(numbers,))
        for band, numbers, members in zip(source.bands, source.numbers, steps, strict=True)
    ]


def _one(given: Any, request: SourceRequest) -> Source:
    """Return a single source."""
    if isinstance(given, str | os.PathLike):
        return open_raster(given, bands=request.bands, source_crs=request.source_crs)
    if is_xarray(given):
        return _subset(xarray_source(given, crs=request.source_crs), request.bands)
    if hasattr(given, "frame") and hasattr(given, "open"):
        source: Source = given
        return _subset(source, request.bands)
    raise UsageError(
        f"cannot export {type(given).__name__}: give a path, an xarray object, or a NumPy array "
        "through geo.array_source(values, transform, crs=...)"
    )


def _subset(source: Any, bands: BandSelection | None) -> Source:
    """Take bands of an array source by name or number."""
    if bands is None:
        found: Source = source
        return found
    if not hasattr(source, "arrays"):
        raise UsageError(f"{source.name}: bands can be chosen of rasters and arrays only")
    names = [band.name for band in source.bands]
    wanted = list(bands.values()) if isinstance(bands, Mapping) else list(bands)
    numbers = [_position(what, names, source.name) for what in wanted]
    labels = list(bands) if isinstance(bands, Mapping) else [names[n] for n in numbers]
    chosen = [
        replace(source.bands[n], name=label) for n, label in zip(numbers, labels, strict=True)
    ]
    arrays = tuple(source.arrays[n] for n in numbers)
    subset: Source = replace(source, bands=tuple(chosen), arrays=arrays)
    return subset


def _position(what: str | int, names: list[str], source: str) -> int:
    if what in names:
        return names.index(str(what))
    if isinstance(what, Integral) and 1 <= int(what) <= len(names):
        return int(what) - 1
    raise UsageError(f"{source}: no band {what!r}; bands are {', '.join(names)}")


def _named(name: str, what: Any, request: SourceRequest) -> list[Source]:
    """Return the source of one name: a list is a time series, a raster gives its bands."""
    if isinstance(what, Sequence) and not isinstance(what, str):
        steps = [_one(step, request) for step in what]
        many = [step.name for step in steps if len(step.bands) != 1]
        if many or not steps:
            raise UsageError(f"{name}: a series needs rasters of one band each; {many} have more")
        return [SeriesSource(tuple(steps), name)]
    source = _one(what, request)
    single = len(source.bands) == 1
    renamed = tuple(
        replace(band, name=name if single else f"{name}_{band.name}") for band in source.bands
    )
    if isinstance(source, RasterSource | LazyArraySource):
        return [replace(source, bands=renamed)]
    return [StackSource((source,), renamed)]


def _flat(parts: Sequence[Source]) -> list[Source]:
    """Return the sources that have a grid of their own."""
    found: list[Source] = []
    for part in parts:
        found.extend(part.parts if isinstance(part, SeriesSource) else [part])
    return found


def _aligned(part: Source, frame: Frame, margin: XY, resampling: str, scratch: Scratch) -> Source:
    if isinstance(part, SeriesSource):
        steps = [align(step, frame, margin, resampling, scratch) for step in part.parts]
        return replace(part, parts=tuple(steps))
    return align(part, frame, margin, resampling, scratch)


def _masked(source: Source, request: SourceRequest, grid: GridRequest, frame: Frame) -> Source:
    """Add the masks asked for."""
    if request.mask_outside and grid.region is None:
        raise UsageError("mask_outside masks pixels outside the region: give a region")
    if request.mask_band is None and not request.mask_outside:
        return source
    polygon = None
    if request.mask_outside:
        polygon = project_geometry(geometry_of(grid.region), grid.region_crs, frame.crs)
    names = [band.name for band in source.bands]
    number = None if request.mask_band is None else _position(request.mask_band, names, source.name)
    if number is not None and len(names) == 1:
        raise UsageError(f"the mask band {names[0]} is the only band: nothing is left to export")
    return MaskedSource(source, number, polygon)

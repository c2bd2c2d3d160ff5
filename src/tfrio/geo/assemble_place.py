"""Put patches onto the map: decode, cut, mask, blend, count, write; a few patches at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import GeoError
from tfrio.examples.decode import read_batches
from tfrio.geo.assemble_blend import RowBlender, patch_weights
from tfrio.geo.assemble_layout import planes
from tfrio.geo.grid import Window
from tfrio.geo.source import nodata_mask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from tfrio.examples.columns import Batch
    from tfrio.geo.assemble_area import PixelArea
    from tfrio.geo.assemble_bands import BandsPlan
    from tfrio.geo.assemble_blend import Blend
    from tfrio.geo.assemble_cover import Cover
    from tfrio.geo.assemble_raster import RasterSink
    from tfrio.geo.assemble_target import Target
    from tfrio.types import XY

__all__ = ["Finish", "Tally", "place_blended", "place_cropped"]

# Classes beyond so many are measurements, not classes.
MOST_CLASSES = 64
_TABLE = 4096


@dataclass
class Tally:
    """What was counted on the way.

    Args:
        patches: Patches placed.
        covered: Pixels with a value in every band.
        masked: Pixels that are nodata because the export's mask says so.
        invalid: Pixels that are nodata because a value is NaN.
        clashes: Valid pixels whose value is the nodata value.
        filled: Pixels that count as masked because their value is the nodata value.
        pixels: Pixels by band and class.
        hectares: Hectares by band and class.
    """

    patches: int = 0
    covered: int = 0
    masked: int = 0
    invalid: int = 0
    clashes: int = 0
    filled: int = 0
    pixels: dict[tuple[int, int], int] = field(default_factory=dict)
    hectares: dict[tuple[int, int], float] = field(default_factory=dict)

    def add_classes(
        self, band: int, values: NDArray[Any], valid: NDArray[np.bool_], area: NDArray[np.float64]
    ) -> None:
        """Count the classes of one band in a window.

        Args:
            band: Number of the band, from 0.
            values: Shape (height, width), whole numbers.
            valid: Same shape.
            area: Hectares per pixel, to be broadcast.
        """
        chosen = values[valid].astype(np.int64)
        if not chosen.size:
            return
        weights = np.broadcast_to(area, values.shape)[valid]
        for value, count, hectares in _histogram(chosen, weights):
            key = (band, value)
            self.pixels[key] = self.pixels.get(key, 0) + count
            self.hectares[key] = self.hectares.get(key, 0.0) + hectares


def _histogram(
    values: NDArray[np.int64], weights: NDArray[np.float64]
) -> Iterator[tuple[int, int, float]]:
    """Yield each value with its number and the sum of its weights."""
    low, high = int(values.min()), int(values.max())
    # Counting into a table is many times quicker than sorting, where the table is small.
    classes, inverse = (
        (np.arange(low, high + 1), values - low)
        if high - low < _TABLE
        else np.unique(values, return_inverse=True)
    )
    counts = np.bincount(inverse)
    sums = np.bincount(inverse, weights)
    for spot in np.flatnonzero(counts).tolist():
        yield int(classes[spot]), int(counts[spot]), float(sums[spot])


@dataclass(frozen=True)
class Finish:
    """The last step of every window: classes, mask, dtype, account, file.

    Args:
        sink: Where windows go.
        names: Names of the bands, for errors.
        dtype: Dtype of the raster.
        nodata: Nodata value, None for none.
        argmax: Whether bands are scores of which the best one's number is written.
        fills: Whether values equal to nodata were written for masked pixels, because nobody
            noted a mask.
        area: Area of the pixels; None counts no classes.
        classes: Numbers of the bands whose classes are counted.
        tally: What is counted.
        told: Told how many patches are placed, after each.
    """

    sink: RasterSink
    names: Sequence[str]
    dtype: np.dtype[Any]
    nodata: float | None
    argmax: bool
    fills: bool
    area: PixelArea | None
    classes: Sequence[int]
    tally: Tally
    told: Callable[[int], None]

    def placed(self) -> None:
        """Count one patch more."""
        self.tally.patches += 1
        self.told(self.tally.patches)

    def write(
        self,
        window: Window,
        values: NDArray[Any],
        masked: NDArray[np.bool_] | None,
        *,
        hidden: NDArray[np.bool_] | None = None,
        blank: bool = False,
    ) -> None:
        """Write one window.

        Args:
            window: Pixels of the raster.
            values: Shape (bands, height, width).
            masked: Where the export's mask says nodata, same shape; None nowhere.
            hidden: Pixels that a later window covers, which are not counted here; shape (height,
                width), None for none.
            blank: Whether NaN means that no patch gave a value.
        """
        if not window.pixels:
            return
        nan = _nan(values)
        if self.argmax:
            values, masked, nan = _best(values, masked, nan)
        masked = self._with_fills(values, masked, hidden)
        hole = _either(masked, nan, values.shape)
        written = self._converted(window, values, hole)
        self._count(window, written, masked, nan, hole, hidden, blank=blank)
        self.sink.write(window, written)

    def _with_fills(
        self,
        values: NDArray[Any],
        masked: NDArray[np.bool_] | None,
        hidden: NDArray[np.bool_] | None,
    ) -> NDArray[np.bool_] | None:
        if not self.fills or self.nodata is None or np.isnan(self.nodata):
            return masked
        own = nodata_mask(values, self.nodata)
        nan = _nan(values)
        if own is not None and nan is not None:
            own &= ~nan
        if own is not None:
            self.tally.filled += int((own if hidden is None else own & ~hidden).sum())
        return _either(masked, own, values.shape)

    def _converted(
        self, window: Window, values: NDArray[Any], hole: NDArray[np.bool_] | None
    ) -> NDArray[Any]:
        if self.dtype.kind in "iu" and values.dtype.kind == "f":
            values = np.rint(values)  # a blend of equal values may be off by a rounding
        if hole is None:
            return values.astype(self.dtype, copy=False)
        if self.nodata is None:
            band, row, column = np.argwhere(hole)[0].tolist()
            raise GeoError(
                f"{self.names[band]}: the prediction for pixel (column, row) = "
                f"({window.column + column}, {window.row + row}) of the map is NaN, and "
                f"{self.dtype} has no value for that. Pass nodata="
            )
        with np.errstate(invalid="ignore"):
            written = values.astype(self.dtype)
        written[hole] = self.dtype.type(self.nodata)
        return written

    def _count(
        self,
        window: Window,
        written: NDArray[Any],
        masked: NDArray[np.bool_] | None,
        nan: NDArray[np.bool_] | None,
        hole: NDArray[np.bool_] | None,
        hidden: NDArray[np.bool_] | None,
        *,
        blank: bool,
    ) -> None:
        by_mask = _shown(_any_band(masked), hidden)
        by_nan = _shown(_any_band(nan), hidden)
        masked_count = 0 if by_mask is None else int(by_mask.sum())
        only_nan = by_nan if by_nan is None or by_mask is None else by_nan & ~by_mask
        nan_count = 0 if only_nan is None else int(only_nan.sum())
        pixels = window.pixels - (0 if hidden is None else int(hidden.sum()))
        self.tally.masked += masked_count
        self.tally.invalid += 0 if blank else nan_count
        self.tally.covered += pixels - masked_count - nan_count
        aside = _either(hole, hidden, written.shape)
        if self.nodata is not None and not np.isnan(self.nodata):
            same = written == self.dtype.type(self.nodata)
            self.tally.clashes += int((same if aside is None else same & ~aside).sum())
        if self.area is None:
            return
        area = self.area.of(window)
        for band in self.classes:
            values = written[band]
            valid = np.ones(values.shape, np.bool_) if aside is None else ~aside[band]
            self.tally.add_classes(band, values, valid, area)


def _shown(
    mask: NDArray[np.bool_] | None, hidden: NDArray[np.bool_] | None
) -> NDArray[np.bool_] | None:
    return mask if mask is None or hidden is None else mask & ~hidden


def _nan(values: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Return where values are NaN, None where none is."""
    if values.dtype.kind != "f":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        # A NaN makes the sum NaN; that is known in half the time of looking at each value.
        if not np.isnan(values.sum()):
            return None
    nan = np.isnan(values)
    return nan if nan.any() else None


def _best(
    scores: NDArray[Any], masked: NDArray[np.bool_] | None, nan: NDArray[np.bool_] | None
) -> tuple[NDArray[Any], NDArray[np.bool_] | None, NDArray[np.bool_] | None]:
    """Return the number of the largest score as the only band, with its mask and NaN."""
    known = scores if nan is None else np.where(nan, -np.inf, scores)
    return (
        known.argmax(axis=0)[None],
        None if masked is None else np.asarray(masked.any(axis=0, keepdims=True)),
        None if nan is None else np.asarray(nan.any(axis=0, keepdims=True)),
    )


def _any_band(mask: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    return None if mask is None else np.asarray(mask.any(axis=0))


def _either(
    one: NDArray[np.bool_] | None, other: NDArray[np.bool_] | None, shape: tuple[int, ...]
) -> NDArray[np.bool_] | None:
    if one is None or other is None:
        found = other if one is None else one
        return None if found is None else np.broadcast_to(found, shape)
    return np.broadcast_to(np.logical_or(one, other), shape)


def read_patches(paths: Sequence[str], plan: BandsPlan) -> Iterator[NDArray[Any]]:
    """Yield the bands of each record.

    Args:
        paths: The files, in order.
        plan: How to read them.

    Yields:
        Shape (bands, height, width), margins included where the features have them; valid until
        the next one is asked for.
    """
    for batch in _ahead(read_batches(paths, plan.batch, schema=plan.schema)):
        stacks = []
        for feature in plan.features:
            column = batch[feature.look.name]
            if feature.look.kind == "bytes":
                first = int(column.offsets[0])
                column = column.data[first : int(column.offsets[-1])].reshape(batch.rows, -1)
            stacks.append(planes(np.asarray(column), feature.reading, plan.layout))
        for record in range(batch.rows):
            parts = [stack[record] for stack in stacks]
            yield parts[0] if len(parts) == 1 else np.concatenate(parts)


def _ahead(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yield batches while a thread decodes the next one: GDAL and the decoder work side by side."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = thread.submit(next, batches, None)
            yield batch


def patch_mask(target: Target, index: int, plan: BandsPlan, *, rule: str) -> Any:
    """Return where a patch's bands are nodata by the export's mask.

    Args:
        target: What was exported.
        index: The patch.
        plan: The bands.
        rule: ``"any"``: where any exported band was masked, ``"all"``: where all were, ``"off"``.

    Returns:
        Booleans (bands, height, width), one band for all where they agree; None for nowhere. A
        band that was exported under this very name has its own mask.
    """
    masks = None if rule == "off" else target.masks(index)
    if masks is None or target.manifest is None:
        return None
    together = masks.any(axis=0) if rule == "any" else masks.all(axis=0)
    known = {row.name: number for number, row in enumerate(target.manifest.bands)}
    rows = [known.get(row.name) if row is not None else None for row in plan.noted]
    stacked = np.stack([together if row is None else masks[row] for row in rows])
    return _coarsened(stacked, plan.scale)


def _coarsened(masks: NDArray[np.bool_], scale: XY) -> NDArray[np.bool_]:
    """Return the mask of larger cells: a cell is masked where all its pixels are."""
    bands, height, width = masks.shape
    if scale.x == scale.y == 1:
        return masks
    cells = masks.reshape(bands, height // scale.y, scale.y, width // scale.x, scale.x)
    return np.asarray(cells.all(axis=(2, 4)))


@dataclass(frozen=True, slots=True)
class Job:
    """One set of predictions to place.

    Args:
        paths: The files, in order.
        order: Patch index of each record.
        plan: The bands.
        target: What was exported.
        mask: Rule of ``patch_mask``.
        offset: (column, row) of this export in the raster, in pixels of the raster.
        spare: Patches that stand in for missing ones: written whole, before the others.
        cover: The windows of all exports in the order in which they are written, where some share
            pixels; of whole exports where patches are blended.
        first: Number of the first one of this job.
    """

    paths: Sequence[str]
    order: NDArray[np.int64]
    plan: BandsPlan
    target: Target
    mask: str
    offset: tuple[int, int] = (0, 0)
    spare: frozenset[int] = frozenset()
    cover: Cover | None = None
    first: int = 0

    def rounds(self) -> Iterator[bool]:
        """Yield whether patches are written whole, for each pass over the records."""
        if self.spare:
            yield True
        yield False

    def indices(self, *, whole: bool) -> Iterator[int]:
        """Yield the patches of a pass, in order."""
        return (index for index in self.order.tolist() if not whole or index in self.spare)

    def taken(self, index: int, *, whole: bool) -> Window:
        """Return the pixels that a patch gives, within its export."""
        places = self.target.places
        window = places.window(index).clipped(self.target.frame.size)
        return _scaled(window if whole else places.kept(index), self.plan.scale)

    def windows(self) -> Iterator[Window]:
        """Yield the pixels of the raster that are written, in order."""
        for whole in self.rounds():
            for index in self.indices(whole=whole):
                yield self.taken(index, whole=whole).moved(*self.offset)

    def hidden(self, place: Window, number: int) -> NDArray[np.bool_] | None:
        """Return which pixels of a window later ones cover."""
        return None if self.cover is None else self.cover.hidden(place, number)


def place_cropped(job: Job, finish: Finish) -> None:
    """Write the part of each patch that it owns.

    Args:
        job: What to place.
        finish: What happens to each window.
    """
    number = job.first
    for whole in job.rounds():
        records = zip(job.order.tolist(), read_patches(job.paths, job.plan), strict=True)
        for index, values in records:
            if whole and index not in job.spare:
                continue
            window = _scaled(job.target.places.window(index), job.plan.scale)
            taken = job.taken(index, whole=whole)
            rows, columns = taken.moved(-window.column, -window.row).slices
            masked = patch_mask(job.target, index, job.plan, rule=job.mask)
            if masked is not None:
                masked = masked[:, rows, columns]
            place = taken.moved(*job.offset)
            hidden = job.hidden(place, number)
            finish.write(place, values[:, rows, columns], masked, hidden=hidden)
            number += 1
            if not whole:
                finish.placed()


def _scaled(window: Window, scale: XY) -> Window:
    """Return a window in larger pixels; a cut pixel counts whole."""
    if scale.x == scale.y == 1:
        return window
    left, top = window.column // scale.x, window.row // scale.y
    right, bottom = -(-window.right // scale.x), -(-window.bottom // scale.y)
    return Window(left, top, right - left, bottom - top)


def place_blended(job: Job, finish: Finish, blend: Blend) -> None:
    """Merge overlapping patches, margins included, and write row by row.

    Args:
        job: What to place, patches in the order of the grid.
        finish: What happens to each window.
        blend: How to weigh.
    """
    uncropped = job.plan.uncropped()
    margin = job.plan.features[0].reading.margin
    stored = uncropped.features[0].reading.stored
    weights = patch_weights(stored, blend)
    size = job.target.frame.size
    blender = RowBlender(size, len(uncropped.names), stored.y)
    for index, values in zip(job.order.tolist(), read_patches(job.paths, uncropped), strict=True):
        inner = job.target.places.window(index)
        window = inner.grown(margin)
        _write_rows(blender, max(window.row, 0), job, finish)
        blender.add(window, values, weights)
        masked = patch_mask(job.target, index, job.plan, rule=job.mask)
        if masked is not None:
            blender.block(inner, masked)
        finish.placed()
    _write_rows(blender, size.y, job, finish)


def _write_rows(blender: RowBlender, row: int, job: Job, finish: Finish) -> None:
    for window, values, blocked in blender.finish(row):
        masked = blocked if blocked.any() else None
        place = window.moved(*job.offset)
        hidden = job.hidden(place, job.first)
        finish.write(place, values, masked, hidden=hidden, blank=True)

"""The work of one shard: read strips, cut, encode, write, and account for what was written."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, TypeAlias, cast

import msgspec
import numpy as np

from tfrio import storage
from tfrio.errors import EncodeError, TfrioError
from tfrio.geo.cut import prepare, scalar_mask
from tfrio.geo.grid import Window
from tfrio.geo.manifest import ShardRow, encode_mask
from tfrio.geo.outputs import DigestFile
from tfrio.geo.plan import Batch, Lanes, Span, batches, grouped
from tfrio.geo.render import Encoder, Framed
from tfrio.geo.source import read_padded
from tfrio.geo.statistics import Moments, moments_of
from tfrio.records.writer import RecordWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tfrio.geo.naming import Names
    from tfrio.geo.patches import Patches
    from tfrio.geo.recipe import Recipe
    from tfrio.geo.source import Block, Mask, Pixels, Reader, Source
    from tfrio.types import XY

__all__ = [
    "Job",
    "Notes",
    "Rendered",
    "ShardResult",
    "Unit",
    "masked_counts",
    "units",
    "worker",
    "write_shard",
    "write_whole_shard",
]

Piece: TypeAlias = "bytes | memoryview"

# Whole numbers up to here are exact as float32 (24 bits of significand).
_EXACT = 1 << 24


@dataclass(frozen=True, slots=True)
class Job:
    """Everything a worker needs to write any shard of an export.

    Args:
        source: Where pixels come from.
        recipe: How bands become features.
        patches: The patches written.
        margin: Margin (x, y) on each side of a patch.
        names: Names of the shards.
        spans: Records of each shard.
        fingerprint: Text that differs when sources or options do.
        max_pixels: Pixels to read at once.
        statistics: Whether to gather statistics.
        keep_masks: Whether to keep masks for the manifest.
    """

    source: Source
    recipe: Recipe
    patches: Patches
    margin: XY
    names: Names
    spans: tuple[Span, ...]
    fingerprint: str
    max_pixels: int
    statistics: bool = False
    keep_masks: bool = True

    def lanes(self, workers: int) -> Lanes | None:
        """Return which worker reads which columns, None where that does not matter."""
        if not self.source.tiled:
            return None
        patch, margin = self.patches.patch, self.margin
        most = self.max_pixels // (patch.y + 2 * margin.y) - 2 * margin.x
        part = max(most // patch.x, 1) * patch.x
        lanes = Lanes(self.source.frame.size.x, part, workers)
        return lanes if lanes.fair else None

    @property
    def per_patch(self) -> int:
        """Return the number of records of a patch."""
        patch = self.patches.patch
        return patch.x * patch.y if self.recipe.sequence else 1

    def anywhere(self) -> Job:
        """Return the job for workers that may have another current folder."""
        prefix = self.names.prefix
        if storage.is_remote(prefix):
            return self
        prefix = str(storage.local_path(prefix).absolute())
        return replace(self, names=replace(self.names, prefix=prefix))

    def temporary(self, shard: int) -> str:
        """Return the name a shard bears until the export is complete."""
        return self.names.shard(shard) + ".partial"

    def result_name(self, shard: int) -> str:
        """Return the name of the note that a shard is finished."""
        return self.temporary(shard) + ".json"


class Notes(msgspec.Struct):
    """What was seen while patches were written; the lists have one entry per band.

    Args:
        masks: Masked pixels by patch index, as in the manifest.
        masked: Pixels masked in at least one band, each counted once.
        hidden: Masked pixels of each band.
        filled: Whether a valid pixel of a band has the fill value.
        coarse: Whether a whole number of a band does not fit float32.
        huge: Whether a value of a band becomes infinite as float32.
        moments: Statistics of each band.
    """

    masks: dict[int, list[str]] = {}
    masked: int = 0
    hidden: list[int] = []
    filled: list[bool] = []
    coarse: list[bool] = []
    huge: list[bool] = []
    moments: list[Moments] = []

    def add(self, other: Notes) -> None:
        """Take in what was seen elsewhere."""
        self.masks.update(other.masks)
        self.masked += other.masked
        if not self.hidden:
            self.hidden, self.filled = list(other.hidden), list(other.filled)
            self.coarse, self.moments = list(other.coarse), list(other.moments)
            self.huge = list(other.huge)
            return
        pairs = zip(self.hidden, other.hidden, strict=True)
        self.hidden = [one + two for one, two in pairs]
        self.filled = [a or b for a, b in zip(self.filled, other.filled, strict=True)]
        self.coarse = [a or b for a, b in zip(self.coarse, other.coarse, strict=True)]
        self.huge = [a or b for a, b in zip(self.huge, other.huge, strict=True)]
        moments = zip(self.moments, other.moments, strict=True)
        self.moments = [one.merged(two) for one, two in moments]


class ShardResult(msgspec.Struct):
    """A finished shard."""

    fingerprint: str
    shard: int
    row: ShardRow
    notes: Notes


@dataclass(frozen=True, slots=True)
class Unit:
    """Patches of one shard, rendered by one worker.

    Args:
        shard: Number of the shard.
        batches: The patches.
        counted: Position of the first patch to account for: one that began in the shard before
            is accounted for there.
    """

    shard: int
    batches: tuple[Batch, ...]
    counted: int

    @property
    def column(self) -> int:
        """Return the first column read."""
        return self.batches[0].window.column


@dataclass(slots=True)
class Rendered:
    """A unit as bytes of its shard.

    Args:
        shard: Number of the shard.
        pieces: Its bytes, in order, compressed where asked for.
        records: Number of records.
        raw: Bytes before compression.
        notes: What was seen.
    """

    shard: int
    pieces: list[Piece] = field(default_factory=list)
    records: int = 0
    raw: int = 0
    notes: Notes = field(default_factory=lambda: Notes(masks={}))


def units(job: Job, shards: Iterable[int]) -> Iterator[Unit]:
    """Yield the units of shards, in order."""
    for shard in shards:
        span, each = job.spans[shard], job.per_patch
        patches = Span(span.start // each, -(-span.stop // each))
        counted = -(-span.start // each)
        found = batches(job.patches, patches, job.patches.patch, job.margin, job.max_pixels)
        for group in grouped(found, job.max_pixels // 4):
            yield Unit(shard, group, counted)


@contextlib.contextmanager
def worker(job: Job) -> Iterator[Callable[[Unit], Rendered]]:
    """Open the source of a job and give the function that renders its units."""
    reader = job.source.open()
    with contextlib.closing(reader):
        encoder = Encoder(job.recipe, _stored(job).shape)

        def render(unit: Unit) -> Rendered:
            """Read the patches of a unit and pack them."""
            done = Rendered(unit.shard)
            with _packed(job, done) as take:
                for batch in unit.batches:
                    window = batch.window
                    block = _read(job, reader, window)
                    done.notes.add(_observe(job, batch, unit.counted, block))
                    fills, depths = job.recipe.fills, job.recipe.depths
                    strip = prepare(block, fills, depths, drop_masked=job.recipe.drop_masked)
                    starts = [column - job.margin.x - window.column for column, _ in batch.origins]
                    last = batch.first + len(batch.origins)
                    indices = [job.patches.index(n) for n in range(batch.first, last)]
                    frames = encoder.encode(strip, starts, indices)
                    for framed in _within(job, unit.shard, batch, frames):
                        take(framed)
            return done

        yield render


def _read(job: Job, reader: Reader, window: Window) -> Block:
    source = job.source
    return read_padded(reader, window, source.extent, source.bands, job.recipe.fills)


class _Pieces:
    """A file object that keeps what is written to it, as it is given: never reused memory."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []

    def write(self, data: Piece, /) -> int:
        """Keep a piece."""
        self.pieces.append(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: the pieces are in memory."""


@contextlib.contextmanager
def _packed(job: Job, done: Rendered) -> Iterator[Callable[[Framed], None]]:
    """Give the function that takes framed records; compress them where they were made."""
    if not job.names.compressed:

        def take(framed: Framed) -> None:
            """Keep framed records as they are."""
            done.pieces.append(framed.data.data)
            done.records += len(framed.ends)
            done.raw += len(framed.data)

        yield take
        return
    sink = _Pieces()
    with RecordWriter(cast("IO[bytes]", sink), compression="gzip", threads=1) as writer:

        def pack(framed: Framed) -> None:
            """Compress framed records."""
            writer.write_framed(framed.data.data, framed.ends)
            done.records += len(framed.ends)
            done.raw += len(framed.data)

        yield pack
    done.pieces = sink.pieces


@contextlib.contextmanager
def masked_counts(job: Job) -> Iterator[Callable[[Unit], list[tuple[int, int]]]]:
    """Open the source of a job and give a function that counts masked pixels.

    The function returns, for each patch of a unit, its index and the number of its pixels that
    are masked in at least one band, margins not counted.
    """
    reader = job.source.open()
    patch = job.patches.patch
    with contextlib.closing(reader):

        def count(unit: Unit) -> list[tuple[int, int]]:
            """Count the masked pixels of each patch of a unit."""
            found = []
            for batch in unit.batches:
                window = batch.window
                block = _read(job, reader, window)
                masks = [mask for mask in _flat_masks(block) if mask is not None]
                every = np.logical_or.reduce(masks) if masks else None
                for number, (column, row) in enumerate(batch.origins):
                    place = Window(column, row, patch.x, patch.y)
                    slices = place.moved(-window.column, -window.row).slices
                    masked = 0 if every is None else int(np.count_nonzero(every[slices]))
                    found.append((job.patches.index(batch.first + number), masked))
            return found

        yield count


def _flat_masks(block: Block) -> list[Mask | None]:
    """Return where each band is masked as a whole, (height, width)."""
    return [
        scalar_mask(mask if mask is None or mask.ndim == 3 else mask[None]) for mask in block.masked
    ]


def _stored(job: Job) -> Window:
    patch = job.patches.patch
    return Window(0, 0, patch.x, patch.y).grown(job.margin)


def _observe(job: Job, batch: Batch, counted: int, block: Block) -> Notes:
    """Look at the pixels as they were read, before anything is filled."""
    bands = range(len(block.values))
    notes = Notes(
        masks={},
        hidden=[0 for _ in bands],
        filled=[_meets_fill(job, band, block) for band in bands],
        coarse=[_is_coarse(job, band, block) for band in bands],
        huge=[_is_huge(block.values[band], block.masked[band]) for band in bands],
        moments=[Moments() for _ in bands],
    )
    masks = _flat_masks(block)
    if all(mask is None for mask in masks) and not job.statistics:
        return notes
    first, last = batch.first, batch.first + len(batch.origins)
    for position in range(max(first, counted), last):
        _account(job, batch.window, position, block, masks, notes)
    return notes


def _account(
    job: Job, window: Window, position: int, block: Block, masks: list[Mask | None], notes: Notes
) -> None:
    """Account for one patch."""
    patch = job.patches.patch
    column, row = job.patches[position]
    whole = Window(column, row, patch.x, patch.y).moved(-window.column, -window.row).slices
    counted = job.patches.counted(position).moved(-window.column, -window.row).slices
    if any(mask is not None for mask in masks):
        every = [_piece(mask, whole, (patch.y, patch.x)) for mask in masks]
        stacked = np.stack(every)
        if stacked.any() and job.keep_masks:
            notes.masks[job.patches.index(position)] = encode_mask(stacked)
        present = [mask[counted] for mask in masks if mask is not None]
        notes.masked += int(np.count_nonzero(np.logical_or.reduce(present)))
        for band, mask in enumerate(masks):
            if mask is not None:
                notes.hidden[band] += int(np.count_nonzero(mask[counted]))
    if job.statistics:
        for band, values in enumerate(block.values):
            masked = block.masked[band]
            piece = None if masked is None else masked[..., *counted]
            found = moments_of(values[..., *counted], piece)
            notes.moments[band] = notes.moments[band].merged(found)


def _piece(mask: Mask | None, slices: tuple[slice, slice], shape: tuple[int, int]) -> Mask:
    return np.zeros(shape, np.bool_) if mask is None else mask[slices]


def _meets_fill(job: Job, band: int, block: Block) -> bool:
    """Tell whether a valid pixel has the value that masked ones get."""
    about, fill = job.source.bands[band], job.recipe.fills[band]
    values, masked = block.values[band], block.masked[band]
    if fill == about.nodata or not (about.maskable or values.dtype.kind == "f"):
        return False
    same = values == fill
    return bool(same.any() if masked is None else (same & ~masked).any())


def _is_coarse(job: Job, band: int, block: Block) -> bool:
    """Tell whether whole numbers lose digits as float32; refuse what fits no int64."""
    values = block.values[band]
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 4 or not values.size:
        return False
    kind = next(feature.kind for feature in job.recipe.features if band in feature.bands)
    if kind == "int64" and int(values.max()) > np.iinfo(np.int64).max:
        raise EncodeError(
            f"band {job.source.bands[band].name} holds {values.max()}, more than int64 can. "
            'Use dtype="float"'
        )
    if kind != "float" or (int(values.max()) <= _EXACT and int(values.min()) >= -_EXACT):
        return False
    lost = values.astype(np.float32).astype(np.float64) != values
    masked = block.masked[band]
    return bool(lost.any() if masked is None else (lost & ~masked).any())


def _is_huge(values: Pixels, masked: Mask | None) -> bool:
    """Tell whether finite values become infinite as float32."""
    if values.dtype.kind != "f" or values.dtype.itemsize < 8:
        return False
    beyond = (np.abs(values) > np.finfo(np.float32).max) & np.isfinite(values)
    return bool(beyond.any() if masked is None else (beyond & ~masked).any())


def write_shard(job: Job, shard: int, rendered: Iterable[Rendered]) -> ShardResult:
    """Write one shard under its temporary name, and the note that it is finished.

    Args:
        job: The export.
        shard: Number of the shard.
        rendered: Its units, in order.

    Returns:
        The row of the manifest and what was seen.
    """
    span, notes, raw = job.spans[shard], Notes(masks={}), 0
    path = job.temporary(shard)
    with storage.atomic_write(path) as file:
        out = DigestFile(file, path)
        for done in rendered:
            notes.add(done.notes)
            raw += done.raw
            for piece in done.pieces:
                out.write(piece)
    name = job.names.shard(shard).replace("\\", "/").rpartition("/")[2]
    row = ShardRow(
        name=name, records=len(span), first=span.start, bytes=raw, size=out.size, digest=out.digest
    )
    result = ShardResult(job.fingerprint, shard, row, notes)
    with storage.atomic_write(job.result_name(shard)) as file:
        file.write(msgspec.json.encode(result))
    return result


def _within(job: Job, shard: int, batch: Batch, frames: Iterable[Framed]) -> Iterator[Framed]:
    """Yield the records that belong to the shard: it may begin and end within a patch."""
    span, record = job.spans[shard], batch.first * job.per_patch
    for framed in frames:
        count = len(framed.ends)
        first, last = max(span.start - record, 0), min(span.stop - record, count)
        if last > first:
            yield framed if last - first == count else framed.sliced(first, last)
        record += count


def write_whole_shard(task: tuple[Job, int]) -> ShardResult:
    """Write one shard in this process; the task that other processes run."""
    job, shard = task
    try:
        with worker(job) as render:
            return write_shard(job, shard, map(render, units(job, [shard])))
    except TfrioError as error:
        # Dask sends causes along, and those of GDAL cannot be pickled; their words are in ours.
        error.__cause__ = error.__context__ = None
        raise

"""Pure arithmetic of an export: records into shards, patches into windows to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tfrio.geo.grid import Window

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tfrio.types import XY

__all__ = [
    "Batch",
    "Lanes",
    "Origins",
    "Span",
    "batches",
    "grouped",
    "records_per_shard",
    "runs",
    "shard_spans",
    "window_pixels",
]

# Bytes of records rendered at once: each worker holds so many, and a few more wait to be written.
# A source in tiles is read in narrow windows, so that all stays warm and memory small; others
# may keep whole rows (strips of a file, chunks of Dask), which only wide windows read once.
_TILED_BYTES = 9 << 19
_WIDE_BYTES = 48 << 20
# Narrow windows in a row of patches, so that each of several workers gets an equal share.
_LEAST_PARTS = 8
# Narrow windows that may wait for one another: a whole row of patches, but not of a giant raster.
_MOST_AHEAD = 16


@dataclass(frozen=True, slots=True)
class Span:
    """Records [start, stop) of an export."""

    start: int
    stop: int

    def __len__(self) -> int:
        """Return the number of records."""
        return self.stop - self.start


def records_per_shard(max_file_size: int, record_size: int) -> int:
    """Return how many records fit into a shard: rounded down, but at least one.

    Args:
        max_file_size: Bytes of a shard before compression.
        record_size: Bytes of the largest record, its 16 bytes of framing included.
    """
    return max(max_file_size // record_size, 1)


def shard_spans(records: int, per_shard: int) -> list[Span]:
    """Divide records among shards, in order, all but the last one full."""
    starts = range(0, records, per_shard)
    return [Span(start, min(start + per_shard, records)) for start in starts]


def window_pixels(record: int, pixels: int, strip: XY, *, tiled: bool) -> int:
    """Return how many pixels to read at once.

    Args:
        record: Bytes of the largest record.
        pixels: Pixels in a record, margins included.
        strip: Pixels (x, y) of a whole row of patches, margins included.
        tiled: Whether the source is stored in tiles.
    """
    if not tiled:
        return max(_WIDE_BYTES * pixels // record, 1)
    part = -(-strip.x // _LEAST_PARTS) * strip.y
    return max(min(_TILED_BYTES * pixels // record, part), 1)


@dataclass(frozen=True, slots=True)
class Lanes:
    """Which worker reads which columns of a source in tiles.

    Rows of patches seldom end where rows of tiles do. A worker that stays in its columns finds
    the tiles it shares with the row above decoded already; one that takes every other row does not.

    Args:
        width: Pixels of the raster across.
        part: Pixels of a window across.
        workers: Number of workers.
    """

    width: int
    part: int
    workers: int

    @property
    def _parts(self) -> int:
        """Return the number of windows side by side, all of which may be under way."""
        return min(-(-self.width // self.part), _MOST_AHEAD)

    @property
    def _run(self) -> int:
        """Return the number of neighbouring windows that belong to one worker."""
        return -(-self._parts // self.workers)

    @property
    def fair(self) -> bool:
        """Tell whether the workers get about equal shares: at most a quarter more than due."""
        return 4 * self._run * self.workers <= 5 * self._parts

    @property
    def ahead(self) -> int:
        """Return how many windows beyond the workers' own may be under way.

        Two rows of patches, so that a worker which runs a little ahead need not leave its columns.
        """
        return 2 * self._run * self.workers

    def lane(self, column: int) -> int:
        """Return the worker to which a window belongs by its first column."""
        return max(column, 0) // self.part // self._run % self.workers


class Origins(Protocol):
    """Upper left pixel (column, row) of each patch, by position: a list, or computed."""

    def __getitem__(self, position: int, /) -> tuple[int, int]:
        """Return (column, row)."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """Patches read as one window.

    Args:
        first: Position of the first patch among those written.
        origins: Upper left pixel (column, row) of each patch, without margin; one row for all.
        window: Pixels to read, margins included.
    """

    first: int
    origins: tuple[tuple[int, int], ...]
    window: Window


def batches(
    origins: Origins, span: Span, patch: XY, margin: XY, max_pixels: int
) -> Iterator[Batch]:
    """Group patches that follow one another in a row of the raster.

    Args:
        origins: Upper left pixel (column, row) of every patch written, in order.
        span: The patches to group, by position.
        patch: Patch (x, y) without margin.
        margin: Margin (x, y) on each side.
        max_pixels: Pixels of a window, unless one patch alone has more.

    Yields:
        Batches that hold each patch once, in order.
    """
    start = span.start
    while start < span.stop:
        stop = start + 1
        left, row = origins[start]
        while stop < span.stop and _joins(origins, stop, row):
            width = origins[stop][0] + patch.x - left + 2 * margin.x
            if width * (patch.y + 2 * margin.y) > max_pixels:
                break
            stop += 1
        right = origins[stop - 1][0] + patch.x
        window = Window(left, row, right - left, patch.y).grown(margin)
        members = tuple(origins[position] for position in range(start, stop))
        yield Batch(start, members, window)
        start = stop


def grouped(batches: Iterable[Batch], min_pixels: int) -> Iterator[tuple[Batch, ...]]:
    """Put small batches together, so that each group is worth a worker's while.

    Args:
        batches: Batches, in order.
        min_pixels: Pixels from which a group is complete.

    Yields:
        Groups of batches that follow one another; only the last may be smaller.
    """
    group: list[Batch] = []
    pixels = 0
    for batch in batches:
        group.append(batch)
        pixels += batch.window.pixels
        if pixels >= min_pixels:
            yield tuple(group)
            group, pixels = [], 0
    if group:
        yield tuple(group)


def _joins(origins: Origins, index: int, row: int) -> bool:
    """Tell whether a patch continues the row to the right."""
    return origins[index][1] == row and origins[index][0] >= origins[index - 1][0]


def runs(starts: Sequence[int]) -> list[tuple[int, int, int]]:
    """Divide ascending starts into runs of one step, so that each can be cut at once.

    Args:
        starts: First columns of patches.

    Returns:
        (index of the first, number, step) of each run; the step of a single one is 1.
    """
    found: list[tuple[int, int, int]] = []
    index = 0
    while index < len(starts):
        step = starts[index + 1] - starts[index] if index + 1 < len(starts) else 1
        stop = index + 1
        while stop < len(starts) and starts[stop] - starts[stop - 1] == step:
            stop += 1
        found.append((index, stop - index, step))
        index = stop
    return found

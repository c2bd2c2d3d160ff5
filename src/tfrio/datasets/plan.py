"""Who reads which records: one pure function, the same on every rank without communication.

The records of an epoch stand in an order (see ``order.py``). The positions of that order are
dealt to the ranks in contiguous, nearly equal shares. A rank's share is cut into batches, and
its workers take the batches in turn, so that the batches of a rank come out in the same order
with any number of workers. What earlier, interrupted runs have consumed is left out first, even
where they ran on another number of ranks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from tfrio.datasets.order import (
    FileOrder,
    FullOrder,
    Int64,
    Order,
    permuted_blocks,
    riffled_blocks,
    subkey,
)
from tfrio.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Done",
    "Picks",
    "Plan",
    "RecordRange",
    "Share",
    "Shuffle",
    "Uneven",
    "deal",
    "make_order",
    "plan",
    "shares",
]

Shuffle = Literal["none", "full", "blocks", "buffer"]
Uneven = Literal["drop", "pad", "keep"]

_PURPOSE = 0x7F10  # keeps the keys of orders apart from those of splits and mixtures


class RecordRange(NamedTuple):
    """Records ``start`` to ``stop`` - 1 of one file, read one after the other."""

    file: int
    start: int
    stop: int
    padded: bool = False
    """True where the records are repeated to make the ranks equal."""


class Done(NamedTuple):
    """What an earlier run consumed of this epoch."""

    world: int
    counts: tuple[int, ...]
    """Records each of its ranks had handed out, padding included, shape (world,)."""


class Picks(NamedTuple):
    """Records to read, in order; arrays of shape (n,)."""

    file: NDArray[np.int32]
    record: Int64
    """Record number within its file."""
    real: NDArray[np.bool_]
    """False where a record is repeated to make the ranks equal."""

    @classmethod
    def of(cls, records: Int64, starts: Int64, *, real: NDArray[np.bool_] | None = None) -> Picks:
        """Find records in their files.

        Args:
            records: Record numbers over all files, shape (n,).
            starts: Record number at which each file begins, and the total, shape (files + 1,).
            real: False where a record is repeated; None: nowhere.

        Returns:
            The records by file.
        """
        real = np.ones(records.size, np.bool_) if real is None else real
        if records.size:
            ends = [records.min(), records.max()]
            first, last = (np.searchsorted(starts, ends, side="right") - 1).tolist()
            if first == last:  # most often so, and then no record needs a search
                file = np.full(records.size, first, np.int32)
                return cls(file, records - starts[first], real)
        found = np.searchsorted(starts, records, side="right") - 1
        return cls(found.astype(np.int32), records - starts[found], real)


@dataclass(frozen=True, slots=True)
class Share:
    """The positions of the epoch's order that one rank visits."""

    ranges: tuple[tuple[int, int], ...]
    """Start and stop of each contiguous stretch, in reading order."""
    padding: tuple[int, ...] = ()
    """Positions repeated at the end."""

    @property
    def real(self) -> int:
        """Return the number of records without padding."""
        return sum(stop - start for start, stop in self.ranges)

    def __len__(self) -> int:
        """Return the number of records, padding included."""
        return self.real + len(self.padding)

    def positions(self, at: Int64) -> Int64:
        """Return the positions that the rank visits at these places of its own stream."""
        if len(self.ranges) == 1:
            found: Int64 = at + self.ranges[0][0]
        else:
            starts = np.array([start for start, _ in self.ranges] or [0], np.int64)
            lengths = np.array([stop - start for start, stop in self.ranges] or [0], np.int64)
            ends = np.cumsum(lengths)
            run = np.minimum(np.searchsorted(ends, at, side="right"), starts.size - 1)
            found = starts[run] + at - (ends[run] - lengths[run])
        if self.padding:
            late = at >= self.real
            found[late] = np.array(self.padding, np.int64)[at[late] - self.real]
        return found


def _cut(ranges: Sequence[tuple[int, int]], start: int, stop: int) -> tuple[tuple[int, int], ...]:
    """Return what stands from ``start`` to ``stop`` of the ranges laid end to end."""
    cut, before = [], 0
    for low, high in ranges:
        first, last = max(start - before, 0), min(stop - before, high - low)
        if first < last:
            cut.append((low + first, low + last))
        before += high - low
    return tuple(cut)


def _boundary(total: int, world: int, rank: int) -> int:
    """Return where the share of ``rank`` starts: the first ``total % world`` ranks get one more."""
    return rank * (total // world) + min(rank, total % world)


def remaining(total: int, done: Sequence[Done]) -> tuple[tuple[int, int], ...]:
    """Return the positions that no earlier run has consumed.

    Args:
        total: Positions in the epoch.
        done: Earlier runs of this epoch, oldest first.

    Returns:
        Start and stop of each stretch, in order.
    """
    left: tuple[tuple[int, int], ...] = ((0, total),) if total else ()
    for run in done:
        size = sum(high - low for low, high in left)
        tails: list[tuple[int, int]] = []
        for rank, count in enumerate(run.counts):
            stop = _boundary(size, run.world, rank + 1)
            start = min(_boundary(size, run.world, rank) + count, stop)
            tails.extend(_cut(left, start, stop))
        left = tuple(tails)
    return left


def deal(
    total: int, *, rank: int = 0, world: int = 1, uneven: Uneven = "drop", done: Sequence[Done] = ()
) -> Share:
    """Deal the positions of an epoch to one rank.

    Args:
        total: Positions in the epoch.
        rank: This rank, from 0.
        world: Number of ranks.
        uneven: ``"keep"``: each record once, ranks may differ by one record; ``"drop"``: all
            ranks as many as the shortest; ``"pad"``: all as many as the longest, the first
            records of the epoch repeated at the end of the shorter shares.
        done: What earlier runs of the same epoch consumed.

    Returns:
        The share of this rank.

    Raises:
        UsageError: ``rank`` is not in 0 to ``world`` - 1.
    """
    if not 0 <= rank < world:
        raise UsageError(f"rank {rank} is not in 0..{world - 1} (world size {world})")
    if uneven not in ("drop", "pad", "keep"):
        raise UsageError(f'uneven must be "drop", "pad" or "keep", got {uneven!r}')
    left = remaining(total, done)
    size = sum(high - low for low, high in left)
    start, stop = _boundary(size, world, rank), _boundary(size, world, rank + 1)
    extra = size % world
    if uneven == "drop":
        stop = start + size // world
    share = Share(_cut(left, start, stop))
    if uneven == "pad" and extra and rank >= extra:
        at = (rank - extra) % size
        return Share(share.ranges, _cut(left, at, at + 1)[0][:1])
    return share


def shares(total: int, *, world: int, uneven: Uneven, done: Sequence[Done] = ()) -> list[Share]:
    """Return the share of every rank (see ``deal``)."""
    return [deal(total, rank=r, world=world, uneven=uneven, done=done) for r in range(world)]


def make_order(
    counts: Sequence[int],
    *,
    seed: int = 0,
    epoch: int = 0,
    shuffle: Shuffle = "none",
    window: int = 16384,
    blocks: Int64 | None = None,
) -> Order:
    """Return the order of one epoch over all files.

    Args:
        counts: Records in each file.
        seed: Any whole number.
        epoch: The epoch; each has another order.
        shuffle: ``"none"``; ``"full"``: an exact permutation of all records; ``"blocks"``: a
            permutation of blocks of neighbouring records, mixed within windows; ``"buffer"``:
            files read front to back side by side, mixed within windows.
        window: Records mixed together by ``"blocks"`` and ``"buffer"``.
        blocks: For ``"blocks"``: record number over all files at which each block begins.

    Returns:
        The order.

    Raises:
        UsageError: Unknown ``shuffle``, or a window below 1.
    """
    total, key = sum(counts), subkey(seed, epoch, _PURPOSE)
    if window < 1:
        raise UsageError(f"the shuffle window must hold at least 1 record, got {window}")
    match shuffle:
        case "none":
            return FileOrder(total)
        case "full":
            return FullOrder(total, key)
        case "blocks":
            starts = _file_starts(counts) if blocks is None else blocks
            return permuted_blocks(starts, total, window=window, key=key)
        case "buffer":
            return riffled_blocks(np.array(counts, np.int64), window=window, key=key)
    raise UsageError(f'shuffle must be "none", "full", "blocks" or "buffer", got {shuffle!r}')


def _file_starts(counts: Sequence[int]) -> Int64:
    sizes = np.array(counts, np.int64)
    starts: Int64 = (np.cumsum(sizes) - sizes)[sizes > 0]
    return starts


@dataclass(frozen=True)
class Plan:
    """What one worker of one rank reads in one epoch, batch by batch."""

    starts: Int64
    """Record number over all files at which each file begins, and the total, shape (files + 1,)."""
    order: Order
    share: Share
    batch: int = 1
    """Records a batch."""
    worker: int = 0
    workers: int = 1
    drop_last: bool = False
    skip: int = 0
    """Records of the rank's stream that were consumed before."""
    group: int = 1
    """Batches that a worker takes in turn."""

    @property
    def length(self) -> int:
        """Return how many records the rank still has to deliver, over all its workers."""
        left = max(0, len(self.share) - self.skip)
        return left - left % self.batch if self.drop_last else left

    @property
    def rank_batches(self) -> int:
        """Return how many batches the rank still has to deliver, over all its workers."""
        return -(-self.length // self.batch)

    @property
    def rank_groups(self) -> int:
        """Return the turns that the workers of the rank take together."""
        return -(-self.rank_batches // self.group)

    def __len__(self) -> int:
        """Return how many batches this worker delivers."""
        turns = max(0, -(-(self.rank_groups - self.worker) // self.workers))
        last_is_mine = turns and (self.rank_groups - 1) % self.workers == self.worker
        missing = self.rank_groups * self.group - self.rank_batches if last_is_mine else 0
        return turns * self.group - missing

    @property
    def records(self) -> int:
        """Return how many records this worker delivers."""
        count = len(self)
        return (count - 1) * self.batch + int(self.batch_sizes(count - 1, count)[0]) if count else 0

    def _numbers(self, first: int, last: int) -> Int64:
        """Return which of the rank's batches this worker's batches are."""
        turn, inside = np.divmod(np.arange(first, last, dtype=np.int64), self.group)
        numbers: Int64 = (turn * self.workers + self.worker) * self.group + inside
        return numbers

    def batch_sizes(self, first: int, last: int) -> Int64:
        """Return the records in each of this worker's batches ``first`` to ``last`` - 1."""
        begin = self._numbers(first, last) * self.batch
        sizes: Int64 = np.clip(self.length - begin, 0, self.batch)
        return sizes

    def _at(self, first: int, last: int) -> Int64:
        """Return the places of batches ``first`` to ``last`` - 1 in the rank's stream."""
        numbers = self._numbers(first, last)
        if numbers.size and numbers[-1] - numbers[0] == numbers.size - 1:  # ascending, so a run
            low, high = int(numbers[0]) * self.batch, (int(numbers[-1]) + 1) * self.batch
            return np.arange(low, min(high, self.length), dtype=np.int64) + self.skip
        at = (numbers[:, None] * self.batch + np.arange(self.batch)).ravel()
        places: Int64 = at[at < self.length] + self.skip
        return places

    def picks(self, first: int, last: int) -> Picks:
        """Return the records of this worker's batches ``first`` to ``last`` - 1, in order."""
        at = self._at(first, last)
        records = self.order.take(self.share.positions(at))
        return Picks.of(records, self.starts, real=at < self.share.real)

    def together(self, first: int, last: int) -> Picks | None:
        """Return the records to hold while these batches are read, None for no such wish."""
        records = self.order.together(self.share.positions(self._at(first, last)))
        return None if records is None else Picks.of(records, self.starts)

    def ranges(self) -> Iterator[RecordRange]:
        """Yield this worker's records as runs within one file, in reading order."""
        step = max(1, 65536 // self.batch)
        for first in range(0, len(self), step):
            yield from _runs(self.picks(first, min(first + step, len(self))))


def _runs(picks: Picks) -> Iterator[RecordRange]:
    if not picks.file.size:
        return
    breaks = (np.diff(picks.file) != 0) | (np.diff(picks.record) != 1) | (np.diff(picks.real) != 0)
    edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), picks.file.size]
    for low, high in itertools.pairwise(edges):
        start = int(picks.record[low])
        yield RecordRange(int(picks.file[low]), start, start + high - low, not picks.real[low])


def plan(
    counts: Sequence[int],
    *,
    seed: int = 0,
    epoch: int = 0,
    rank: int = 0,
    world: int = 1,
    worker: int = 0,
    workers: int = 1,
    shuffle: Shuffle = "none",
    uneven: Uneven = "drop",
    batch: int = 1,
    drop_last: bool = False,
    window: int = 16384,
    blocks: Int64 | None = None,
    done: Sequence[Done] = (),
    skip: int = 0,
    order: Order | None = None,
    group: int = 1,
) -> Plan:
    """Plan what one worker of one rank reads in one epoch.

    A pure function: every process computes its own part from the same few numbers. Over the
    ranks and workers the parts are disjoint, and complete under ``uneven="keep"``. A rank's
    records and their order do not depend on the number of workers.

    Args:
        counts: Records in each file.
        seed: Any whole number.
        epoch: The epoch; a shuffled one is dealt anew.
        rank: This rank, from 0.
        world: Number of ranks.
        worker: This worker of the rank, from 0.
        workers: Number of workers.
        shuffle: See ``make_order``.
        uneven: See ``deal``.
        batch: Records a batch; workers take whole batches in turn.
        drop_last: Leave out the last batch of the rank where it is not full.
        window: See ``make_order``.
        blocks: See ``make_order``.
        done: What earlier runs on another number of ranks consumed of this epoch.
        skip: Records that this rank has consumed of its share.
        order: An order made before, in place of ``shuffle``.
        group: Batches that a worker takes in turn.

    Returns:
        The plan; ``plan.ranges()`` gives the record ranges.

    Raises:
        UsageError: A number that makes no sense, such as a rank beyond the world.
    """
    if batch < 1:
        raise UsageError(f"a batch must hold at least 1 record, got {batch}")
    if group < 1:
        raise UsageError(f"a group must hold at least 1 batch, got {group}")
    if not 0 <= worker < workers:
        raise UsageError(f"worker {worker} is not in 0..{workers - 1} ({workers} workers)")
    if order is None:
        order = make_order(
            counts, seed=seed, epoch=epoch, shuffle=shuffle, window=window, blocks=blocks
        )
    share = deal(order.total, rank=rank, world=world, uneven=uneven, done=done)
    starts = np.concatenate([[0], np.cumsum(np.array(counts, np.int64), dtype=np.int64)])
    return Plan(starts, order, share, batch, worker, workers, drop_last, skip, group)

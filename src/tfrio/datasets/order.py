"""In which order an epoch visits the records: pure functions of (counts, seed, epoch).

An order maps positions of the epoch (0 is delivered first) to record numbers (0 is the first
record of the first file). Any stretch of positions can be asked for without computing what comes
before it, so sharding and resuming cost nothing, and no process needs to talk to another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BlockOrder",
    "FileOrder",
    "FullOrder",
    "Int64",
    "Order",
    "hash_numbers",
    "permuted_blocks",
    "riffled_blocks",
    "subkey",
    "unit_numbers",
]

Int64: TypeAlias = NDArray[np.int64]
UInt64: TypeAlias = NDArray[np.uint64]

# Above this many records the full permutation is computed, not held: 4 bytes a record up to
# here (64 MiB), about 0.3 microseconds a record and no memory beyond.
HELD = 1 << 24

# Files of a buffered shuffle that are read side by side; each costs an open stream.
SIDE_BY_SIDE = 16

_MASK = (1 << 64) - 1


def subkey(*parts: int) -> int:
    """Fold whole numbers into one 64-bit key (splitmix64's finaliser after each).

    Args:
        parts: Any whole numbers: a seed, an epoch, a purpose.

    Returns:
        A key from 0 to 2**64 - 1; different parts give unrelated keys.
    """
    key = 0
    for part in parts:
        key = (key + (part & _MASK) + 0x9E3779B97F4A7C15) & _MASK
        key = ((key ^ (key >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        key = ((key ^ (key >> 27)) * 0x94D049BB133111EB) & _MASK
        key ^= key >> 31
    return key


def hash_numbers(values: UInt64, key: int) -> UInt64:
    """Return a 64-bit hash of each number: a bijection, another one for each key."""
    mixed = values + np.uint64(key)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: UInt64 = mixed ^ (mixed >> np.uint64(31))
    return result


def unit_numbers(values: UInt64, key: int) -> NDArray[np.float64]:
    """Return a number from 0 up to 1 for each number, uniform over keys."""
    mixed = hash_numbers(values * np.uint64(0x9E3779B97F4A7C15), key)
    found: NDArray[np.float64] = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return found


class Order(Protocol):
    """Map positions of an epoch to record numbers."""

    @property
    def total(self) -> int:
        """Return the number of positions."""
        ...

    def take(self, positions: Int64) -> Int64:
        """Return the record numbers at these positions.

        Args:
            positions: Positions from 0 to ``total`` - 1, any shape (n,).

        Returns:
            Record numbers, shape (n,).
        """
        ...

    def together(self, positions: Int64) -> Int64 | None:
        """Return the records to load at once around these positions, in the order they lie.

        Args:
            positions: Positions to be read next, shape (n,).

        Returns:
            Record numbers to hold in memory until the positions move on, shape (m,); None where
            the order asks for no such thing.
        """
        ...


@dataclass(frozen=True, slots=True)
class FileOrder:
    """Visit the records as they lie in the files."""

    total: int

    def take(self, positions: Int64) -> Int64:
        """Return the positions themselves."""
        return positions

    def together(self, positions: Int64) -> Int64 | None:
        """Ask for nothing: neighbours come one after the other."""
        return None


@dataclass(slots=True)
class FullOrder:
    """Visit the records in a random order in which every record may come anywhere.

    Up to ``HELD`` records the permutation is NumPy's PCG64 one, held once. Beyond that a keyed
    Feistel network walks the cycle of each position until it lands below ``total``: a bijection
    that is computed where it is needed.
    """

    total: int
    key: int
    _held: NDArray[np.uint32] | None = field(default=None, init=False, repr=False)

    def take(self, positions: Int64) -> Int64:
        """Return the record numbers at these positions."""
        if self.total > HELD:
            return _feistel(positions, self.total, self.key)
        if self._held is None:
            # NumPy shuffles numbers of 8 bytes a third faster than others, in the same way.
            numbers = np.arange(self.total, dtype=np.int64)
            np.random.Generator(np.random.PCG64(self.key)).shuffle(numbers)
            self._held = numbers.astype(np.uint32)
        return self._held[positions].astype(np.int64)

    def together(self, positions: Int64) -> Int64 | None:
        """Ask for nothing: each record lies elsewhere."""
        return None

    def __getstate__(self) -> tuple[int, int]:
        """Pickle the key, not the permutation."""
        return (self.total, self.key)

    def __setstate__(self, state: tuple[int, int]) -> None:
        """Take the key back."""
        self.total, self.key = state
        self._held = None


def _feistel(positions: Int64, total: int, key: int) -> Int64:
    bits = max(2, (total - 1).bit_length())
    low_bits = bits // 2
    low_mask, high_mask = np.uint64((1 << low_bits) - 1), np.uint64((1 << (bits - low_bits)) - 1)
    keys = [subkey(key, turn) for turn in range(8)]
    out = positions.astype(np.uint64)
    left = np.arange(out.size)
    while left.size:
        value = out[left]
        low, high = value & low_mask, value >> np.uint64(low_bits)
        for turn in range(0, 8, 2):
            high = high ^ (hash_numbers(low, keys[turn]) & high_mask)
            low = low ^ (hash_numbers(high, keys[turn + 1]) & low_mask)
        value = (high << np.uint64(low_bits)) | low
        out[left] = value
        left = left[value >= np.uint64(total)]
    return out.astype(np.int64)


@dataclass(slots=True)
class BlockOrder:
    """Visit runs of records in a given order, mixed within windows.

    Each window of ``window`` positions is permuted by itself, so that a reader needs to hold one
    window of records at most.
    """

    first: Int64
    """Record number at which each run begins, in reading order, shape (runs,)."""
    lengths: Int64
    """Records in each run, shape (runs,)."""
    window: int
    key: int
    ends: Int64 = field(init=False, repr=False)
    _cached: tuple[int, Int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.ends = np.cumsum(self.lengths, dtype=np.int64)
        self._cached = (-1, np.empty(0, np.int64))

    @property
    def total(self) -> int:
        """Return the number of positions."""
        return int(self.ends[-1]) if self.ends.size else 0

    def take(self, positions: Int64) -> Int64:
        """Return the record numbers at these positions."""
        out = np.empty(positions.shape, np.int64)
        windows = positions // self.window
        for number in np.unique(windows):
            chosen = windows == number
            out[chosen] = self._mixed(int(number))[positions[chosen] - number * self.window]
        return out

    def together(self, positions: Int64) -> Int64 | None:
        """Return the records of every window touched, as they lie in the files."""
        inside = [
            np.arange(number * self.window, min((number + 1) * self.window, self.total))
            for number in np.unique(positions // self.window)
        ]
        return np.sort(self.unmixed(np.concatenate([np.empty(0, np.int64), *inside])))

    def _mixed(self, number: int) -> Int64:
        cached, records = self._cached
        if cached != number:
            start = number * self.window
            stop = min(start + self.window, self.total)
            records = self.unmixed(np.arange(start, stop))
            np.random.Generator(np.random.PCG64(subkey(self.key, number))).shuffle(records)
            self._cached = (number, records)
        return records

    def unmixed(self, positions: Int64) -> Int64:
        """Return the record numbers at these positions before the windows are mixed."""
        run = np.searchsorted(self.ends, positions, side="right")
        before = self.ends[run] - self.lengths[run]
        records: Int64 = self.first[run] + (positions - before)
        return records


def permuted_blocks(starts: Int64, total: int, *, window: int, key: int) -> BlockOrder:
    """Visit blocks at random, and mix records within windows of several blocks.

    Args:
        starts: Record number at which each block begins, ascending from 0, shape (blocks,).
        total: Number of records.
        window: Records mixed together; memory is bounded by this many records and the blocks
            they lie in.
        key: Key of the permutation, from ``subkey(seed, epoch)``.

    Returns:
        The order.
    """
    lengths = np.diff(np.append(starts, total))
    chosen = np.random.Generator(np.random.PCG64(subkey(key, 1))).permutation(starts.size)
    return BlockOrder(starts[chosen], lengths[chosen], window, subkey(key, 2))


def riffled_blocks(counts: Int64, *, window: int, key: int, run: int = 64) -> BlockOrder:
    """Read files front to back, many side by side, and mix records within windows.

    For files that cannot be entered in the middle. Each file is cut into runs; the runs of up to
    16 files at a time are interleaved so that every file lasts as long as the others.

    Args:
        counts: Records in each file, shape (files,).
        window: Records mixed together (the shuffle buffer over all files).
        key: Key of the permutation, from ``subkey(seed, epoch)``.
        run: Records taken from one file before the next file's turn.

    Returns:
        The order.
    """
    random = np.random.Generator(np.random.PCG64(subkey(key, 1)))
    group = random.permutation(counts.size) // SIDE_BY_SIDE
    runs = -(-counts // run)
    file = np.repeat(np.arange(counts.size), runs)
    inner = np.arange(file.size) - (np.cumsum(runs) - runs)[file]
    turn = (inner + random.random(counts.size)[file]) / runs[file]
    first = (np.cumsum(counts) - counts)[file] + inner * run
    lengths = np.minimum(run, counts[file] - inner * run)
    chosen = np.lexsort((turn, group[file]))
    return BlockOrder(first[chosen], lengths[chosen], window, subkey(key, 2))

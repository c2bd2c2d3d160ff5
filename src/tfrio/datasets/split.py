"""Split records into parts that never leak: by record, hash, file, group or spatial block.

All splits depend on names, record numbers or values and the seed alone: not on the order in
which files are listed, the epoch or the process.
"""

from __future__ import annotations

import hashlib
import posixpath
import sys
from typing import TYPE_CHECKING, Literal

import numpy as np

from tfrio.datasets.order import unit_numbers
from tfrio.errors import UsageError
from tfrio.types import XY, real_number, several, shown, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tfrio.datasets.order import Int64

__all__ = ["By", "by_file", "spatial_blocks", "split_groups", "split_records", "stable_names"]

By = Literal["record", "hash", "file"]


def stable_names(paths: Sequence[str]) -> list[str]:
    """Return what identifies each file wherever the folder is moved.

    Args:
        paths: All files of the data set.

    Returns:
        The base name where all differ, else the path below the common folder.
    """
    clean = [path.replace("\\", "/") for path in paths]
    names = [posixpath.basename(path) for path in clean]
    if len(set(names)) == len(names):
        return names
    common = posixpath.commonpath([posixpath.dirname(path) for path in clean])
    return [path[len(common) :].lstrip("/") for path in clean]


def whole_seed(seed: object) -> int:
    """Return a seed given by a user: any whole number."""
    return whole_number(seed, "seed", least=-sys.maxsize)


def _hash_text(text: str | bytes, seed: int) -> int:
    data = text.encode() if isinstance(text, str) else text
    digest = hashlib.blake2b(data, digest_size=8, salt=(seed & (2**64 - 1)).to_bytes(8, "little"))
    return int.from_bytes(digest.digest(), "little")


def _edges(fractions: Sequence[float]) -> NDArray[np.float64]:
    given = several(fractions, "fractions", "numbers")
    parts = np.array([real_number(each, "a fraction") for each in given], np.float64)
    if parts.size < 1 or not (parts >= 0).all() or not np.isclose(parts.sum(), 1.0):
        raise UsageError(f"fractions must be at least 0 and sum to 1, got {given}")
    return np.cumsum(parts)


def _part_of(unit: NDArray[np.float64], edges: NDArray[np.float64]) -> Int64:
    part: Int64 = np.minimum(np.searchsorted(edges, unit, side="right"), edges.size - 1)
    return part


def split_records(
    paths: Sequence[str],
    counts: Sequence[int],
    *,
    fractions: Sequence[float],
    seed: int = 0,
    by: By = "record",
) -> list[list[Int64]]:
    """Split a data set.

    Args:
        paths: The files.
        counts: Records in each file.
        fractions: Share of each part; must sum to 1.
        seed: Any whole number; another seed gives another split.
        by: ``"record"``: exact sizes, each part rounded down in turn (0.8 and 0.2 of 103 are 82
            and 21); ``"hash"``: each record by itself, so that records appended later move no
            other; ``"file"``: whole files, the first part takes files while its share lasts.

    Returns:
        For each part, for each file, the ascending record numbers.

    Raises:
        UsageError: Fractions do not sum to 1, or ``by`` is unknown.
    """
    edges, names, seed = _edges(fractions), stable_names(paths), whole_seed(seed)
    units = [
        unit_numbers(np.arange(count, dtype=np.uint64), _hash_text(name, seed))
        for name, count in zip(names, counts, strict=True)
    ]
    if by == "hash":
        parts = [_part_of(unit, edges) for unit in units]
    elif by == "file":
        parts = _by_file(names, counts, edges, seed)
    elif by == "record":
        parts = _by_record(units, edges)
    else:
        raise UsageError(f'by must be "record", "hash" or "file", got {by!r}')
    return [[np.flatnonzero(part == number) for part in parts] for number in range(edges.size)]


def _by_record(units: list[NDArray[np.float64]], edges: NDArray[np.float64]) -> list[Int64]:
    joined = np.concatenate([*units, np.empty(0)])
    limits = np.floor(edges * joined.size + 1e-9)
    place = np.empty(joined.size, np.int64)
    place[np.argsort(joined, kind="stable")] = np.arange(joined.size)
    part = np.minimum(np.searchsorted(limits, place, side="right"), edges.size - 1)
    return np.split(part, np.cumsum([unit.size for unit in units])[:-1]) if units else []


def _by_file(
    names: Sequence[str], counts: Sequence[int], edges: NDArray[np.float64], seed: int
) -> list[Int64]:
    turn = sorted(range(len(names)), key=lambda file: (_hash_text(names[file], seed), names[file]))
    middle = np.cumsum([counts[file] for file in turn]) - np.array([counts[f] for f in turn]) / 2
    limits = edges * sum(counts)
    part = np.minimum(np.searchsorted(limits, middle, side="right"), edges.size - 1)
    of_file = dict(zip(turn, part.tolist(), strict=True))
    return [np.full(count, of_file[file], np.int64) for file, count in enumerate(counts)]


def split_groups(
    groups: Sequence[object] | NDArray[np.generic], fractions: Sequence[float], *, seed: int = 0
) -> list[Int64]:
    """Split so that records of one group (a key, a place, a day) stay together.

    Args:
        groups: Group of each record: numbers, text or bytes, length n.
        fractions: Share of each part; must sum to 1. Sizes are approximate, since groups are
            not cut.
        seed: Any whole number.

    Returns:
        For each part the ascending record numbers.
    """
    edges, seed = _edges(fractions), whole_seed(seed)
    values = groups.tolist() if isinstance(groups, np.ndarray) else list(groups)
    known: dict[object, int] = {}
    for value in values:
        if value not in known:
            text = value if isinstance(value, bytes) else str(value).encode()
            known[value] = _hash_text(text, seed)
    hashes = np.array([known[value] for value in values], np.uint64)
    part = _part_of(unit_numbers(hashes, seed), edges)
    return [np.flatnonzero(part == number) for number in range(edges.size)]


def by_file(records: Int64, counts: Sequence[int]) -> list[Int64]:
    """Return record numbers over all files as numbers within each file.

    Args:
        records: Ascending record numbers, shape (n,).
        counts: Records in each file.

    Returns:
        For each file its ascending record numbers.
    """
    edges = np.cumsum([0, *counts])
    cuts = np.searchsorted(records, edges)
    return [records[cuts[k] : cuts[k + 1]] - edges[k] for k in range(len(counts))]


def spatial_blocks(
    patches: Int64, *, patches_per_row: int, block: XY | tuple[int, int]
) -> list[tuple[int, int]]:
    """Return the spatial block of each patch, to split so that neighbours stay together.

    Args:
        patches: Patch numbers, row-major, shape (n,).
        patches_per_row: Patches in one row of the grid.
        block: Patches in a block (x, y).

    Returns:
        (row, column) of each patch's block; pass it to ``split_groups``.
    """
    size = XY.of(block, name="block")
    numbers = np.asarray(several(patches, "patches", "whole numbers"))
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise UsageError(f"patches must be a list of whole numbers, got {shown(patches)}")
    row, column = np.divmod(numbers, whole_number(patches_per_row, "patches_per_row"))
    return list(zip((row // size.y).tolist(), (column // size.x).tolist(), strict=True))

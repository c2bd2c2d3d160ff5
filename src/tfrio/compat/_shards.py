"""Which bytes of a file to read, in which order: indexes, shards and the random rotation."""

from __future__ import annotations

import functools
import operator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.compat._index import read_offsets
from tfrio.compat._stream import Part, as_runtime_error, rewind
from tfrio.compat.iterator_utils import draws
from tfrio.errors import NotTFRecordError, warn_user
from tfrio.records.access import RecordFile
from tfrio.records.index import build_index
from tfrio.types import path_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfrio.compat.iterator_utils import Generator

__all__ = ["checked_shard", "planned_parts", "share"]


def checked_shard(shard: Sequence[int]) -> tuple[int, int]:
    """Return a shard as (which, of how many).

    Args:
        shard: Two whole numbers.

    Returns:
        The pair.

    Raises:
        ValueError: Not two numbers, or the first not in [0, second).
        TypeError: Not whole numbers.
    """
    try:
        which, count = (operator.index(part) for part in shard)
    except ValueError as error:
        raise ValueError(f"shard must be a pair (which, of how many), got {shard!r}") from error
    if not 0 <= which < count:
        raise ValueError(f"shard {shard!r}: the first number must be in [0, {count})")
    return which, count


def share(total: int, shard: tuple[int, int]) -> tuple[int, int]:
    """Return the records [first, last) of a shard: contiguous, disjoint, all of them once.

    Args:
        total: Number of records.
        shard: Which part, of how many.

    Returns:
        First record and the one behind the last.
    """
    which, count = shard
    return total * which // count, total * (which + 1) // count


def _shard_part(count: int, offset: Callable[[int], Any], shard: tuple[int, int]) -> list[Part]:
    """Return one shard; the last one goes on to the end of the file."""
    first, last = share(count, shard)
    if first == last:
        return []
    return [Part(int(offset(first)), int(offset(last)) if last < count else None, first)]


def _walked_part(source: Any, compression: str | None, shard: tuple[int, int]) -> list[Part]:
    """Find a shard by the record headers; a local file that stays the same is walked over once."""
    try:
        status = Path(source).stat()
    except (OSError, TypeError, ValueError):
        return _find_part(source, compression, shard)
    path = path_text(source)
    return _local_part(path, compression, shard, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=256)
def _local_part(
    path: str, compression: str | None, shard: tuple[int, int], mtime_ns: int, size: int
) -> list[Part]:
    """Find a shard of a local file; time and size (``mtime_ns``, bytes) tell a changed file."""
    del mtime_ns, size
    return _find_part(path, compression, shard)


def _find_part(source: Any, compression: str | None, shard: tuple[int, int]) -> list[Part]:
    rewind(source)
    try:
        index = build_index(source, compression=compression, verify=False)
    except NotTFRecordError as error:
        raise as_runtime_error(error) from error
    if index.offsets is not None:
        return _shard_part(index.count, index.offsets.__getitem__, shard)
    with RecordFile(source, index=index) as file:
        return _shard_part(file.count, file.offset, shard)


def planned_parts(
    source: Any,
    index_path: Any,
    shard: Sequence[int] | None,
    *,
    compression: str | None,
    generator: Generator | None,
) -> list[Part]:
    """Plan what one pass reads.

    Args:
        source: The record file.
        index_path: Its text index, or None.
        shard: Which part of how many, or None for everything.
        compression: How the file is compressed; None goes by the content.
        generator: Where the start of the rotation is drawn; None: NumPy's global generator.

    Returns:
        The parts in the order in which they are read. With an index and no shard every record
        once, beginning at a random one. Without an index a shard is found by a walk over the
        record headers.

    Raises:
        FileNotFoundError: No such index.
        ValueError: An impossible shard.
    """
    which = None if shard is None else checked_shard(shard)
    if index_path is None:
        if which is None or which == (0, 1):
            return [Part()]
        return _walked_part(source, compression, which)
    offsets, gaps = read_offsets(index_path)
    if gaps:
        warn_user(
            f"{index_path}: the index leaves out bytes between its records; records that it does "
            "not list are read too. Make it anew with tfrecord2idx"
        )
    if which is not None:
        return _shard_part(len(offsets), offsets.__getitem__, which)
    start = int(draws(generator).choice(offsets)) if len(offsets) else 0
    if not start:
        return [Part()]
    first = int(np.searchsorted(offsets, start))
    return [Part(start, None, first), Part(0, start)]

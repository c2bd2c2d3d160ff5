"""Indexes: where each record begins, and where compressed data can be entered."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tfrio.compression import MEMBER_HEAD, member_at
from tfrio.records.damage import Damage, without_payload
from tfrio.records.headers import header_offsets
from tfrio.records.reader import RecordStream
from tfrio.records.seek import NO_POINTS, SeekPoints, find_points
from tfrio.records.walk import walk
from tfrio.storage import is_regular, open_read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from tfrio.compression import Compression, Member
    from tfrio.storage import BinaryReader, Source

__all__ = ["Blocks", "RecordIndex", "build_index", "read_blocks"]


@dataclass(frozen=True, slots=True)
class Blocks:
    """The members of a blocked gzip file; each holds whole records.

    Attributes:
        stored: int64 (m + 1,) offsets of the members in the file, and its end.
        data: int64 (m + 1,) offsets of their uncompressed data, and its end.
        first: int64 (m + 1,) numbers of their first records, and the number of records.
    """

    stored: NDArray[np.int64]
    data: NDArray[np.int64]
    first: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """Where the records of one file are.

    Attributes:
        compression: How the file is compressed.
        count: Number of records.
        data_size: Uncompressed bytes, up to the end of the last record.
        offsets: int64 (count,) uncompressed offsets of the record headers; None for blocked gzip,
            where ``blocks`` says enough.
        blocks: The members of blocked gzip, else None.
        points: Where other gzip or zlib data can be entered.
        partial: Whether damaged records were left out.
    """

    compression: Compression
    count: int
    data_size: int
    offsets: NDArray[np.int64] | None
    blocks: Blocks | None = None
    points: SeekPoints = field(default=NO_POINTS)
    partial: bool = False


def build_index(
    path: Source,
    *,
    compression: str | None = None,
    verify: bool = True,
    allow_partial: bool = False,
    threads: int | None = None,
    advanced: Callable[[int], None] | None = None,
) -> RecordIndex:
    """Find every record of a file.

    Args:
        path: Local path, URL or file object.
        compression: None goes by the content.
        verify: Check payload CRCs too. Without, plain local files are read only at their headers,
            and blocked gzip only at its members' headers.
        allow_partial: Leave damaged records out instead of raising.
        threads: Threads to inflate on.
        advanced: Called with the number of stored bytes done since the last call.

    Returns:
        The index.

    Raises:
        CorruptRecordError: A record is damaged or cut, and ``allow_partial`` is not set.
        NotTFRecordError: The file is something else.
    """
    if not verify and is_regular(path):
        quick = _headers_only(path, compression)
        if quick is not None:
            return quick
    stream = RecordStream(path, compression=compression, threads=threads)
    with stream:
        found, taps = _walk_all(stream, verify, allow_partial, advanced or (lambda _: None))
    blocks = _sound_table(stream.blocks, found) if stream.blocks else None
    if blocks is not None and int(blocks.first[-1]) == found.count:
        return RecordIndex(
            "gzip", found.count, int(blocks.data[-1]), None, blocks, partial=found.partial
        )
    return RecordIndex(
        stream.compression,
        found.count,
        found.data_size,
        found.offsets,
        points=taps,
        partial=found.partial,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    offsets: NDArray[np.int64]
    count: int
    data_size: int
    partial: bool
    damaged_blocks: dict[int, int] | None
    """Records lost in damaged blocks, by where these begin in the file; None where other things are
    damaged, too."""


def _walk_all(
    stream: RecordStream,
    verify: bool,
    allow_partial: bool,
    advanced: Callable[[int], None],
) -> tuple[_Found, SeekPoints]:
    """Walk a stream, gathering record offsets and, where compressed, seek points."""
    tap = find_points(stream)
    pieces: list[NDArray[np.int64]] = []
    partial, end, told = False, 0, 0
    damages: list[Damage] = []
    for event in walk(stream, verify=verify):
        if isinstance(event, Damage):
            if not allow_partial:
                raise event.error()
            partial = True
            damages.append(without_payload(event))
            if event.compressed_offset is not None:
                tap.stop()  # it does not know how much data is missing
        else:
            pieces.append(event.spans[:, 0] + (event.position - 12))
            last = event.spans[-1]
            end = event.position + int(last[0] + last[1]) + 4
        advanced(stream.consumed - told)
        told = stream.consumed
    offsets = np.concatenate(pieces) if pieces else np.empty(0, np.int64)
    return _Found(offsets, len(offsets), end, partial, _lost_in_blocks(damages)), tap.points()


def _lost_in_blocks(damages: Sequence[Damage]) -> dict[int, int] | None:
    """Add up the records lost in damaged blocks; see ``_Found``."""
    lost: dict[int, int] = {}
    for damage in damages:
        if damage.compressed_offset is None:
            return None
        lost.setdefault(damage.compressed_offset, 0)
        lost[damage.compressed_offset] += damage.lost_records
    return lost


def _sound_table(members: Sequence[Member], found: _Found) -> Blocks | None:
    """Add up the sizes of blocks, less what is lost. None where that says too little."""
    if found.damaged_blocks is None:
        return None
    at, told = 0, []
    for member in members:
        told.append(replace(member, records=member.records - found.damaged_blocks.get(at, 0)))
        at += member.csize
    return _table(told)


def _headers_only(path: Source, compression: str | None) -> RecordIndex | None:
    """Index a local file by its record or member headers; None where that cannot be done."""
    with RecordStream(path, compression=compression, buffer_size=64, threads=1) as stream:
        kind = stream.compression
    if kind == "none":
        found = header_offsets(path)
        # The full walk tells damage in full, or steps over it.
        return None if found is None else RecordIndex(kind, len(found[0]), found[1], found[0])
    blocks = read_blocks(path) if kind == "gzip" else None
    if blocks is None:
        return None
    return RecordIndex("gzip", int(blocks.first[-1]), int(blocks.data[-1]), None, blocks)


def _hop(reader: BinaryReader, size: int) -> Iterator[Member | None]:
    """Yield each member; None, and no more, where one does not tell its sizes."""
    at = 0
    while at < size:
        member = member_at(reader.read_at(at, MEMBER_HEAD))
        if member is None or member.records < 0 or not 0 < member.csize <= size - at:
            yield None
            return
        yield member
        at += member.csize


def read_blocks(path: Source) -> Blocks | None:
    """Read the members of a local blocked gzip file by their headers.

    Returns:
        None where not every member tells its size and number of records.
    """
    with contextlib.closing(open_read(path)) as reader:
        return _table(list(_hop(reader, reader.size or 0)))


def _table(members: Sequence[Member | None]) -> Blocks | None:
    """Add up the sizes of members; None where one of them does not tell."""
    told = [(m.csize, m.usize, m.records) for m in members if m is not None and m.records >= 0]
    if not told or len(told) < len(members):
        return None
    table = np.zeros((len(told) + 1, 3), np.int64)
    np.cumsum(np.array(told, np.int64), axis=0, out=table[1:])
    return Blocks(*(np.ascontiguousarray(column) for column in table.T))

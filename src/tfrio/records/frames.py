"""How the frames of single records, or of runs of them, are got out of one file."""

from __future__ import annotations

import threading
from collections import OrderedDict
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from tfrio import _core
from tfrio.compression.blocks import parse_header
from tfrio.compression.detect import HEADER_BYTES
from tfrio.compression.inflate import inflate_block
from tfrio.compression.salvage import save_block
from tfrio.errors import CompressedDataError, CorruptRecordError, IndexFileError, from_fault
from tfrio.records.seek import inflate_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tfrio.compression.blocks import Header
    from tfrio.compression.inflate import Piece
    from tfrio.records.index import RecordIndex
    from tfrio.storage import BinaryReader

__all__ = ["BlockFrames", "Frames", "MappedFrames", "PointFrames", "RangeFrames", "Sound"]

_Int64: TypeAlias = "NDArray[np.int64]"

_HELD_BLOCKS = 4  # inflated blocks kept, as neighbours are often asked for next


class Sound(NamedTuple):
    """What is sound of a run of records.

    Attributes:
        buffer: The frames.
        starts: int64 (n,): offset of each record's header in ``buffer``.
        lost: bool (n,): which records lie in damaged compressed data; None where none does.
        error: What is wrong there.
    """

    buffer: Any
    starts: _Int64
    lost: NDArray[np.bool_] | None = None
    error: CompressedDataError | None = None


class Frames(Protocol):
    """How the frames of a run of records are got."""

    def get(self, start: int, stop: int) -> tuple[Any, _Int64]:
        """Return a buffer and the offset in it of each record's header."""
        ...


class MappedFrames:
    """A plain local file, mapped: any record is at hand, nothing is copied.

    Args:
        reader: The file, which may be closed then.
        index: Its index.
        offsets: The offsets of ``index``.

    Raises:
        OSError: The file system maps no files.
    """

    def __init__(self, reader: BinaryReader, index: RecordIndex, offsets: _Int64) -> None:
        self._offsets = offsets
        self._map: _core.FileMap | bytes = b""
        self.records: _core.RecordMap | None = None
        if index.data_size:
            number = reader.fileno()  # type: ignore[attr-defined]
            self._map = _core.FileMap(reader.name, number, 0, index.data_size)
            self.records = _core.RecordMap(self._map, offsets, index.data_size)

    def get(self, start: int, stop: int) -> tuple[Any, _Int64]:
        """Return the whole mapping, to check after use, and header offsets in it."""
        return self._map, self._offsets[start:stop]


class RangeFrames:
    """A plain file that cannot be mapped, as a remote one: one request for a run of records."""

    def __init__(self, reader: BinaryReader, index: RecordIndex, offsets: _Int64) -> None:
        self._reader = reader
        self._offsets = offsets
        self._end = index.data_size

    def get(self, start: int, stop: int) -> tuple[Any, _Int64]:
        """Fetch from the first to the last record of the run."""
        first = int(self._offsets[start])
        end = int(self._offsets[stop]) if stop < len(self._offsets) else self._end
        return self._reader.read_at(first, end - first), self._offsets[start:stop] - first


class BlockFrames:
    """A blocked gzip file: the blocks that hold a run are inflated, the last few are kept."""

    def __init__(self, reader: BinaryReader, index: RecordIndex) -> None:
        assert index.blocks is not None
        self._reader = reader
        self._blocks = index.blocks
        self._held: OrderedDict[int, Sound] = OrderedDict()
        self._lock = threading.Lock()

    def block_of(self, record: int) -> int:
        """Return the number of the block that holds a record."""
        return int(np.searchsorted(self._blocks.first, record, "right")) - 1

    def get(self, start: int, stop: int) -> tuple[Any, _Int64]:
        """Inflate the blocks of the run, joined where it spans several.

        Raises:
            CompressedDataError: One of the records is lost.
        """
        buffer, starts, lost, error = self.sound(start, stop)
        if error is not None and lost is not None and lost.any():
            raise _lost_record(error, start + int(np.argmax(lost)))
        return buffer, starts

    def sound(self, start: int, stop: int) -> Sound:
        """Inflate like ``get``, but tell which records are lost."""
        first, last = self.block_of(start), self.block_of(stop - 1)
        blocks = [self._block(number) for number in range(first, last + 1) if self._holds(number)]
        skip = start - int(self._blocks.first[first])
        run = slice(skip, skip + stop - start)
        whole = blocks[0] if len(blocks) == 1 else _joined(blocks)
        lost = None if whole.lost is None else whole.lost[run]
        return whole._replace(starts=whole.starts[run], lost=lost)

    def _holds(self, number: int) -> bool:
        """Return whether a block holds records; a damaged one may not, for a partial index."""
        return bool(self._blocks.first[number] < self._blocks.first[number + 1])

    def _block(self, number: int) -> Sound:
        with self._lock:
            if number in self._held:
                self._held.move_to_end(number)
                return self._held[number]
        block = self._inflate(number)
        with self._lock:
            self._held[number] = block
            while len(self._held) > _HELD_BLOCKS:
                self._held.popitem(last=False)
        return block

    def _inflate(self, number: int) -> Sound:
        begin, end = (int(v) for v in self._blocks.stored[number : number + 2])
        stored = self._reader.read_at(begin, end - begin)
        name = self._reader.name
        header = _header_of(stored)
        first, stop = (int(v) for v in self._blocks.first[number : number + 2])
        if header is None or len(stored) < end - begin:
            raise IndexFileError(f"{name}: no gzip block at byte {begin}, as its index says")
        try:
            data = inflate_block(stored, header, name=name, start=begin)
        except CompressedDataError as error:
            return _saved(stored, header, stop - first, error.with_traceback(None))
        scan = _core.scan(data, 0, -1, False, True)
        starts = _record_starts(data, scan, stop - first)
        if starts is not None:
            return Sound(data, starts)
        if scan.fault is not None:
            offset = int(self._blocks.data[number]) + scan.fault.offset
            raise from_fault(scan.fault, path=name, record=first + scan.fault.record, offset=offset)
        raise CorruptRecordError(
            f"{name}: the gzip block at byte {begin} holds {len(scan.spans)} records where its "
            f"header says {stop - first}. Run `tfrio verify`",
            path=name,
            record=first,
        )


def _joined(blocks: Sequence[Sound]) -> Sound:
    """Join blocks that follow each other."""
    base = np.cumsum([0, *(len(block.buffer) for block in blocks[:-1])]).tolist()
    starts = np.concatenate([block.starts + at for block, at in zip(blocks, base, strict=True)])
    buffer = b"".join(block.buffer for block in blocks)
    error = next((block.error for block in blocks if block.error is not None), None)
    if error is None:
        return Sound(buffer, starts)
    whole = [np.zeros(len(b.starts), np.bool_) if b.lost is None else b.lost for b in blocks]
    return Sound(buffer, starts, np.concatenate(whole), error)


def _saved(stored: bytes, header: Header, count: int, error: CompressedDataError) -> Sound:
    """Return what is sound of a damaged block.

    Args:
        stored: The block.
        header: Its header.
        count: How many records the index knows in it: all, or if it is partial the sound ones.
        error: What is wrong.

    Raises:
        CompressedDataError: Nothing can be told of its records.
    """
    told = header.told
    if told is None:
        raise error
    saved = save_block(stored, header.length, told)
    starts, lost = saved.starts()
    if count == len(saved.numbers):
        return Sound(saved.data, starts[~lost])
    if count != told.records:
        raise error
    return Sound(saved.data, starts, lost, error)


def _lost_record(error: CompressedDataError, record: int) -> CompressedDataError:
    """Return the error for a record that is lost in a damaged block."""
    lost = CompressedDataError(
        f"{error.message}; record {record} is lost with it. Fetch or write the file again, or keep "
        "every whole record with `tfrio repair`",
        path=error.path,
        offset=error.offset,
        field=error.field,
        code=error.code,
        resumable=True,
    )
    lost.record = record
    return lost


def _record_starts(data: Piece, scan: _core.Scan, count: int) -> _Int64 | None:
    """Return where the records of a block begin; for those that are lost, where its fault lies.

    Whoever reads one of them meets the fault, and the records around it are not lost with it.

    Args:
        data: The block, uncompressed.
        scan: What a scan from its start found.
        count: Number of its records.

    Returns:
        Shape (count,); None where it cannot be told which are lost.
    """
    parts = [scan.spans[:, 0] - HEADER_BYTES]
    faults: list[int] = []
    while scan.fault is not None:
        faults.append(scan.fault.offset)
        begin, _ = _core.find_record(data, scan.fault.offset + 1, True)
        if begin < 0:
            break
        scan = _core.scan(data, begin, -1, False, True)
        parts.append(scan.spans[:, 0] - HEADER_BYTES)
    lost = count - sum(map(len, parts))
    if lost < len(faults) or (lost > len(faults) and len(faults) != 1):
        return None
    each = lost // max(1, len(faults))
    gaps = [np.full(each, fault, np.int64) for fault in faults]
    nothing = np.empty(0, np.int64)
    pairs = zip_longest(parts, gaps, fillvalue=nothing)
    return np.concatenate([starts for pair in pairs for starts in pair])


def _header_of(stored: bytes) -> Header | None:
    try:
        return parse_header(stored)
    except ValueError:
        return None


class PointFrames:
    """Ordinary gzip or zlib: inflated from the last seek point before the run."""

    def __init__(self, reader: BinaryReader, index: RecordIndex, offsets: _Int64) -> None:
        self._reader = reader
        self._index = index
        self._offsets = offsets

    def get(self, start: int, stop: int) -> tuple[Any, _Int64]:
        """Inflate up to the end of the run, keeping only the run."""
        first = int(self._offsets[start])
        end = int(self._offsets[stop]) if stop < len(self._offsets) else self._index.data_size
        points = self._index.points
        number = points.before(first)
        at = int(points.data[number]) if number >= 0 else 0
        parts: list[bytes] = []
        for piece in inflate_from(self._reader, self._index.compression, points, number, end):
            if at + len(piece) > first:
                parts.append(piece[max(first - at, 0) : end - at])
            at += len(piece)
            if at >= end:
                break
        return b"".join(parts), self._offsets[start:stop] - first

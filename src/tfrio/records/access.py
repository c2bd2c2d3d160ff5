"""Random access by record number, in one file."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from tfrio import _core
from tfrio.compression.blocks import parse_header
from tfrio.compression.inflate import inflate_block
from tfrio.errors import CorruptRecordError, IndexFileError, UsageError, from_fault, many, warn_user
from tfrio.records.index import RecordIndex, build_index
from tfrio.records.seek import inflate_from
from tfrio.records.sidecar import load_index, save_index, sidecar_places
from tfrio.records.textindex import read_text_index
from tfrio.storage import Closing, at_fork, is_remote, local_path, open_read, refuse_stream, size_of
from tfrio.types import path_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfrio.compression.blocks import Header
    from tfrio.compression.inflate import Piece
    from tfrio.storage import BinaryReader
    from tfrio.types import PathLike

__all__ = ["IndexChoice", "RecordFile", "find_index"]

IndexChoice: TypeAlias = "Literal['auto', 'memory'] | PathLike"
_Int64: TypeAlias = "NDArray[np.int64]"

_HEADER, _FRAME = 12, 16
_HELD_BLOCKS = 4  # inflated blocks kept, as neighbours are often asked for next
_INDEX_MAGIC = b"TFRINDEX"


def find_index(path: PathLike, choice: IndexChoice = "auto") -> RecordIndex:
    """Get the index of a file.

    Args:
        path: The data file.
        choice: ``"auto"`` uses the index beside the data or in the cache folder, and makes and
            keeps one where there is none that fits; ``"memory"`` makes one and keeps it nowhere; a
            path names an index file, ours or a text index.

    Returns:
        The index.

    Raises:
        IndexFileError: The named index is damaged or was made for other data.
        CorruptRecordError: There is no index, and the data is damaged.
        UsageError: The path is a pipe, in which no record can be found again.
    """
    path = path_text(path)
    refuse_stream(path, "access by record number")
    index = _find_index(path, choice)
    if index.partial:
        warn_user(
            f"{path}: its index leaves damaged records out; {index.count} "
            f"{many(index.count, 'record')} can be read. Run `tfrio verify` for a full account"
        )
    return index


def _find_index(path: PathLike, choice: IndexChoice) -> RecordIndex:
    if choice == "memory":
        return build_index(path, verify=False)
    if choice != "auto":
        return _named_index(path, choice)
    for place in sidecar_places(path):
        try:
            return load_index(path, place)
        except FileNotFoundError:
            continue
        except IndexFileError as error:
            warn_user(f"{error}; made again")
    index = build_index(path, verify=False)
    try:
        save_index(index, path)
    except OSError as error:
        warn_user(f"the index of {path} cannot be kept: {error}")
    return index


def _named_index(path: PathLike, place: PathLike) -> RecordIndex:
    with contextlib.closing(open_read(local_path(place))) as file:
        ours = file.read(len(_INDEX_MAGIC)) == _INDEX_MAGIC
    return load_index(path, place) if ours else read_text_index(path, place)


class Frames(Protocol):
    """How the frames of a run of records are got."""

    def get(self, start: int, stop: int) -> tuple[Any, _Int64]:
        """Return a buffer and the offset in it of each record's header."""
        ...


class MappedFrames:
    """A plain local file, mapped: any record is at hand, nothing is copied."""

    def __init__(self, path: PathLike, index: RecordIndex, offsets: _Int64) -> None:
        self._offsets = offsets
        self._map: _core.FileMap | bytes = b""
        self.records: _core.RecordMap | None = None
        if index.data_size:
            with contextlib.closing(open_read(path)) as file:
                number = file.fileno()  # type: ignore[attr-defined]
                self._map = _core.FileMap(path_text(path), number, 0, index.data_size)
            self.records = _core.RecordMap(self._map, offsets, index.data_size)

    def get(self, start: int, stop: int) -> tuple[Any, _Int64]:
        """Return the whole mapping, to check after use, and header offsets in it."""
        return self._map, self._offsets[start:stop]


class RangeFrames:
    """A plain remote file: one request for a run of records."""

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
        self._held: OrderedDict[int, tuple[Piece, _Int64]] = OrderedDict()
        self._lock = threading.Lock()

    def block_of(self, record: int) -> int:
        """Return the number of the block that holds a record."""
        return int(np.searchsorted(self._blocks.first, record, "right")) - 1

    def get(self, start: int, stop: int) -> tuple[Any, _Int64]:
        """Inflate the blocks of the run, joined where it spans several."""
        first, last = self.block_of(start), self.block_of(stop - 1)
        pieces = [self._block(number) for number in range(first, last + 1) if self._holds(number)]
        skip = start - int(self._blocks.first[first])
        if len(pieces) == 1:
            return pieces[0][0], pieces[0][1][skip : skip + stop - start]
        base = np.cumsum([0, *(len(data) for data, _ in pieces[:-1])])
        starts = np.concatenate([s + b for (_, s), b in zip(pieces, base.tolist(), strict=True)])
        return b"".join(data for data, _ in pieces), starts[skip : skip + stop - start]

    def _holds(self, number: int) -> bool:
        """Return whether a block holds records; a damaged one does not, for a partial index."""
        return bool(self._blocks.first[number] < self._blocks.first[number + 1])

    def _block(self, number: int) -> tuple[Piece, _Int64]:
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

    def _inflate(self, number: int) -> tuple[Piece, _Int64]:
        begin, end = (int(v) for v in self._blocks.stored[number : number + 2])
        stored = self._reader.read_at(begin, end - begin)
        name = self._reader.name
        header = _header_of(stored)
        first, stop = (int(v) for v in self._blocks.first[number : number + 2])
        if header is None or len(stored) < end - begin:
            raise IndexFileError(f"{name}: no gzip block at byte {begin}, as its index says")
        data = inflate_block(stored, header, name=name, start=begin)
        scan = _core.scan(data, 0, -1, False, True)
        starts = _record_starts(data, scan, stop - first)
        if starts is not None:
            return data, starts
        if scan.fault is not None:
            offset = int(self._blocks.data[number]) + scan.fault.offset
            raise from_fault(scan.fault, path=name, record=first + scan.fault.record, offset=offset)
        raise CorruptRecordError(
            f"{name}: the gzip block at byte {begin} holds {len(scan.spans)} records where its "
            f"header says {stop - first}. Run `tfrio verify`",
            path=name,
            record=first,
        )


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
    parts = [scan.spans[:, 0] - _HEADER]
    faults: list[int] = []
    while scan.fault is not None:
        faults.append(scan.fault.offset)
        begin, _ = _core.find_record(data, scan.fault.offset + 1, True)
        if begin < 0:
            break
        scan = _core.scan(data, begin, -1, False, True)
        parts.append(scan.spans[:, 0] - _HEADER)
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


class RecordFile(Closing):
    """One file by record number: plain, blocked gzip, ordinary gzip or zlib.

    Pickles, and works on in forked and spawned processes: handles are opened where needed.

    Args:
        path: Local path or URL.
        index: See ``find_index``.

    Raises:
        FileNotFoundError: Nothing there.
        IndexFileError: The named index does not fit.
        CorruptRecordError: An index had to be made and the data is damaged.
    """

    def __init__(self, path: PathLike, *, index: IndexChoice | RecordIndex = "auto") -> None:
        self.path = path_text(path)
        self._index = index if isinstance(index, RecordIndex) else find_index(path, index)
        self._start()

    def _start(self) -> None:
        self.forked()
        at_fork(self)

    def forked(self) -> None:
        """Begin anew, nothing open."""
        #: Single records of a mapped file, the quickest way to them; None until it is mapped.
        self.record_map: _core.RecordMap | None = None
        self._frames: Frames | None = None
        self._reader: BinaryReader | None = None
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """Number of records."""
        return self._index.count

    @property
    def index(self) -> RecordIndex:
        """The index in use."""
        return self._index

    @property
    def mapped(self) -> bool:
        """Whether ``frames`` hands out one mapping of the whole file."""
        return self._index.compression == "none" and not is_remote(self.path)

    @property
    def size(self) -> int:
        """Bytes as stored."""
        return size_of(self.path) or 0

    @property
    def data_size(self) -> int:
        """Bytes uncompressed."""
        return self._index.data_size

    @property
    def blocks(self) -> _Int64:
        """Record numbers at which a seek is cheap: int64, ascending, the first is 0."""
        index = self._index
        if index.blocks is not None:
            return np.unique(index.blocks.first[:-1][index.blocks.first[:-1] < index.count])
        if index.compression == "none":
            return np.arange(index.count, dtype=np.int64)
        assert index.offsets is not None
        starts = np.searchsorted(index.offsets, np.append(0, index.points.data))
        return np.unique(starts[starts < max(index.count, 1)])

    def frames(self, start: int, stop: int) -> tuple[Any, _Int64]:
        """Get the framed records from ``start`` up to, not including, ``stop``.

        Returns:
            A buffer, and the offset in it of each record's header: int64 (stop - start,). CRCs
            of payloads are not checked. For mapped files the buffer is the mapping itself.

        Raises:
            UsageError: Not a run of records of this file.
            CorruptRecordError: The data is damaged.
        """
        if not 0 <= start <= stop <= self.count:
            raise UsageError(f"records {start} to {stop} asked of {self.count} in {self.path}")
        if start == stop and not self.mapped:
            return b"", np.empty(0, np.int64)
        return self._opened().get(start, stop)

    def frame(self, record: int) -> tuple[Any, int]:
        """Get the frame of one record.

        Args:
            record: From 0, below ``count``; not checked.

        Returns:
            A buffer, and the offset in it of the record's header. CRCs are not checked.
        """
        buffer, starts = (self._frames or self._opened()).get(record, record + 1)
        return buffer, starts.item(0)

    def offset(self, record: int) -> int:
        """Return where a record's header lies in the uncompressed data, in bytes."""
        if self._index.offsets is not None:
            return int(self._index.offsets[record])
        frames = self._opened()
        assert isinstance(frames, BlockFrames)
        assert self._index.blocks is not None
        number = frames.block_of(record)
        if record == self._index.blocks.first[number]:  # known, even where the block is damaged
            return int(self._index.blocks.data[number])
        _, starts = frames.get(record, record + 1)
        return int(self._index.blocks.data[number]) + int(starts[0])

    def _opened(self) -> Frames:
        frames = self._frames
        if frames is not None:
            return frames
        with self._lock:
            if self._frames is None:
                self._frames = self._open()
            return self._frames

    def _open(self) -> Frames:
        index = self._index
        if self.mapped:
            assert index.offsets is not None
            frames = MappedFrames(self.path, index, index.offsets)
            self.record_map = frames.records
            return frames
        self._reader = open_read(self.path)
        if index.blocks is not None:
            return BlockFrames(self._reader, index)
        assert index.offsets is not None
        if index.compression == "none":
            return RangeFrames(self._reader, index, index.offsets)
        return PointFrames(self._reader, index, index.offsets)

    def close(self) -> None:
        """Release handles; they are opened again when needed. Views of a mapping stay valid."""
        with self._lock:
            if self._reader is not None:
                self._reader.close()
            self._frames = self._reader = self.record_map = None

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the path and the index, no handles."""
        return {"path": self.path, "_index": self._index}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open again lazily."""
        self.__dict__.update(state)
        self._start()

    def __del__(self) -> None:
        """Release handles of a file that nobody closed, as datasets keep files open."""
        if hasattr(self, "_lock"):
            self.close()

    def __len__(self) -> int:
        """Return the number of records."""
        return self.count

"""Random access by record number, in one file."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tfrio.errors import IndexFileError, UsageError, many, warn_user
from tfrio.records.frames import BlockFrames, MappedFrames, PointFrames, RangeFrames, Sound
from tfrio.records.index import RecordIndex, build_index
from tfrio.records.sidecar import load_index, save_index, sidecar_places
from tfrio.records.textindex import read_text_index
from tfrio.storage import Closing, at_fork, is_remote, local_path, open_read, refuse_stream, size_of
from tfrio.types import path_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfrio import _core
    from tfrio.records.frames import Frames
    from tfrio.storage import BinaryReader
    from tfrio.types import PathLike

__all__ = ["IndexChoice", "RecordFile", "find_index"]

IndexChoice: TypeAlias = "Literal['auto', 'memory'] | PathLike"
_Int64: TypeAlias = "NDArray[np.int64]"

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
        frames = self._frames
        if frames is None and self._mappable:
            frames = self._opened()
        return isinstance(frames, MappedFrames)

    @property
    def _mappable(self) -> bool:
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

    def sound_frames(self, start: int, stop: int) -> Sound:
        """Get records like ``frames``, but tell which are lost in damaged blocks of gzip.

        Args:
            start: From 0.
            stop: Above ``start``, at most ``count``.

        Raises:
            CorruptRecordError: The data is damaged, and which records are lost is not known.
        """
        frames = self._opened()
        if isinstance(frames, BlockFrames):
            return frames.sound(start, stop)
        return Sound(*frames.get(start, stop))

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
        """Return where a record's header lies in the uncompressed data, in bytes.

        Of a lost record in a damaged block of gzip that is where what is lost begins.
        """
        if self._index.offsets is not None:
            return int(self._index.offsets[record])
        frames = self._opened()
        assert isinstance(frames, BlockFrames)
        assert self._index.blocks is not None
        number = frames.block_of(record)
        if record == self._index.blocks.first[number]:  # known, even where the block is damaged
            return int(self._index.blocks.data[number])
        starts = frames.sound(record, record + 1).starts
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
        reader = open_read(self.path)
        if self._mappable:
            assert index.offsets is not None
            # There are file systems that map no files.
            with contextlib.suppress(OSError), contextlib.closing(reader):
                frames = MappedFrames(reader, index, index.offsets)
                self.record_map = frames.records
                return frames
            reader = open_read(self.path)
        self._reader = reader
        if index.blocks is not None:
            return BlockFrames(reader, index)
        assert index.offsets is not None
        if index.compression == "none":
            return RangeFrames(reader, index, index.offsets)
        return PointFrames(reader, index, index.offsets)

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

"""Writing records: plain, blocked gzip or zlib, atomically, with modes x, w and a."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, Literal, Protocol, TypeAlias, get_args

import numpy as np

from tfrio import _core
from tfrio.compression import (
    BLOCK_SIZE,
    DEFAULT_LEVEL,
    Compression,
    check_choice,
    check_level,
    deflate_member,
    zlib_compressor,
)
from tfrio.compression.source import usable_threads
from tfrio.errors import CorruptRecordError, UsageError
from tfrio.records.damage import Damage
from tfrio.records.reader import RecordStream
from tfrio.records.sink import open_sink
from tfrio.records.walk import tally
from tfrio.storage import FORKED, Closing, at_fork, is_remote, local_path, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tfrio.storage import Source

__all__ = ["Mode", "RecordWriter"]

Mode: TypeAlias = Literal["x", "w", "a"]
_FRAME_BYTES = 16
_LARGEST_BLOCK = 64 << 20  # held in memory, once a thread


class Packer(Protocol):
    """Turns blocks of framed records into bytes of the file, in order."""

    def pack(self, data: bytes | memoryview, records: int, /) -> Iterator[bytes | memoryview]:
        """Take a block; yield what is ready to be written."""
        ...

    def end_block(self) -> Iterator[bytes]:
        """Yield everything still under way."""
        ...

    def end_file(self) -> Iterator[bytes]:
        """Yield the last bytes of the file."""
        ...


class PlainPacker:
    """Bytes as they are."""

    def pack(self, data: bytes | memoryview, records: int, /) -> Iterator[bytes | memoryview]:
        """Yield the block itself."""
        yield data

    def end_block(self) -> Iterator[bytes]:
        """Yield nothing."""
        yield from ()

    end_file = end_block


class GzipPacker:
    """One gzip member a block, compressed on several threads; the order is kept."""

    def __init__(self, level: int, threads: int) -> None:
        self._level = level
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._under_way: deque[Future[bytes]] = deque()
        self._members = 0

    def pack(self, data: bytes | memoryview, records: int, /) -> Iterator[bytes | memoryview]:
        """Start to compress a block; yield the members that are done, and those over the bound."""
        self._members += 1
        if self._threads == 1:
            yield deflate_member(data, records, level=self._level)
            return
        self._under_way.append(self._begin(bytes(data), records))
        while self._under_way and (
            len(self._under_way) > 2 * self._threads or self._under_way[0].done()
        ):
            yield self._under_way.popleft().result()

    def _begin(self, block: bytes, records: int) -> Future[bytes]:
        self._pool = self._pool or ThreadPoolExecutor(self._threads, "deflate")
        try:
            return self._pool.submit(deflate_member, block, records, level=self._level)
        except RuntimeError:  # the interpreter is ending: a drop-in's forgotten writer is closed
            done: Future[bytes] = Future()
            done.set_result(deflate_member(block, records, level=self._level))
            return done

    def end_block(self) -> Iterator[bytes]:
        """Yield the members under way."""
        while self._under_way:
            yield self._under_way.popleft().result()

    def end_file(self) -> Iterator[bytes]:
        """Yield what is left; a file without records is one empty member."""
        yield from self.end_block()
        if self._pool:
            self._pool.shutdown()
        if not self._members:
            yield deflate_member(b"", 0, level=self._level)


class ZlibPacker:
    """One zlib stream over the whole file."""

    def __init__(self, level: int) -> None:
        self._stream = zlib_compressor(level)

    def pack(self, data: bytes | memoryview, records: int, /) -> Iterator[bytes | memoryview]:
        """Compress a block; yield what is ready."""
        yield self._stream.compress(bytes(data))

    def end_block(self) -> Iterator[bytes]:
        """Refuse: the end of a zlib stream is known only at the end of the file."""
        raise UsageError("a zlib file cannot be flushed before it is closed; use gzip")

    def end_file(self) -> Iterator[bytes]:
        """Yield the end of the stream."""
        yield self._stream.flush()


def _packer(compression: Compression, level: int, threads: int | None) -> Packer:
    if compression == "gzip":
        return GzipPacker(level, usable_threads(threads))
    return ZlibPacker(level) if compression == "zlib" else PlainPacker()


class RecordWriter(Closing):
    """Write records to one file.

    The file appears under its name when it is closed, or at the first ``flush``; until then, and
    after any error, nothing half-written bears that name. Use it as a context manager: what a
    writer that is forgotten unclosed did not flush is given up, with a warning.

    Args:
        path: Local path, URL or writable file object.
        mode: ``"w"`` replaces an existing file, ``"x"`` refuses to, ``"a"`` appends to one after
            checking every record of it.
        compression: ``"none"``, ``"gzip"`` (blocks that any gzip reader reads, and that can be
            sought and inflated in parallel) or ``"zlib"``. None means gzip for names ending
            ``.gz`` and none otherwise; appending keeps what the file has.
        level: 1 (fast) to 9 (small).
        block_size: Uncompressed bytes in a gzip block; blocks hold whole records.
        threads: Threads to compress on, by default up to 4; 1 starts none.
        fsync: Wait at ``close`` until the bytes are on the disk.

    Raises:
        FileExistsError: Mode ``"x"`` and the file exists.
        FileNotFoundError: The folder does not exist.
        CorruptRecordError: Mode ``"a"`` and the file is damaged or cut.
        UsageError: An unknown option, or one that does not fit.
    """

    def __init__(
        self,
        path: Source | IO[bytes],
        *,
        mode: Mode = "w",
        compression: str | None = None,
        level: int = DEFAULT_LEVEL,
        block_size: int = BLOCK_SIZE,
        threads: int | None = None,
        fsync: bool = False,
    ) -> None:
        self.closed = True  # until everything below succeeded
        if mode not in get_args(Mode):
            raise UsageError(f"mode must be 'x', 'w' or 'a', got {mode!r}")
        if not isinstance(block_size, int) or not 1 <= block_size <= _LARGEST_BLOCK:
            raise UsageError(
                f"block_size must be at least 1 byte and at most {_LARGEST_BLOCK}, as a whole "
                f"number; got {block_size!r}"
            )
        self.path = name_of(path)
        append_at, kind = _target(path, mode, check_choice(compression))
        self.compression: Compression = kind
        self.records = 0
        self._packer = _packer(kind, check_level(level), threads)
        self._sink = open_sink(path, append_at=append_at, exclusive=mode == "x", fsync=fsync)
        self._block_size = block_size
        self._payloads: list[bytes] = []
        self._parts: list[bytes | memoryview] = []
        self._size = self._count = 0
        self.why_closed = "writer is closed"
        self.closed = False
        at_fork(self)

    def write(self, payload: bytes | bytearray | memoryview) -> None:
        """Write one record.

        Args:
            payload: Its payload.

        Raises:
            OSError: The disk is full, or another failure; nothing is left under the name.
            UsageError: The writer is closed.
        """
        self._check_open()
        data = payload if type(payload) is bytes else _payload_bytes(payload)
        self._payloads.append(data)
        self._size += len(data) + _FRAME_BYTES
        self._count += 1
        self.records += 1
        if self._size >= self._block_size:
            self._put_block()

    def write_framed(self, data: bytes | memoryview, ends: NDArray[np.int64]) -> None:
        """Write records that are framed already.

        Args:
            data: The frames, one after the other; free to be reused after the call.
            ends: int64 (n,), the end of each record in ``data``, in bytes.

        Raises:
            OSError: As for ``write``.
            UsageError: The writer is closed, or ``ends`` does not fit ``data``.
        """
        self._check_open()
        view = memoryview(data).cast("B")
        if len(ends) == 0 or int(ends[-1]) != len(view):
            if len(ends) == 0 and len(view) == 0:
                return
            raise UsageError(f"the last record ends at {ends[-1:]}, the data at {len(view)}")
        self._fold()
        self.records += len(ends)
        done = begin = 0
        while done < len(ends):
            room = begin + max(self._block_size - self._size, 1)
            last = min(int(np.searchsorted(ends, room)), len(ends) - 1)
            stop = int(ends[last])
            self._parts.append(view[begin:stop])
            self._size += stop - begin
            self._count += last + 1 - done
            done, begin = last + 1, stop
            if self._size >= self._block_size:
                self._put_block()
        if self._parts and isinstance(self._parts[-1], memoryview):
            self._parts[-1] = bytes(self._parts[-1])  # the caller may reuse its buffer

    def _check_open(self) -> None:
        if self.closed:
            raise UsageError(f"{self.why_closed}: {self.path}")

    def _fold(self) -> None:
        """Frame the payloads gathered so far."""
        if self._payloads:
            self._parts.append(_core.frame(self._payloads))
            self._payloads = []

    def _put_block(self) -> None:
        """Hand the gathered records to the packer and write what it gives."""
        self._fold()
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        count = self._count
        self._parts, self._size, self._count = [], 0, 0
        if count:
            self._put(self._packer.pack(data, count))

    def _put(self, pieces: Iterator[bytes | memoryview] | Iterator[bytes]) -> None:
        try:
            for piece in pieces:
                self._sink.write(piece)
        except BaseException:
            self.abort()
            raise

    def flush(self) -> None:
        """Bring every record written so far to the disk, readable by others under the final name.

        Raises:
            OSError: As for ``write``.
            UsageError: zlib files and remote objects are readable only once closed.
        """
        self._check_open()
        self._put_block()
        self._put(self._packer.end_block())
        self._sink.flush()

    def close(self) -> None:
        """Complete the file; a second call does nothing.

        Raises:
            OSError: As for ``write``.
        """
        if self.closed:
            return
        self._put_block()
        self._put(self._packer.end_file())
        self.closed = True
        self._sink.finish()

    def abort(self) -> None:
        """Give up: leave nothing under the name but what an earlier ``flush`` brought there."""
        if not self.closed:
            self.closed = True
            self._payloads, self._parts = [], []
            self._sink.abort()

    def forked(self) -> None:
        """Be closed in a forked child: the file is its parent's to finish."""
        if not self.closed:
            self.closed = True
            self.why_closed = f"writer {FORKED}"
            self._payloads, self._parts = [], []
            self._sink.forked()

    def __del__(self) -> None:
        """Give up a forgotten writer, with a warning."""
        if not getattr(self, "closed", True):  # refused arguments never made one
            self.forgotten(self.path, self.records)


def _payload_bytes(payload: object) -> bytes:
    """Copy a payload; numbers and lists, which ``bytes`` takes too, are no payload."""
    try:
        return bytes(memoryview(payload))  # type: ignore[arg-type]
    except TypeError:
        text = f"a payload must be bytes, got {type(payload).__name__}"
        if isinstance(payload, Mapping):
            text += "; rows go to tfrio.Writer, one a shard (see Several shards, docs/examples.md)"
        raise UsageError(text) from None


def _target(
    path: Source | IO[bytes], mode: Mode, choice: Compression | None
) -> tuple[int | None, Compression]:
    """Return where to append (None: a new file) and the compression to write."""
    if mode == "a":
        if is_remote(path) or not isinstance(path, str | os.PathLike):
            raise UsageError(f"{name_of(path)}: only local files can be appended to")
        local = local_path(path)
        if local.exists() and local.stat().st_size:
            return local.stat().st_size, _sound_compression(path, choice)
    by_name: Compression = "gzip" if name_of(path).lower().endswith(".gz") else "none"
    return None, choice or by_name


def _sound_compression(path: Source, choice: Compression | None) -> Compression:
    """Check every record of the file to append to; return its compression."""
    with RecordStream(path, compression=choice) as stream:
        if stream.compression == "zlib":
            raise UsageError(f"{stream.path}: nothing can be appended to a zlib file; use gzip")
        for event in tally(stream):
            if isinstance(event, Damage):
                error: CorruptRecordError = event.error()
                error.message = f"cannot append: {error.message}"
                raise error
        return stream.compression

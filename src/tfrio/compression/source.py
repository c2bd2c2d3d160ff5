"""A file's uncompressed bytes in order; inflating runs ahead in the background."""

from __future__ import annotations

import os
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypeAlias

from tfrio import _core
from tfrio.compression.ahead import Ahead
from tfrio.compression.blocks import TRAILER_SIZE
from tfrio.compression.detect import HEAD_BYTES, Compression, check_choice, resolve
from tfrio.compression.inflate import Inflater, Input, Piece, block_parts
from tfrio.compression.resync import lost_block, next_block
from tfrio.errors import CompressedDataError, FileCutError, UsageError
from tfrio.storage import FORKED, at_fork, open_read, read_full
from tfrio.types import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfrio.compression.blocks import Header, Member
    from tfrio.storage import BinaryReader, Source

__all__ = ["ChunkSource", "InflateSource", "PlainSource", "open_chunks", "usable_threads"]

_Parts: TypeAlias = "list[Piece | CompressedDataError]"
_Item: TypeAlias = "Piece | Future[_Parts] | CompressedDataError | None"

_AHEAD = 16 << 20  # uncompressed bytes held at most before the consumer asks for them
_LARGEST_MEMBER = 64 << 20  # a member claiming more compressed bytes is inflated as it arrives
# Largest freed memory kept. Less than 32 MiB, beyond which glibc learns nothing.
_KEPT = 24 << 20  # more than _AHEAD
_KEPT_ALONE = 4 << 20  # on one thread: more than the compressed and the uncompressed piece at hand


class ChunkSource(Protocol):
    """The uncompressed bytes of a file, in order."""

    compression: Compression
    name: str
    size: int | None  # as stored, in bytes
    # Blocks read so far, where every member of the file is one.
    blocks: list[Member] | None

    @property
    def members(self) -> int:
        """Whole gzip members read so far (zlib: streams; plain: 0)."""
        ...

    @property
    def consumed(self) -> int:
        """Bytes of the file read so far, for progress."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the last ``readinto`` met the end, with no damage left to tell of."""
        ...

    @property
    def remaining(self) -> int | None:
        """Bytes left where that is certain: in plain local files."""
        ...

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill ``buffer`` up to its end; less only where the data ends, 0 at the end.

        Raises:
            StoredDataError: After all sound bytes before the damage were handed out. When its
                ``resumable`` is true the next call goes on with the sound records behind it.
        """
        ...

    def watch_stored(self, watcher: Callable[[bytes], None]) -> None:
        """Show the compressed bytes to ``watcher`` as they are read; nothing was read yet."""
        ...

    def let_go(self) -> None:
        """Tell threads to end, without waiting for them."""
        ...

    def close(self) -> None:
        """Release the file and threads."""
        ...


def usable_threads(threads: int | None) -> int:
    """Return how many threads to inflate on; by default at most 4 of this process's cores."""
    if threads is not None:
        return max(whole_number(threads, "threads", least=0), 1)
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(count or 1, 4)


@cache
def keep_freed_memory(nbytes: int = _KEPT) -> None:
    """Let the memory of one block serve the next, instead of going back to the kernel.

    glibc returns free memory beyond twice the largest mapping freed so far (mallopt(3),
    M_MMAP_THRESHOLD), at first 256 KiB. The kernel then clears every page of every block anew,
    which costs a fifth of the time. This frees a large mapping, none of which was touched; it
    does nothing with other allocators.

    Args:
        nbytes: Twice as many stay with the process at most.
    """
    bytes(nbytes)


class PlainSource:
    """Bytes as they are, the ones already read for detection first."""

    compression: Compression = "none"
    members = 0
    blocks: list[Member] | None = None

    def __init__(self, reader: BinaryReader, head: bytes, start: int) -> None:
        self.name = reader.name
        self._reader = reader
        self._head = memoryview(head)
        self._position = start
        self.size = reader.size
        self.ended = False
        self._size = self.size if reader.exact else None

    @property
    def consumed(self) -> int:
        """Bytes of the file read so far."""
        return self._position

    @property
    def remaining(self) -> int | None:
        """Bytes left in a local file, None elsewhere."""
        return None if self._size is None else max(self._size - self._position, 0)

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill ``buffer`` up to its end; less only at the end of the file.

        Raises:
            FileCutError: A local file ends earlier than when it was opened.
        """
        got = min(len(buffer), len(self._head))
        if got:
            buffer[:got] = self._head[:got]
            self._head = self._head[got:]
        got += read_full(self._reader, buffer[got:])
        self._position += got
        lost = got < len(buffer) and self._position < (self._size or 0)
        self.ended = got < len(buffer) and not lost
        if lost and not got:
            raise self.cut()
        return got

    def size_now(self) -> int:
        """Return the size of a local file at present, in bytes."""
        return self._reader.size or 0

    def map(self, begin: int, end: int) -> _core.FileMap:
        """Map bytes ``begin`` up to ``end`` of a local file, from which nothing was read.

        Raises:
            OSError: The system cannot.
        """
        number = self._reader.fileno()  # type: ignore[attr-defined]
        return _core.FileMap(self.name, number, begin, end - begin)

    def cut(self) -> FileCutError:
        """Return the error for a local file that lost its end while it was read."""
        now = self.size_now()
        return FileCutError(
            f"{self.name}: cut short while it was read, from {self._size} to {now} bytes",
            path=self.name,
            offset=self._position,
            field="file",
            expected=self._size,
            got=now,
        )

    def watch_stored(self, watcher: Callable[[bytes], None]) -> None:
        """Do nothing: nothing is compressed."""

    def let_go(self) -> None:
        """Do nothing: there are no threads."""

    def close(self) -> None:
        """Close the file."""
        self._reader.close()


class InflateSource:
    """The uncompressed bytes of a gzip or zlib file.

    The next pieces inflate on another thread while this one works; the blocks of a blocked file
    inflate on several. Small files start no thread.

    Args:
        reader: The compressed file, positioned behind ``head``.
        head: Its first bytes.
        kind: ``"gzip"`` or ``"zlib"``.
        threads: Threads to inflate on; 1 keeps everything on the calling thread.
    """

    remaining = None

    def __init__(self, reader: BinaryReader, head: bytes, kind: Compression, threads: int) -> None:
        self.name = reader.name
        self.size = reader.size
        self.compression: Compression = kind
        self._reader = reader
        self._inflater = Inflater(Input(reader, head, 0), kind)
        self._threads = threads
        self._piece = memoryview(b"")
        self._parts: deque[Piece | CompressedDataError] = deque()  # of the block at hand
        self._late: CompressedDataError | None = None
        self._ended = False
        self._inflated = 0
        self.blocks: list[Member] | None = []
        self._pool: ThreadPoolExecutor | None = None
        self._thread: threading.Thread | None = None
        self._ahead: Ahead[_Item] = Ahead(_AHEAD)
        self._forked = self._long = False

    @property
    def members(self) -> int:
        """Whole gzip members (or zlib streams) inflated so far."""
        return self._inflater.members + self._inflated

    @property
    def ended(self) -> bool:
        """Whether all was handed out and nothing is wrong."""
        return self._ended and self._late is None and not self._piece

    @property
    def consumed(self) -> int:
        """Compressed bytes taken so far."""
        return self._inflater.input.offset

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill ``buffer`` up to its end; less only at the end or before damage."""
        done = 0
        while done < len(buffer) and (self._piece or self._refill()):
            got = min(len(buffer) - done, len(self._piece))
            buffer[done : done + got] = self._piece[:got]
            self._piece = self._piece[got:]
            done += got
        if not done and self._late:
            error, self._late = self._late, None
            raise error
        return done

    def at_hand(self) -> int:
        """Return how many bytes lie in one piece, inflating the next one where none do.

        Returns:
            0 at the end and before damage, which ``readinto`` tells of.
        """
        return len(self._piece) if self._piece or self._refill() else 0

    def lend(self, most: int) -> memoryview:
        """Return the next bytes not copied: up to ``most`` of those at hand."""
        piece, self._piece = self._piece[:most], self._piece[most:]
        return piece

    def _refill(self) -> bool:
        """Get the next piece; an error waits until what precedes it was handed out."""
        if self._ended or self._late:
            return False
        piece: Piece | None = b""
        try:
            while piece == b"":  # a block without records
                piece = self._next_piece()
        except CompressedDataError as error:
            self._late = error
            self._ended = not error.resumable
            return False
        self._ended = piece is None
        self._piece = memoryview(piece or b"")
        return not self._ended

    def _next_piece(self) -> Piece | None:
        item: _Item = self._parts.popleft() if self._parts else self._next_item()
        if isinstance(item, Future):
            parts = item.result()
            self._inflated += not any(isinstance(part, CompressedDataError) for part in parts)
            self._parts += parts
            item = self._parts.popleft()
        if isinstance(item, CompressedDataError):
            raise item
        return item

    def _next_item(self) -> _Item:
        if self._forked:
            raise UsageError(f"{self.name}: {FORKED}")
        if self._thread is not None:
            return self._ahead.get()
        item = self._produce()[0]
        if not self._long and item is not None and self._inflater.input.peek(1):
            self._go_long()
        return item

    def _go_long(self) -> None:
        """Get ready for more than one piece."""
        self._long = True
        keep_freed_memory(_KEPT if self._threads > 1 else _KEPT_ALONE)
        if self._threads > 1:
            self._thread = threading.Thread(target=self._run, name="inflate", daemon=True)
            self._thread.start()
            at_fork(self)

    def _run(self) -> None:
        """Produce until the end, the first lasting damage, or a stop."""
        more = True
        while more and not self._ahead.stopped:
            item: _Item
            weight = 0
            try:
                item, weight = self._produce()
                more = item is not None
            except CompressedDataError as error:
                item, more = error, error.resumable
            except Exception as error:  # noqa: BLE001 - handed to the consumer, who raises it
                item, more = _failed(error), False
            self._ahead.put(item, weight)

    def _produce(self) -> tuple[_Item, int]:
        """Return the next piece, perhaps still inflating, and its size; None at the end."""
        inflater = self._inflater
        if inflater.between_members:
            header = self._header()
            if header is None:
                return None, 0
            member = self._whole_member(header)
            if member:
                return self._inflate_member(member, header)
            inflater.begin(header)
            inflater.ends = self._ends(header.member)
            self.blocks = None
        try:
            piece = inflater.piece()
        except CompressedDataError as error:
            raise self._resumable(error) from None
        return piece or None, len(piece)

    def _header(self) -> Header | None:
        """Read the header of the next member, of a later block where it is damaged."""
        while True:
            try:
                return self._inflater.header()
            except CompressedDataError as error:
                wrong = self._step_over(error)
            if wrong is not None:
                raise wrong

    def _step_over(self, error: CompressedDataError) -> CompressedDataError | None:
        """Move on to the next block where there is one, and say what is missing before it."""
        blocks, at = self.blocks, self._inflater.start
        if blocks is None:
            return self._resumable(error)
        before = at - (blocks[-1].csize if blocks else 0)
        found = self._move_on(before)
        if found is None:
            return error
        if found < at:  # the block before lost bytes, which its own checksum tells
            blocks[-1] = replace(blocks[-1], csize=found - before)
            return None
        lost = lost_block(self._reader, at, found)
        blocks.append(lost.member)
        return self._inflater.error("data", lost.text, offset=at, lost=lost.member)

    def _resumable(self, error: CompressedDataError) -> CompressedDataError:
        """Move on from a damaged member to the next block, where there is one."""
        if not error.resumable:
            error.resumable = self._move_on(self._inflater.start) is not None
        return error

    def _move_on(self, begin: int) -> int | None:
        """Continue with the first block behind an offset of a local file, and return its own."""
        found = next_block(self._reader, begin + 1) if self._reader.exact else None
        if found is not None:
            self._inflater.enter(found)
        return found

    def _whole_member(self, header: Header) -> bytes | memoryview:
        """Return the next member if it told its size and is small enough to be held."""
        told = header.member
        if told is None or told.csize > _LARGEST_MEMBER or told.usize > 4 * _LARGEST_MEMBER:
            return b""
        data = self._inflater.input.view(told.csize)
        return data if len(data) == told.csize > header.length + TRAILER_SIZE else b""

    def _ends(self, member: Member | None) -> tuple[int, int] | None:
        """Return the records and bytes up to the end of a block that is inflated as it arrives."""
        if member is None or self.blocks is None:
            return None
        told = [*self.blocks, member]
        if any(block.records < 0 for block in told):
            return None
        return sum(block.records for block in told), sum(block.usize for block in told)

    def _inflate_member(self, data: bytes | memoryview, header: Header) -> tuple[_Item, int]:
        place = self._inflater.input
        start = place.offset
        place.skip(len(data))
        if self.blocks is not None and header.member is not None:
            self.blocks.append(header.member)
        future: Future[_Parts]
        if self._thread is None:
            future = Future()
            future.set_result(block_parts(data, header, name=self.name, start=start))
        else:
            self._pool = self._pool or ThreadPoolExecutor(self._threads, "inflate")
            future = self._pool.submit(block_parts, data, header, name=self.name, start=start)
        told = header.member.usize if header.member else -1
        return future, max(told, len(data))

    def forked(self) -> None:
        """Be of no more use in a forked child, which has none of the threads."""
        self._forked = True

    def watch_stored(self, watcher: Callable[[bytes], None]) -> None:
        """Show the compressed bytes to ``watcher``, on the thread that reads them."""
        self._inflater.input.watch(watcher)

    def let_go(self) -> None:
        """Tell the threads to end, without waiting for them."""
        self._ahead.stop()

    def close(self) -> None:
        """Stop the threads and close the file."""
        self._ended = True
        if not self._forked:
            self._ahead.stop()
            if self._thread is not None:
                self._thread.join()
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
        self._reader.close()


def _failed(error: Exception) -> Future[_Parts]:
    future: Future[_Parts] = Future()
    future.set_exception(error)
    return future


def open_chunks(
    path: Source,
    compression: str | None = None,
    *,
    threads: int | None = None,
    start: int = 0,
) -> ChunkSource:
    """Open a file as a stream of uncompressed bytes.

    Args:
        path: Local path, URL or file object.
        compression: ``"none"``, ``"gzip"`` or ``"zlib"``; None goes by the content.
        threads: Threads to inflate on, by default up to 4; 1 starts none.
        start: Uncompressed offset to begin at. Plain files are sought, others inflated up to it.

    Returns:
        The source; close it.

    Raises:
        NotTFRecordError: The forced compression does not fit the content.
        UsageError: Unknown compression.
    """
    choice = check_choice(compression)
    reader = open_read(path)
    try:
        buffer = bytearray(HEAD_BYTES)
        head = bytes(buffer[: read_full(reader, memoryview(buffer))])
        kind = resolve(head, choice, reader.name)
        if kind != "none":
            source = InflateSource(reader, head, kind, usable_threads(threads))
            _discard(source, start)
            return source
        if start:
            reader.seek(start)
            head = b""
        return PlainSource(reader, head, start)
    except BaseException:
        reader.close()
        raise


def _discard(source: InflateSource, length: int) -> None:
    buffer = memoryview(bytearray(min(length, 1 << 20)))
    while length and (got := source.readinto(buffer[: min(length, len(buffer))])):
        length -= got

"""The bytes of a file that are at hand: copied into a buffer, or mapped a stretch at a time."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Protocol

from tfrio.storage import local_path, open_read

if TYPE_CHECKING:
    from pathlib import Path

    from tfrio.compression import ChunkSource

__all__ = ["BufferWindow", "MappedWindow", "Window", "open_window"]

# Mapped at once: little beside any memory limit, and enough that mapping costs nothing.
MAPPED = 16 << 20
# Below this a file is read, which takes fewer system calls than mapping it.
_WORTH_MAPPING = 1 << 20


class Window(Protocol):
    """Bytes not yet consumed, and the means to get more behind them."""

    @property
    def buffer(self) -> memoryview:
        """The bytes at hand."""
        ...

    @property
    def exhausted(self) -> bool:
        """Whether nothing follows the buffer."""
        ...

    @property
    def full(self) -> bool:
        """Whether the bytes at hand fill all the room, so that more room would be needed."""
        ...

    @property
    def unread(self) -> int:
        """Bytes that follow the buffer in a local file; 0 where this is not known."""
        ...

    @property
    def consumed(self) -> int:
        """Bytes of the stored file that were taken so far."""
        ...

    def drop(self, nbytes: int) -> None:
        """Forget bytes at the start of the buffer."""
        ...

    def pull(self) -> int:
        """Get more bytes; return how many.

        Raises:
            CompressedDataError: The data is damaged, and all before it was handed out.
        """
        ...

    def close(self) -> None:
        """Release what the window holds."""
        ...


class BufferWindow:
    """Bytes copied from a source; the buffer grows only as bytes really arrive."""

    def __init__(self, source: ChunkSource, size: int) -> None:
        self._source = source
        self._store = memoryview(bytearray(max(size, 64)))
        self._begin = self._end = 0
        self.exhausted = False

    @property
    def buffer(self) -> memoryview:
        """The bytes at hand; views of it die at the next ``pull``."""
        return self._store[self._begin : self._end]

    @property
    def full(self) -> bool:
        """Whether the buffer must grow to take more."""
        return self._end - self._begin == len(self._store)

    @property
    def unread(self) -> int:
        """Bytes left in a plain local file."""
        return self._source.remaining or 0

    @property
    def consumed(self) -> int:
        """Bytes of the stored file read so far."""
        return self._source.consumed

    def drop(self, nbytes: int) -> None:
        """Forget bytes at the start of the buffer."""
        self._begin += nbytes

    def pull(self) -> int:
        """Move what is left to the front, double the store when that fills it, and read."""
        self._make_room()
        room = self._store[self._end :]
        got = self._source.readinto(room)
        self._end += got
        self.exhausted = got < len(room) and self._source.ended
        return got

    def close(self) -> None:
        """Close the source."""
        self._source.close()

    def _make_room(self) -> None:
        pending = self._end - self._begin
        if pending == len(self._store):
            larger = memoryview(bytearray(2 * len(self._store)))
            larger[:pending] = self._store
            self._store = larger
        elif self._begin:
            self._store[:pending] = self._store[self._begin : self._end]
        self._begin, self._end = 0, pending


class MappedWindow:
    """A plain local file, mapped 16 MiB at a time: nothing is copied.

    Args:
        path: The file.
        start: Offset to begin at.
    """

    def __init__(self, path: Path, start: int) -> None:
        self._reader = open_read(path)
        self._view = memoryview(b"")
        self._begin = 0
        self._position = start  # offset in the file of the next byte not mapped

    @property
    def _size(self) -> int:
        return self._reader.size or 0

    @property
    def buffer(self) -> memoryview:
        """The bytes at hand; views of it stay valid."""
        return self._view[self._begin :]

    @property
    def exhausted(self) -> bool:
        """Whether the mapping reaches the end of the file."""
        return self._position >= self._size

    @property
    def full(self) -> bool:
        """Whether more must be mapped at once to see a whole record."""
        return self._begin < mmap.ALLOCATIONGRANULARITY

    @property
    def unread(self) -> int:
        """Bytes of the file behind the mapping."""
        return max(self._size - self._position, 0)

    @property
    def consumed(self) -> int:
        """Bytes of the file mapped so far."""
        return self._position

    def drop(self, nbytes: int) -> None:
        """Forget bytes at the start of the buffer."""
        self._begin += nbytes

    def pull(self) -> int:
        """Map from the first byte not consumed on; more at once when that brings nothing new."""
        size = self._size  # asked each time: reading past the end of a mapping kills the process
        wanted = self._position - len(self.buffer)
        first = wanted - wanted % mmap.ALLOCATIONGRANULARITY
        length = MAPPED
        while first + length <= self._position:
            length *= 2
        end = min(first + length, size)
        got = end - self._position
        if got <= 0:
            return 0
        self._view = memoryview(
            mmap.mmap(
                self._reader.fileno(),  # type: ignore[attr-defined]
                end - first,
                access=mmap.ACCESS_READ,
                offset=first,
            )
        )
        self._begin = wanted - first
        self._position = end
        return got

    def close(self) -> None:
        """Close the file; the mapping goes when its last view does."""
        self._view = memoryview(b"")
        self._begin = 0
        self._reader.close()


def open_window(source: ChunkSource, size: int, start: int) -> Window:
    """Return the quickest window over a source that was not read from yet.

    Args:
        source: The uncompressed bytes.
        size: Bytes to hold, at first, where they are copied.
        start: Uncompressed offset the source stands at.
    """
    if (source.remaining or 0) >= _WORTH_MAPPING:
        source.close()
        return MappedWindow(local_path(source.name), start)
    if source.remaining is not None:
        size = min(size, source.remaining + 1)  # one more, so that the first read meets the end
    return BufferWindow(source, size)

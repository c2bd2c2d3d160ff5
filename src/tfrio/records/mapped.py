"""A window over a plain local file that is mapped a stretch at a time: nothing is copied."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from tfrio import _core
from tfrio.compression import InflateSource, PlainSource
from tfrio.errors import IndexFileError
from tfrio.records.lent import LentWindow
from tfrio.records.window import Window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfrio.compression import ChunkSource

__all__ = ["MappedWindow", "check_maps", "open_window"]

# Mapped at once: little beside any memory limit, and enough that mapping costs nothing.
_MAPPED = 16 << 20
# Below this a file is read, which takes fewer system calls than mapping it.
_WORTH_MAPPING = 1 << 20


class MappedWindow:
    """A window like ``Window`` that shows the file's own bytes; ``check`` them after use.

    Args:
        source: A plain local file, not read from yet.
    """

    past = memoryview(b"")

    def __init__(self, source: PlainSource) -> None:
        self._source = source
        self._first = self._end = source.consumed  # offsets in the file: of the view, behind it
        self._begin = 0  # of the bytes not consumed, in the view
        self._size = self._end + (source.remaining or 0)
        self._map: _core.FileMap | None = None
        self._view = memoryview(b"")

    @property
    def buffer(self) -> memoryview:
        """The bytes at hand; views of it stay valid."""
        return self._view[self._begin :]

    @property
    def exhausted(self) -> bool:
        """Whether nothing follows the buffer."""
        return self._end >= self._size

    @property
    def full(self) -> bool:
        """Whether more must be mapped at once to take more."""
        return not self._begin

    @property
    def unread(self) -> int:
        """Bytes that follow the buffer."""
        return self._size - self._end

    @property
    def consumed(self) -> int:
        """Bytes of the file mapped so far."""
        return self._end

    def drop(self, nbytes: int) -> None:
        """Forget bytes at the start of the buffer."""
        self._begin += nbytes

    def pull(self) -> int:
        """Map from the first byte not consumed on; more at once where that brings nothing new.

        Returns:
            Bytes new at hand.

        Raises:
            FileCutError: The file is shorter than it was, and all it has left was handed out.
        """
        first, end = self._first + self._begin, self._end
        size = self._source.size_now()
        if size < end:  # the end of what is at hand is gone
            self._view = self._view[: max(size - self._first, self._begin)]
            self._end = self._first + len(self._view)
        if size <= end and size < self._size:
            raise self._source.cut()
        self._size = max(self._size, size)
        length = _MAPPED
        while first + length <= end:
            length *= 2
        self._end = max(min(first + length, size), end)
        if self._end > end:
            self._map = self._source.map(first, self._end)
            self._view = memoryview(self._map)
            self._first, self._begin = first, 0
        return self._end - end

    def check(self, nbytes: int | None = None) -> None:
        """See that bytes of the buffer that were used are the file's.

        Args:
            nbytes: How many, from its start; None for all.

        Raises:
            FileCutError: The file was cut before their end.
        """
        end = len(self._view) if nbytes is None else self._begin + nbytes
        if self._map is not None and end > self._begin and not self._map.whole(end):
            raise self._source.cut()

    def close(self) -> None:
        """Close the file; the mapping goes when its last view does."""
        self._view, self._map, self._begin = memoryview(b""), None, 0
        self._source.close()


def open_window(source: ChunkSource, size: int, *, mapped: bool) -> Window | MappedWindow:
    """Return the quickest window over a source that was not read from yet.

    Args:
        source: The uncompressed bytes.
        size: Bytes to hold, at first, where they are copied.
        mapped: Whether to map a plain local file that is worth it.
    """
    if isinstance(source, InflateSource):
        return LentWindow(source, size)
    if mapped and isinstance(source, PlainSource) and (source.remaining or 0) >= _WORTH_MAPPING:
        # There are file systems that map no files.
        with contextlib.suppress(OSError):
            source.map(source.consumed, source.consumed + 1)
            return MappedWindow(source)
    return Window(source, size)


def check_maps(buffers: Iterable[Any]) -> None:
    """See that the mapped files among some buffers were whole while they were used.

    Args:
        buffers: Of any kind.

    Raises:
        IndexFileError: A file was cut short.
    """
    for buffer in buffers:
        if isinstance(buffer, _core.FileMap) and not buffer.whole(len(buffer)):
            raise IndexFileError(f"{buffer.name} was cut short since it was opened")

"""The bytes of a file that are at hand: a buffer that slides over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfrio.compression import ChunkSource

__all__ = ["FRAME", "LENGTH", "PAST", "Window"]

# Small records are read into 1 MiB, which the second-level cache holds. Where a record takes more
# than a sixteenth of that, moving the one that crosses the end of the buffer would show: then whole
# records are read, as long as the one at hand, up to 4 MiB. Larger buffers are slower to fill: the
# kernel copies 20 GB/s into 4 MiB and 13 into 16 MiB.
_FEW, _ROOMY = 16, 4 << 20
LENGTH, _HEADER, FRAME = 8, 12, 16
PAST = 64 << 10  # twice as far as deflate copies from


class Window:
    """Bytes not yet consumed, and the means to get more behind them.

    They are copied, so that they stay as they were. The buffer grows only as bytes really arrive.

    Args:
        source: The uncompressed bytes, not read from yet.
        size: Bytes to hold, at first.
    """

    def __init__(self, source: ChunkSource, size: int) -> None:
        self._source = source
        self._whole_records = source.remaining is not None
        self._past = 0 if source.compression == "none" else PAST
        if source.remaining is not None:
            # One more than there is, so that the first read of a small file meets its end.
            size = min(size, source.remaining + 1)
        self._store = memoryview(bytearray(max(size, 64) + self._past))
        self._begin = self._end = 0
        self.exhausted = False

    @property
    def buffer(self) -> memoryview:
        """The bytes at hand; views of it die at the next ``pull``."""
        return self._store[self._begin : self._end]

    @property
    def past(self) -> memoryview:
        """Up to 64 KiB before the buffer; in compressed files all of them."""
        return self._store[max(self._begin - PAST, 0) : self._begin]

    @property
    def full(self) -> bool:
        """Whether the buffer must grow to take more."""
        return self._end - self._begin == self._size

    @property
    def _size(self) -> int:
        return len(self._store) - self._past

    @property
    def unread(self) -> int:
        """Bytes that follow the buffer in a plain local file; 0 where this is not known."""
        return self._source.remaining or 0

    @property
    def consumed(self) -> int:
        """Bytes of the stored file read so far."""
        return self._source.consumed

    def drop(self, nbytes: int) -> None:
        """Forget bytes at the start of the buffer."""
        self._begin += nbytes

    def pull(self) -> int:
        """Move what is left to the front and read behind it, into a larger buffer if need be.

        Returns:
            Bytes read.

        Raises:
            StoredDataError: The data is damaged or gone, and all before it was handed out.
        """
        pending = self._end - self._begin
        target = self._target(pending)
        self._make_room(pending, target)
        room = self._store[self._end : self._begin + target]
        got = self._source.readinto(room)
        self._end += got
        self.exhausted = got < len(room) and self._source.ended
        return got

    def check(self, nbytes: int | None = None) -> None:
        """Do nothing: what was read stays as it was."""

    def close(self) -> None:
        """Close the source."""
        self._source.close()

    def _target(self, pending: int) -> int:
        """Return how many bytes to hold after the next read."""
        size = self._size
        length = self._store[self._begin : self._begin + min(pending, LENGTH)]
        record = FRAME + int.from_bytes(length, "little")
        if pending == size:
            # Doubled as bytes really arrive, but no larger than the one record needs.
            return min(2 * size, record + _HEADER) if record > size else 2 * size
        if not self._whole_records or pending < LENGTH:
            return size
        most = max(size, _ROOMY)
        if record * _FEW < size or record + _HEADER > most:
            return size
        target = (most - _HEADER) // record * record + _HEADER  # and the header behind them
        return target if target > pending else size

    def _make_room(self, pending: int, target: int) -> None:
        """Move what is left, and what must be remembered, to the front of a buffer with room."""
        past = min(self._begin, self._past)
        left = self._store[self._begin - past : self._end]
        if target > self._size:
            self._store = memoryview(bytearray(target + self._past))
            self._store[: len(left)] = left
        elif self._begin > past:
            self._store[: len(left)] = left
        self._begin, self._end = past, past + pending

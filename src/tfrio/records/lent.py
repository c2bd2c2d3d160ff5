"""A window over compressed data that shows small records where they were inflated, not copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrio.records.window import FRAME, LENGTH, PAST, Window

if TYPE_CHECKING:
    from tfrio.compression import InflateSource

__all__ = ["LentWindow"]

# Smaller pieces, as of many short gzip members, are better gathered: each takes a step.
_WORTH_LENDING = 128 << 10
_SMALL = 64 << 10  # records up to here are put together where they lie across two pieces


class LentWindow(Window):
    """A window that copies only the records that lie across two pieces of inflated data.

    Where records are large, or much must be at hand at once, it copies all, as ``Window`` does.

    Args:
        source: The uncompressed bytes, not read from yet.
        size: Bytes to hold, at first, where they are copied.
    """

    def __init__(self, source: InflateSource, size: int) -> None:
        super().__init__(source, size)
        self._pieces = source
        self._room = len(self._store)
        self._lent = self._large = False
        self._before: list[memoryview] = []  # what was consumed before the piece at hand

    @property
    def past(self) -> memoryview:
        """Up to 64 KiB before the buffer."""
        here = super().past
        if not self._lent or len(here) == PAST:
            return here
        return memoryview(b"".join([*self._before, here]))[-PAST:]

    def pull(self) -> int:
        """Show more bytes behind what is left.

        Returns:
            Bytes new at hand.

        Raises:
            StoredDataError: The data is damaged or gone, and all before it was handed out.
        """
        left = self.buffer
        most = self._lendable(left)
        if not most:
            if self._lent:
                self._settle()
            return super().pull()
        piece = self._pieces.lend(most)
        self._remember()
        self._store = memoryview(b"".join((left, piece))) if left else piece
        self._begin, self._end, self._lent = 0, len(self._store), True
        return len(piece)

    def _lendable(self, left: memoryview) -> int:
        """Return how many bytes to show next as they lie there, 0 where it is better to copy."""
        at_hand = 0 if self._large else self._pieces.at_hand()
        if at_hand < _WORTH_LENDING or not left:
            return at_hand if at_hand >= _WORTH_LENDING else 0
        record = FRAME
        if len(left) >= LENGTH:
            record += int.from_bytes(left[:LENGTH], "little")
        self._large = record > _SMALL
        # A whole record is there already: more than one is wanted at once.
        return 0 if self._large else max(record - len(left), 0)

    def _remember(self) -> None:
        """Keep what was consumed of the bytes at hand, and drop what lies further back."""
        self._before.append(self._store[max(self._begin - PAST, 0) : self._begin])
        while sum(map(len, self._before[1:])) >= PAST:
            del self._before[0]

    def _settle(self) -> None:
        """Copy what is at hand into a buffer with room."""
        past, left = self.past, self.buffer
        begin, end = len(past), len(past) + len(left)
        store = memoryview(bytearray(max(self._room, len(left) + PAST)))
        store[:begin], store[begin:end] = past, left
        self._store, self._begin, self._end = store, begin, end
        self._lent, self._before = False, []

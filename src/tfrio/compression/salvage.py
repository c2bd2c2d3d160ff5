"""What a damaged block of gzip still holds: the records that their own checksums prove.

A block tells its size and number of records, so both ends of it are certain: records in a row from
its beginning, and records in a row up to its end where it inflates to the size it should have.
What lies between counts as lost. So each record that is found has its right number and offset.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfrio import _core
from tfrio.compression.blocks import TRAILER_SIZE
from tfrio.compression.detect import HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tfrio.compression.blocks import Member

__all__ = ["Gap", "Saved", "save_block"]

_PIECE = 4 << 10  # compressed bytes inflated at once before they are tried one by one
_REACH = 32 << 10  # how far back deflate copies from
_FOOTER = 4  # bytes of the payload's CRC


class Gap(NamedTuple):
    """Uncompressed bytes and records that are lost in a row; both may be 0 at a block's end."""

    nbytes: int
    records: int


class Saved(NamedTuple):
    """The sound records of a damaged block.

    Attributes:
        data: What inflates of the block, at most the size it should have.
        spans: int64 (n, 2): payload offset in ``data`` and length, in bytes.
        numbers: int64 (n,): number of each record in the block, ascending.
        size: Bytes of the whole block, uncompressed.
        records: Records of the whole block.
    """

    data: bytes
    spans: NDArray[np.int64]
    numbers: NDArray[np.int64]
    size: int
    records: int

    def parts(self) -> Iterator[bytes | Gap]:
        """Yield the block in order: framed sound records, and the gaps between them.

        Where all its records are sound one gap of nothing comes last: the block is damaged.
        """
        at = record = gaps = 0
        for begin, stop in self._runs():
            first = int(self.spans[begin, 0]) - HEADER_BYTES
            lost = Gap(first - at, int(self.numbers[begin]) - record)
            if any(lost):
                gaps += 1
                yield lost
            at = int(self.spans[stop - 1].sum()) + _FOOTER
            record = int(self.numbers[stop - 1]) + 1
            yield self.data[first:at]
        rest = Gap(self.size - at, self.records - record)
        if any(rest) or not gaps:
            yield rest

    def starts(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return where each record of the block begins in ``data``, and which are lost.

        Returns:
            int64 (records,), of a lost record where its gap begins, and bool (records,).
        """
        sound = np.zeros(self.records, np.bool_)
        sound[self.numbers] = True
        known = np.zeros((len(self.numbers) + 1, 2), np.int64)  # where each begins, and the next
        known[1:, 0] = self.spans[:, 0] - HEADER_BYTES
        known[1:, 1] = self.spans.sum(axis=1) + _FOOTER
        last = np.cumsum(sound)  # the last sound record at or before each, from 1
        return np.where(sound, known[last, 0], known[last, 1]), ~sound

    def _runs(self) -> Iterator[tuple[int, int]]:
        """Yield which of the sound records lie in a row, as first and behind the last."""
        breaks = (np.flatnonzero(np.diff(self.numbers) != 1) + 1).tolist()
        if len(self.numbers):
            yield from zip([0, *breaks], [*breaks, len(self.numbers)], strict=True)


def save_block(block: bytes | memoryview, header: int, told: Member) -> Saved:
    """Find the sound records of a damaged block.

    Deflate copies from what it put out before. Led astray it puts out whole records once more, and
    their CRCs hold. So a record that stands, byte for byte, also in the 64 KiB before it counts as
    lost, unless the block's own checksum holds.

    Args:
        block: The whole gzip member.
        header: Bytes of its header.
        told: Its sizes, as the header tells them.
    """
    data = _inflated(block[header:], told.usize + 1)
    fits, data = len(data) == told.usize, data[: told.usize]
    spans, numbers = _both_ends(data, told.records, fits=fits)
    if zlib.crc32(data) != int.from_bytes(block[-TRAILER_SIZE:-4], "little"):
        once = np.array([not _repeats(data, *span) for span in spans.tolist()], np.bool_)
        spans, numbers = spans[once], numbers[once]
    return Saved(data, spans, numbers, told.usize, told.records)


def _inflated(deflated: bytes | memoryview, most: int) -> bytes:
    """Inflate up to the first code that is none, or to ``most`` bytes.

    This is zlib's own inflater: that of ISA-L keeps back what a failing call inflated, and cannot
    be copied.
    """
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    done: list[bytes] = []
    for begin in range(0, len(deflated), _PIECE):
        piece = deflated[begin : begin + _PIECE]
        before = stream.copy()
        try:
            done.append(_some(stream, piece, most))
        except zlib.error:
            done += _one_by_one(before, piece, most)
            break
        most -= len(done[-1])
        if stream.eof or not most:
            break
    return b"".join(done)


def _one_by_one(stream: zlib._Decompress, piece: bytes | memoryview, most: int) -> Iterator[bytes]:
    for at in range(len(piece)):
        try:
            got = _some(stream, piece[at : at + 1], most)
        except zlib.error:
            return
        most -= len(got)
        yield got


def _some(stream: zlib._Decompress, piece: bytes | memoryview, most: int) -> bytes:
    """Inflate a piece to ``most`` bytes; none more are wanted then."""
    return stream.decompress(piece, most) if most else b""


def _both_ends(
    data: bytes, records: int, *, fits: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the spans and numbers of sound records from the beginning on and up to the end.

    Args:
        data: What inflated.
        records: How many records the block held.
        fits: Whether that is as many bytes as it held; else its end is not that of the block.
    """
    scan = _core.scan(data, 0, records, True, True)
    spans = scan.spans
    numbers = np.arange(len(spans), dtype=np.int64)
    room = records - len(spans) - 1  # at least the record at fault is lost
    if scan.fault is None or not fits or room < 1:
        return spans, numbers
    last = _last_run(data, scan.fault.offset)[-room:]
    behind = np.arange(records - len(last), records, dtype=np.int64)
    return np.concatenate((spans, last)), np.concatenate((numbers, behind))


def _last_run(data: bytes, fault: int) -> NDArray[np.int64]:
    """Return the spans of the sound records that lead from behind a fault to the very end."""
    while True:
        begin, _ = _core.find_record(data, fault + 1, True)
        if begin < 0:
            return np.empty((0, 2), np.int64)
        scan = _core.scan(data, begin, -1, True, True)
        if scan.fault is None:
            return scan.spans
        fault = scan.fault.offset


def _repeats(data: bytes, offset: int, length: int) -> bool:
    """Check whether a record stands in the 64 KiB before it, too; large ones cannot be copied."""
    begin, end = offset - HEADER_BYTES, offset + length + _FOOTER
    if end - begin > _REACH:
        return False
    return data.find(data[begin:end], max(begin - 2 * _REACH, 0), end - 1) >= 0

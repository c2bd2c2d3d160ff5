"""Entering ordinary gzip and zlib data in the middle.

Deflate data can be entered at the start of a member, or of a deflate block when the 32 KiB of
data before it are known. A block may begin at any bit; inflating begins at whole bytes. So the
bits before it are filled with empty deflate blocks, which put out nothing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from isal import igzip_lib

from tfrio import _core
from tfrio.compression.blocks import Header, parse_header
from tfrio.compression.detect import HEAD_BYTES, InflateError
from tfrio.compression.inflate import PIECE, Inflater, Input, salvage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tfrio.compression import Compression
    from tfrio.errors import CompressedDataError
    from tfrio.records.reader import RecordStream
    from tfrio.storage import BinaryReader

__all__ = ["NO_POINTS", "WINDOW", "SeekPoints", "find_points", "inflate_from"]

WINDOW = 32 << 10  # deflate looks back this far (RFC 1951)
# Uncompressed bytes between points: half of it is inflated in vain by a random read (1 ms).
SPACING = 1 << 20
MOST_POINTS = 1024  # their windows take up to 32 MiB
# Deflate blocks of usual writers take 10 to 300 KiB stored; a longer one than this is not walked.
_LONGEST_BLOCK = 64 << 20
_LARGEST_RANGE = 16 << 20  # stored bytes asked for at once

# Empty blocks as bits, first bit lowest. A fixed block: not last, type 1, end of block (7 zeros).
_FIXED = (0b0000000_01_0, 10)


def _dynamic_block() -> tuple[int, int]:
    """Return an empty dynamic block of 91 bits: an odd length, which fixed blocks lack."""
    bits = size = 0

    def put(value: int, width: int) -> None:
        """Append a value of so many bits, lowest first."""
        nonlocal bits, size
        bits |= value << size
        size += width

    put(0, 1)  # not the last block
    put(2, 2)  # dynamic
    put(0, 5)  # 257 literal and length codes
    put(0, 5)  # 1 distance code
    put(14, 4)  # 18 lengths for the code of code lengths, in the order of RFC 1951:
    for symbol in (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1):
        put(1 if symbol in (18, 1) else 0, 3)
    for zeros in (138, 117):  # symbol 18 (code 1): so many zero lengths
        put(1, 1)
        put(zeros - 11, 7)
    put(0b000, 3)  # symbol 1 (code 0) three times: literal 255, end of block, distance 0
    put(1, 1)  # end of block (code 1)
    return bits, size


def _filler(bit: int) -> tuple[int, int]:
    """Return empty blocks whose total length in bits is ``bit`` modulo 8."""
    bits, size = _dynamic_block() if bit % 2 else (0, 0)
    while size % 8 != bit:
        bits |= _FIXED[0] << size
        size += _FIXED[1]
    return bits, size


def _primed(first: int, bit: int) -> bytes:
    """Return bytes that end with the bits of ``first`` from ``bit`` on, behind empty blocks."""
    bits, size = _filler(bit)
    bits |= (first >> bit) << size
    return bits.to_bytes(size // 8 + 1, "little")


@dataclass(frozen=True, slots=True)
class SeekPoints:
    """Places to enter compressed data.

    Attributes:
        stored: int64 (m,) offsets in the file, in bits.
        data: int64 (m,) uncompressed offsets, ascending.
        windows: The data before each, up to 32 KiB; empty at the start of a member.
    """

    stored: NDArray[np.int64]
    data: NDArray[np.int64]
    windows: tuple[bytes, ...]

    def before(self, offset: int) -> int:
        """Return the number of the last point at or before an uncompressed offset, -1 for none."""
        return int(np.searchsorted(self.data, offset, "right")) - 1


@dataclass(frozen=True, slots=True)
class _Place:
    """Where data can be entered: offset in bits, uncompressed offset, whether within a member."""

    stored: int
    data: int
    inside: bool


NO_POINTS = SeekPoints(np.empty(0, np.int64), np.empty(0, np.int64), ())


class _Onward:
    """Reads on from an offset by ranges, so that several threads may share a reader.

    Args:
        reader: The file.
        at: Where to begin, in bytes.
        first: Bytes to ask for in the first range.
    """

    seekable = True

    def __init__(self, reader: BinaryReader, at: int, first: int) -> None:
        self.name = reader.name
        self._reader = reader
        self._at = at
        self._first = first

    def read(self, length: int, /) -> bytes:
        """Return the next bytes, ``b""`` at the end."""
        piece = self._reader.read_at(self._at, self._first or length)
        self._at += len(piece)
        self._first = 0
        return piece

    def seek(self, offset: int) -> None:
        """Move to an offset."""
        self._at = offset


def inflate_from(
    reader: BinaryReader, kind: Compression, points: SeekPoints, number: int, end: int = 0
) -> Iterator[bytes]:
    """Inflate from a point on.

    Args:
        reader: The compressed file.
        kind: ``"gzip"`` or ``"zlib"``.
        points: The points of the file.
        number: Which point; -1 for the start of the file.
        end: Uncompressed offset up to which data is wanted, where that is known: then one request
            fetches it.

    Yields:
        Uncompressed bytes.

    Raises:
        CompressedDataError: The data is damaged.
    """
    at, bit = divmod(int(points.stored[number]) if number >= 0 else 0, 8)
    behind = int(np.searchsorted(points.data, end))
    known = end and behind < len(points.data)
    first = min(int(points.stored[behind]) // 8 + 1 - at, _LARGEST_RANGE) if known else 0
    inflater = Inflater(Input(_Onward(reader, at, first), b"", at), kind)
    if number >= 0 and points.windows[number]:
        yield from _rest_of_member(inflater, bit, points.windows[number])
    while piece := inflater.piece():
        yield piece


def _rest_of_member(inflater: Inflater, bit: int, window: bytes) -> Iterator[bytes]:
    """Inflate from within a member to its end, and step over its trailer."""
    source = inflater.input
    begin = last_fed = source.offset
    length = 0
    try:
        stream, _ = _entered(source, bit, window)
        while not stream.eof:
            fed: bytes | memoryview = b""
            if stream.needs_input:
                last_fed = source.offset
                fed = source.take(64 << 10)
                if not fed:
                    raise _damaged(inflater, "it is cut")
            piece = stream.decompress(fed, PIECE)
            if piece:
                yield piece
            length += len(piece)
    except InflateError as error:
        damage = _damaged(inflater, str(error))
        if last_fed > begin:
            yield salvage(lambda: _entered(source.again(begin), bit, window), last_fed, length)
        raise damage from error
    source.give_back(stream.unused_data)
    inflater.skip_trailer()


def _entered(source: Input, bit: int, window: bytes) -> tuple[igzip_lib.IgzipDecompressor, Input]:
    """Return an inflater that took the first byte, too little to put any out, and the rest."""
    stream = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE, zdict=window)
    first = source.take(1)
    stream.decompress(_primed(first[0], bit) if bit and first else first, PIECE)
    return stream, source


def _damaged(inflater: Inflater, text: str) -> CompressedDataError:
    return inflater.error(
        "data", f"damaged {inflater.kind} data before byte {inflater.input.offset} ({text})"
    )


class Tap:
    """Finds places to enter compressed data while a stream reads it, and keeps what precedes each.

    ``feed`` sees the stored bytes, on whatever thread reads them, and finds the places; ``see``
    sees the uncompressed bytes, later, and gathers the data before each place.

    Args:
        kind: ``"gzip"`` or ``"zlib"``.
    """

    def __init__(self, kind: Compression) -> None:
        self._kind = kind
        self._held = b""
        self._base = 0  # offset in the file of the first byte held
        self._at = 0  # bytes held that are done with
        self._bit = 0  # where the next deflate block begins, in the byte after those
        self._skip = 0  # stored bytes to step over before the next member
        self._enough = 1  # bytes to hold before it is worth looking again
        self._inside = self._stopped = False
        self._out = self._last = 0
        self._spacing = SPACING
        self._places: deque[_Place] = deque()
        self._points: list[tuple[_Place, bytes]] = []
        self._tail = b""
        self._position = 0

    def feed(self, piece: bytes) -> None:
        """Take note of the next stored bytes."""
        if self._stopped:
            return
        self._base += self._at
        self._held, self._at = self._held[self._at :] + piece, 0
        while len(self._held) - self._at >= self._enough and self._step():
            pass
        if len(self._held) - self._at > _LONGEST_BLOCK:
            self.stop()

    def stop(self) -> None:
        """Look no further; the points found so far stay."""
        self._stopped, self._held, self._at, self._enough = True, b"", 0, 1

    def _step(self) -> bool:
        """Look at what is held; return whether to look at the rest of it, too."""
        if self._inside:
            return self._walk_blocks()
        taken = min(self._skip, len(self._held) - self._at)
        self._at += taken
        self._skip -= taken
        return self._at < len(self._held) and self._enter_member()

    def _enter_member(self) -> bool:
        """Step over the header of a member, or over the whole of one that tells its sizes."""
        try:
            header = self._header()
        except ValueError:
            self.stop()
            return False
        held = len(self._held) - self._at
        if header is None or held < header.length:
            self._enough = held + 1
            return False
        self._note((self._base + self._at) * 8, self._out, inside=False)
        member = header.member
        if member is not None and member.usize >= 0:
            self._skip = member.csize
            self._out += member.usize
        else:
            self._at += header.length
            self._inside = True
        self._enough = 1
        return True

    def _header(self) -> Header | None:
        """Read the header of a member; None where what is held does not reach so far."""
        if self._kind == "zlib":
            if self._out:
                raise ValueError("a second zlib stream")
            return Header(2, None)
        head = self._held[self._at : self._at + HEAD_BYTES]
        return parse_header(head) or parse_header(self._held[self._at : self._at + (1 << 17)])

    def _walk_blocks(self) -> bool:
        """Step over the deflate blocks that are whole."""
        begin = self._at * 8 + self._bit
        walk = _core.walk_deflate(self._held, begin, 1)
        base = self._base * 8
        for bit, out in walk.points.tolist():
            self._note(base + bit, self._out + out, inside=True)
        self._out += walk.out
        if walk.ended:
            self._at = (walk.bit + 7) // 8
            self._skip = 8 if self._kind == "gzip" else 4  # the trailer
            self._inside, self._bit, self._enough = False, 0, 1
            return True
        if walk.out:
            self._note(base + walk.bit, self._out, inside=True)
        self._at, self._bit = divmod(walk.bit, 8)
        held = len(self._held) - self._at
        # A block longer than what is held is walked again only when there is twice as much.
        self._enough = held + 1 if walk.bit > begin else 2 * held
        return False

    def _note(self, stored: int, data: int, *, inside: bool) -> None:
        if data - self._last >= self._spacing:
            self._places.append(_Place(stored, data, inside))
            self._last = data

    def see(self, piece: memoryview) -> None:
        """Take note of the next uncompressed bytes."""
        end = self._position + len(piece)
        while self._places and self._places[0].data <= end:
            place = self._places.popleft()
            at = place.data - self._position
            here = bytes(piece[max(at - WINDOW, 0) : max(at, 0)])
            before = self._tail[: len(self._tail) + min(at, 0)] + here
            window = before[-WINDOW:] if place.inside else b""
            if not place.inside or len(window) == min(WINDOW, place.data):
                self._points.append((place, window))
        if len(self._points) > MOST_POINTS:
            self._points = self._points[1::2]
            self._spacing *= 2
        self._tail = (self._tail + bytes(piece[-WINDOW:]))[-WINDOW:]
        self._position = end

    def points(self) -> SeekPoints:
        """Return the points passed so far."""
        table = np.array([(p.stored, p.data) for p, _ in self._points], np.int64).reshape(-1, 2)
        windows = tuple(window for _, window in self._points)
        return SeekPoints(table[:, 0].copy(), table[:, 1].copy(), windows)


def find_points(stream: RecordStream) -> Tap:
    """Look for places to enter the data of a stream while it is read.

    Args:
        stream: A stream not read from yet, of a local file, a URL or a file object.

    Returns:
        The tap; ask it for the points when the stream was read to its end.
    """
    tap = Tap(stream.compression)
    if stream.compression != "none":
        stream.watch(tap.see, stored=tap.feed)
    return tap

"""Entering ordinary gzip and zlib data in the middle.

Deflate data can be entered at the start of a member, or of a deflate block when the 32 KiB of
data before it are known. A block may begin at any bit; inflating begins at whole bytes. So the
bits before it are filled with empty deflate blocks, which put out nothing.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import numpy as np
from isal import igzip_lib

from tfrio import _core
from tfrio.compression.blocks import member_at, parse_header
from tfrio.compression.detect import InflateError
from tfrio.compression.inflate import PIECE, Inflater, Input
from tfrio.storage import is_regular, local_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tfrio.compression import Compression
    from tfrio.errors import CompressedDataError
    from tfrio.records.reader import RecordStream
    from tfrio.storage import BinaryReader, Source

__all__ = ["NO_POINTS", "WINDOW", "SeekPoints", "find_points", "inflate_from"]

WINDOW = 32 << 10  # deflate looks back this far (RFC 1951)
# Uncompressed bytes between points: half of it is inflated in vain by a random read (1 ms).
SPACING = 1 << 20
MOST_POINTS = 1024  # their windows take up to 32 MiB

# Empty blocks as bits, first bit lowest. A fixed block: not last, type 1, end of block (7 zeros).
_FIXED = (0b0000000_01_0, 10)


def _dynamic_block() -> tuple[int, int]:
    """Return an empty dynamic block of 91 bits: an odd length, which fixed blocks lack."""
    bits = size = 0

    def put(value: int, width: int) -> None:
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


NO_POINTS = SeekPoints(np.empty(0, np.int64), np.empty(0, np.int64), ())


def inflate_from(
    reader: BinaryReader, kind: Compression, points: SeekPoints, number: int
) -> Iterator[bytes]:
    """Inflate from a point on.

    Args:
        reader: The compressed file.
        kind: ``"gzip"`` or ``"zlib"``.
        points: The points of the file.
        number: Which point; -1 for the start of the file.

    Yields:
        Uncompressed bytes.

    Raises:
        CompressedDataError: The data is damaged.
    """
    at, bit = divmod(int(points.stored[number]) if number >= 0 else 0, 8)
    reader.seek(at)
    inflater = Inflater(Input(reader, b"", at), kind)
    if number >= 0 and points.windows[number]:
        yield from _rest_of_member(inflater, bit, points.windows[number])
    while piece := inflater.piece():
        yield piece


def _rest_of_member(inflater: Inflater, bit: int, window: bytes) -> Iterator[bytes]:
    """Inflate from within a member to its end, and step over its trailer."""
    stream = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE, zdict=window)
    source = inflater.input
    fed: bytes | memoryview = source.take(1)
    fed = _primed(fed[0], bit) if bit and fed else fed
    while not stream.eof:
        try:
            piece = stream.decompress(fed, PIECE)
        except InflateError as error:
            raise _damaged(inflater, str(error)) from error
        if piece:
            yield piece
        fed = source.take(64 << 10) if stream.needs_input and not stream.eof else b""
        if stream.needs_input and not stream.eof and not fed:
            raise _damaged(inflater, "it is cut")
    source.give_back(len(stream.unused_data))
    inflater.skip_trailer()


def _damaged(inflater: Inflater, text: str) -> CompressedDataError:
    return inflater.error(
        "data", f"damaged {inflater.kind} data before byte {inflater.input.offset} ({text})"
    )


class Tap:
    """Gathers the windows of chosen points while the data streams past."""

    def __init__(self, table: NDArray[np.int64]) -> None:
        self._stored = table[:, 0].copy()
        self._data = table[:, 1].copy()
        self._inside = table[:, 2].tolist()
        self._windows: list[bytes] = []
        self._tail = b""
        self._position = 0

    def see(self, piece: memoryview) -> None:
        """Take note of the next uncompressed bytes."""
        end = self._position + len(piece)
        while len(self._windows) < len(self._data) and self._data[len(self._windows)] <= end:
            number = len(self._windows)
            inside = int(self._data[number]) - self._position
            window = self._tail + bytes(piece[max(inside - WINDOW, 0) : inside])
            self._windows.append(window[-WINDOW:] if self._inside[number] else b"")
        kept = bytes(piece[-WINDOW:])
        self._tail = (self._tail + kept)[-WINDOW:]
        self._position = end

    def points(self) -> SeekPoints:
        """Return the points passed so far."""
        passed = len(self._windows)
        return SeekPoints(self._stored[:passed], self._data[:passed], tuple(self._windows))


def find_points(path: Source, stream: RecordStream) -> Tap:
    """Look for places to enter the data of ``stream``, whose windows are gathered as it is read.

    Args:
        path: The file. Only local files are looked at: the whole of it is mapped.
        stream: A stream over it, not read from yet.

    Returns:
        The tap; ask it for the points when the stream was read to its end.
    """
    points: list[tuple[int, int, int]] = []
    if is_regular(path) and stream.compression != "none":
        with local_path(stream.path).open("rb") as file, _mapping(file) as data:
            first = member_at(data[:64])
            if first is None or first.records < 0:  # our own blocks need no points
                points = _walk_members(data, stream.compression)
    step = -(-len(points) // MOST_POINTS) if points else 1
    table = np.array(points[::step], np.int64).reshape(-1, 3)
    tap = Tap(table)
    if points:
        stream.watch(tap.see)
    return tap


def _mapping(file: IO[bytes]) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _walk_members(data: mmap.mmap, kind: Compression) -> list[tuple[int, int, int]]:
    """Return places to enter, up to the end or to damage.

    Each is its offset in bits, its uncompressed offset, and whether it lies within a member. The
    start of the file is left out, as it needs no point.
    """
    at = out = last = 0
    points: list[tuple[int, int, int]] = []
    while at < len(data):
        length = _header_length(data, at, kind)
        if not length:
            break
        if out - last >= SPACING:
            points.append((at * 8, out, 0))
            last = out
        walk = _core.walk_deflate(data, (at + length) * 8, SPACING)
        points += [(bit, out + inside, 1) for bit, inside in walk.points.tolist()]
        if not walk.ended:
            break
        last = points[-1][1] if points else 0
        out += walk.out
        at = (walk.bit + 7) // 8 + (8 if kind == "gzip" else 4)
        if kind == "zlib":
            break
    return points


def _header_length(data: mmap.mmap, at: int, kind: Compression) -> int:
    """Return the length of the header at ``at``, 0 where there is none."""
    if kind == "zlib":
        return 2
    try:
        header = parse_header(data[at : at + 512]) or parse_header(data[at : at + (1 << 17)])
    except ValueError:
        return 0
    return header.length if header else 0

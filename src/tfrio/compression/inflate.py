"""Inflating gzip members and zlib streams, each checked to its last byte.

Streams of any length go through ISA-L, piece by piece. Blocks, which tell their size, go through
libdeflate, which is the fastest at whole buffers and cannot stream.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Protocol, TypeAlias

from deflate import DeflateError, gzip_decompress
from isal import igzip_lib

from tfrio.compression.blocks import Header, parse_header
from tfrio.compression.detect import HEAD_BYTES, Compression, InflateError
from tfrio.compression.salvage import Gap, save_block
from tfrio.errors import CompressedDataError, many

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfrio.compression.blocks import Member

__all__ = ["Inflater", "Input", "Piece", "block_parts", "inflate_block", "salvage"]

Piece: TypeAlias = "bytes | bytearray"

PIECE = 256 << 10  # inflated at once where little is wanted
_LONG_PIECE = 1 << 20  # inflated at once where all is: 3 % faster than by 256 KiB
_FEED = 256 << 10  # compressed bytes given to the inflater at once
_FIRST_FEED = 4 << 10
_STEP = 2 << 10  # the same where the place of damage is looked for
_READ = 1 << 20  # compressed bytes read at once
_MOST_TIMES = 1032  # what deflate can expand to: 258 bytes take at least 2 bits


class Forward(Protocol):
    """What compressed bytes are read from: a ``BinaryReader``, or a part of one."""

    name: str
    seekable: bool

    def read(self, length: int, /) -> bytes:
        """Return the next bytes, ``b""`` at the end."""
        ...

    def seek(self, offset: int) -> None:
        """Continue at ``offset``."""
        ...


class Input:
    """Compressed bytes with their offset in the file and the means to look ahead."""

    def __init__(self, reader: Forward, head: bytes, start: int) -> None:
        self.reader = reader
        self._watcher: Callable[[bytes], None] | None = None
        self._data = head
        self._at = 0
        self._base = start

    def again(self, start: int) -> Input:
        """Return the compressed bytes from an offset on, read anew; these end here."""
        self.reader.seek(start)
        return Input(self.reader, b"", start)

    @property
    def offset(self) -> int:
        """Offset in the file of the next byte."""
        return self._base + self._at

    def peek(self, length: int) -> bytes:
        """Return the next ``length`` bytes, fewer at the end."""
        return bytes(self.view(length))

    def view(self, length: int) -> memoryview:
        """Return what ``peek`` does, not copied; memory grows as bytes arrive."""
        while len(self._data) - self._at < length:
            more = self.reader.read(_READ)
            if not more:
                break
            if self._watcher is not None:
                self._watcher(more)
            self._base += self._at
            self._data = self._data[self._at :] + more if self._at < len(self._data) else more
            self._at = 0
        return memoryview(self._data)[self._at : self._at + length]

    def watch(self, watcher: Callable[[bytes], None]) -> None:
        """Show what is at hand, and all that is read from now on, to ``watcher``."""
        self._watcher = watcher
        watcher(self._data[self._at :])

    def take(self, length: int) -> memoryview:
        """Return up to ``length`` bytes that are at hand, ``b""`` at the end, and move on."""
        if self._at == len(self._data):
            self.peek(1)
        piece = memoryview(self._data)[self._at : self._at + length]
        self._at += len(piece)
        return piece

    def skip(self, length: int) -> None:
        """Step over bytes that ``peek`` showed."""
        self._at += length

    def give_back(self, taken: bytes) -> None:
        """Put back the last bytes taken, of whichever call."""
        if len(taken) <= self._at:
            self._at -= len(taken)
        else:  # the first of them are no longer at hand
            self._base = self.offset - len(taken)
            self._data, self._at = taken + self._data[self._at :], 0


class Inflater:
    """One gzip member or zlib stream after the other, from an ``Input``.

    Args:
        source: Where compressed bytes come from.
        kind: ``"gzip"`` or ``"zlib"``.
    """

    def __init__(self, source: Input, kind: Compression) -> None:
        self.input = source
        self.kind = kind
        self.members = 0
        self._number = 0  # of the member at hand, from 1
        #: Records and uncompressed bytes of the file up to the end of this member, where known.
        self.ends: tuple[int, int] | None = None
        self._stream: igzip_lib.IgzipDecompressor | None = None
        self._broken: CompressedDataError | None = None
        #: Where the member at hand begins in the file.
        self.start = 0
        self._first = self._last_fed = 0
        self._length = 0
        self._feed = _FIRST_FEED

    def error(
        self, code: str, text: str, *, offset: int | None = None, lost: Member | None = None
    ) -> CompressedDataError:
        """Build the one error for damaged compressed data.

        Args:
            code: What kind of damage it is.
            text: The sentence, without the file's name.
            offset: Where, if not at the next byte.
            lost: Sizes of what is missing before the next byte, where reading can go on there.
        """
        name = self.input.reader.name
        at = self.input.offset if offset is None else offset
        error = CompressedDataError(
            f"{name}: {text}", path=name, offset=at, field=self.kind, code=code
        )
        error.ends = self.ends
        if lost is not None:
            error.expected, error.got, error.resumable = lost.usize, lost.records, True
        return error

    def where(self) -> str:
        """Say which member this is."""
        if self.kind == "zlib":
            return "the zlib stream"
        return f"gzip member {self._number}, which begins at byte {self.start}"

    def header(self) -> Header | None:
        """Read the header of the next member; None at the end of the data."""
        self.start = self.input.offset
        head = self.input.peek(HEAD_BYTES)
        if not head:
            return None
        self._number += 1
        if self.kind == "zlib":
            return self._zlib_header(head)
        try:
            header = parse_header(head)
            if header is None:  # file name or comment longer than usual
                header = parse_header(self.input.peek(1 << 17))
        except ValueError:
            raise self._tail(head) from None
        if header is None:
            raise self._cut()
        return header

    def _zlib_header(self, head: bytes) -> Header:
        if self.members:
            raise self._tail(head)
        return Header(2, None)

    def _tail(self, head: bytes) -> CompressedDataError:
        what = "zero bytes" if not head.strip(b"\0") else f"bytes that are not {self.kind}"
        after = f"after {self.members} whole {self.kind} member{'s' if self.members != 1 else ''}"
        return self.error(
            "tail",
            f"{what} {after} at compressed byte {self.start}: a padded, joined or overwritten "
            "file? What lies before them is whole",
        )

    def _cut(self) -> CompressedDataError:
        return self.error(
            "cut",
            f"{self.kind} data cut at compressed byte {self.input.offset} in {self.where()}: "
            "the file was not written or copied to its end",
        )

    def enter(self, start: int) -> None:
        """Go on with the member at an offset of the file, whatever became of the one at hand."""
        self.input = self.input.again(start)
        self._stream = self._broken = self.ends = None

    def begin(self, header: Header) -> None:
        """Start to inflate the member whose header was read."""
        self.input.skip(header.length)
        self._first = self.input.offset
        self._stream = self._new_stream()
        self._length = 0
        self._feed = _FIRST_FEED

    def _new_stream(self) -> igzip_lib.IgzipDecompressor:
        gzip = self.kind == "gzip"
        flag = igzip_lib.DECOMP_GZIP_NO_HDR if gzip else igzip_lib.DECOMP_ZLIB_NO_HDR
        return igzip_lib.IgzipDecompressor(flag=flag)

    def skip_trailer(self) -> None:
        """Step over the trailer of a member that was entered in its middle."""
        self.input.skip(len(self.input.peek(8 if self.kind == "gzip" else 4)))
        self.members += 1
        self._number += 1

    def piece(self) -> bytes:
        """Return the next piece of uncompressed bytes, ``b""`` at the end."""
        while True:
            if self._broken is not None:
                raise self._broken
            if self._stream is not None and self._stream.eof:
                self._finish(self._stream.crc)
            if self._stream is None:
                header = self.header()
                if header is None:
                    return b""
                self.begin(header)
            piece = self._inflate()
            if piece:
                return piece

    @property
    def between_members(self) -> bool:
        """Whether the next byte of the file is the first of a member, as far as is known."""
        return self._stream is None

    def _inflate(self) -> bytes:
        stream = self._stream
        assert stream is not None
        fed: bytes | memoryview = b""
        if stream.needs_input and not stream.eof:
            # Little at first: what a short member does not use is copied and given back.
            self._last_fed = self.input.offset
            fed = self.input.take(self._feed)
            self._feed = min(self._feed * 2, _FEED)
            if not fed:
                raise self._cut()
        try:
            piece: bytes = stream.decompress(fed, _LONG_PIECE)
        except InflateError as error:
            self._broken = self._damaged(error)
            return self._rescue()
        self._length += len(piece)
        if stream.eof:
            self.input.give_back(stream.unused_data)
        return piece

    def _rescue(self) -> bytes:
        """Inflate a damaged member again, to save what the failing call kept to itself.

        Returns:
            The sound bytes behind those already handed out.
        """
        if not self.input.reader.seekable:
            return b""

        def start() -> tuple[igzip_lib.IgzipDecompressor, Input]:
            """Begin the member again."""
            return self._new_stream(), self.input.again(self._first)

        return salvage(start, self._last_fed, self._length)

    def _damaged(self, error: Exception) -> CompressedDataError:
        return self.error(
            "data",
            f"damaged {self.kind} data before compressed byte {self.input.offset} in "
            f"{self.where()} ({_reason(error)})",
        )

    def _finish(self, crc: int) -> None:
        """Compare the trailer with what was inflated."""
        want = 8 if self.kind == "gzip" else 4
        trailer = self.input.peek(want)
        if len(trailer) < want:
            raise self._cut()
        if self.kind == "gzip":
            stored, length = struct.unpack("<II", trailer)
        else:
            stored, length = struct.unpack(">I", trailer)[0], self._length & 0xFFFFFFFF
        fits = length == self._length & 0xFFFFFFFF
        wrong = self._mismatch(stored, length, crc) if stored != crc or not fits else None
        self.input.skip(want)
        self._stream = self.ends = None
        if wrong is not None:
            # Records come with checksums of their own: where no byte is missing, no record is.
            wrong.got = 0 if fits else None
            wrong.resumable = bool(self.kind == "gzip" and self.input.peek(1))
            raise wrong
        self.members += 1

    def _mismatch(self, stored: int, length: int, crc: int) -> CompressedDataError:
        return self.error(
            "checksum",
            f"{self.kind} checksum mismatch at compressed byte {self.input.offset} in "
            f"{self.where()}: stored {stored:08x} over {length} bytes, computed {crc:08x} "
            f"over {self._length}",
        )


def salvage(
    start: Callable[[], tuple[igzip_lib.IgzipDecompressor, Input]], last_fed: int, length: int
) -> bytes:
    """Inflate damaged data again, to save what a failing call kept to itself.

    Up to the input of that call it goes as before, then by small steps to the one that fails, and
    that one byte by byte: bytes alone take 1 s for what is fed at once.

    Args:
        start: Returns a new inflater, and the compressed data from where it begins.
        last_fed: Offset in the file of the input of the failing call.
        length: Bytes inflated before that call.

    Returns:
        The sound bytes behind those.
    """
    saved = b""
    for step in (_STEP, 1):
        stream, source = start()
        saved, passed = b"", 0
        try:
            while fed := source.take(min(_FEED, max(last_fed - source.offset, step))):
                last_fed = max(last_fed, source.offset - len(fed))
                while fed or not (stream.needs_input or stream.eof):
                    piece = stream.decompress(fed, PIECE)
                    saved += piece[max(length - passed, 0) :]
                    passed += len(piece)
                    fed = memoryview(b"")
        except InflateError:
            continue
    return saved


def inflate_block(data: bytes | memoryview, header: Header, *, name: str, start: int) -> Piece:
    """Inflate one whole gzip member that told its size.

    Args:
        data: The member, header and trailer included.
        header: Its parsed header.
        name: The file, for errors.
        start: Offset of the member in the file.

    Returns:
        The uncompressed bytes.

    Raises:
        CompressedDataError: Damaged; ``resumable``, as the next block's place is known.
    """
    told = header.told
    size = told.usize if told else int.from_bytes(data[-4:], "little")
    try:
        return _whole(data, size)
    except ValueError as error:
        raise CompressedDataError(
            f"{name}: {error} in the gzip block at compressed bytes {start} to {start + len(data)}",
            path=name,
            offset=start,
            field="gzip",
            code="data",
            resumable=True,
        ) from None


def block_parts(
    data: bytes | memoryview, header: Header, *, name: str, start: int
) -> list[Piece | CompressedDataError]:
    """Inflate a member like ``inflate_block``; of a damaged one give what is sound, in order.

    Returns:
        One piece. Of a damaged member pieces of whole sound records, and an error for each gap
        between them, which tells its bytes and records as ``expected`` and ``got``.
    """
    try:
        return [inflate_block(data, header, name=name, start=start)]
    except CompressedDataError as error:
        told = header.told
        if told is None:
            return [error]
        parts = save_block(data, header.length, told).parts()
        return [_lost(error, told, p) if isinstance(p, Gap) else p for p in parts]


def _lost(error: CompressedDataError, told: Member, gap: Gap) -> CompressedDataError:
    """Return the error for a gap between the sound records of a damaged block."""
    verb = "are" if gap.records > 1 else "is"
    lost = f"{gap.records or 'none'} of its {told.records} {many(told.records, 'record')} {verb}"
    if gap.records == 1 == told.records:
        lost = "its only record is"
    return CompressedDataError(
        f"{error.message}: {lost} lost here",
        path=error.path,
        offset=error.offset,
        field=error.field,
        expected=gap.nbytes,
        got=gap.records,
        code=error.code,
        resumable=True,
    )


def _whole(data: bytes | memoryview, size: int) -> Piece:
    """Inflate a gzip member to ``size`` bytes, or raise ValueError with what is wrong."""
    if size > _MOST_TIMES * len(data):
        raise ValueError(f"{size} bytes claimed of {len(data)} compressed ones")
    try:
        piece: Piece = gzip_decompress(data, max(size, 1))
    except DeflateError:
        piece = _slowly(data, size)
    if len(piece) != size:
        raise ValueError(f"{len(piece)} bytes inflated where {size} should be")
    return piece


def _reason(error: Exception) -> str:
    """Say what ISA-L dislikes, without the number of its error."""
    text = re.sub(r"^Error -?\d+ ", "", str(error))
    return "its checksum does not match" if text == "Incorrect checksum found" else text


def _slowly(data: bytes | memoryview, size: int) -> bytes:
    """Inflate with ISA-L, which says what it dislikes; at most one byte more than ``size``."""
    stream = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    try:
        piece: bytes = stream.decompress(data, size + 1)
    except InflateError as error:
        raise ValueError(f"damaged gzip data ({_reason(error)})") from None
    if not stream.eof and len(piece) <= size:
        raise ValueError(f"damaged gzip data (no end after {len(piece)} bytes)")
    return piece

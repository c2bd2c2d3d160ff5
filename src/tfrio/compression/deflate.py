"""Writing gzip blocks and zlib streams."""

from __future__ import annotations

import struct
import zlib
from typing import Protocol

from isal import isal_zlib

from tfrio.compression.blocks import HEADER_SIZE, TRAILER_SIZE, block_header
from tfrio.errors import UsageError

__all__ = ["DEFAULT_LEVEL", "Compressor", "check_level", "deflate_member", "zlib_compressor"]

# Levels 1 to 3 are ISA-L's, 4 to 9 zlib's own.
DEFAULT_LEVEL = 2
_LAST_FAST = 3
_RAW, _ZLIB = -15, 15  # window bits: raw deflate, zlib container

# Bytes from which the speed of ISA-L matters; smaller blocks go through zlib.
_FAST_FROM = 1 << 16


class Compressor(Protocol):
    """A streaming compressor."""

    def compress(self, data: bytes, /) -> bytes:
        """Take data, return what is ready."""
        ...

    def flush(self) -> bytes:
        """Return the rest."""
        ...


def check_level(level: int) -> int:
    """Check a compression level: 1 to 3 fast (ISA-L), 4 to 9 small (zlib).

    Raises:
        UsageError: Out of range.
    """
    if not isinstance(level, int) or not 1 <= level <= 9:
        raise UsageError(
            f"compression level must be 1 to 9 (1 to 3 fast, 4 to 9 small and slow), got {level!r}"
        )
    return level


def _raw_deflate(data: bytes, level: int) -> bytes:
    # ISA-L (isal 1.9) may compress a few bytes differently depending on what the memory it uses
    # held before, least through its stream interface; blocks too small to gain go through zlib.
    small = len(data) < _FAST_FROM
    make = zlib.compressobj if small or level > _LAST_FAST else isal_zlib.compressobj
    compressor: Compressor = make(level, zlib.DEFLATED, _RAW)
    return compressor.compress(data) + compressor.flush()


def deflate_member(data: bytes, records: int, *, level: int = DEFAULT_LEVEL) -> bytes:
    """Compress whole records to one gzip member that tells its size.

    Args:
        data: Framed records.
        records: How many they are.
        level: 1 to 9, see ``check_level``.

    Returns:
        The member; the same bytes for the same input, save for what ``_raw_deflate`` says.
    """
    body = _raw_deflate(data, level)
    csize = HEADER_SIZE + len(body) + TRAILER_SIZE
    trailer = struct.pack("<II", isal_zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return b"".join((block_header(csize, len(data), records), body, trailer))


def zlib_compressor(level: int = DEFAULT_LEVEL) -> Compressor:
    """Return a streaming zlib compressor."""
    if level <= _LAST_FAST:
        fast: Compressor = isal_zlib.compressobj(level, isal_zlib.DEFLATED, _ZLIB)
        return fast
    return zlib.compressobj(level, zlib.DEFLATED, _ZLIB)

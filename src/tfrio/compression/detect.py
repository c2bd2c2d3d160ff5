"""Tell plain, gzip and zlib apart by their first bytes, never by a name."""

from __future__ import annotations

import struct
from typing import Literal, TypeAlias, cast, get_args

from isal import igzip_lib

from tfrio import _core
from tfrio.errors import NotTFRecordError, UsageError

__all__ = ["HEAD_BYTES", "Compression", "check_choice", "detect", "header_length"]

Compression: TypeAlias = Literal["none", "gzip", "zlib"]

GZIP_MAGIC = b"\x1f\x8b"
# The stub of isal declares an instance where there is a class.
InflateError: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]
HEADER_BYTES = 12  # a record's length (8) and the CRC of the length (4)
# Enough for a record header behind any compression, and for `records.sniff` to name a stranger.
HEAD_BYTES = 1024


def check_choice(value: str | None) -> Compression | None:
    """Check a compression given by a user; None means by content (or by name, when writing).

    Raises:
        UsageError: Not one of the allowed values.
    """
    if value is None:
        return None
    lower = str(value).lower()
    if lower not in get_args(Compression):
        allowed = ", ".join(repr(v) for v in get_args(Compression))
        raise UsageError(f"unknown compression {value!r}; use one of {allowed}, or None")
    return cast("Compression", lower)


def header_length(head: bytes) -> int | None:
    """Return the payload length when ``head`` starts with a valid record header, else None."""
    if len(head) < HEADER_BYTES:
        return None
    length, crc = struct.unpack_from("<QI", head)
    return int(length) if _core.masked_crc32c(head[:8]) == crc else None


def _is_zlib(head: bytes) -> bool:
    """Check a zlib header (RFC 1950, section 2.2) and that what follows inflates."""
    if len(head) < 2 or head[0] & 0x0F != 8 or head[0] >> 4 > 7:
        return False
    if (head[0] << 8 | head[1]) % 31:
        return False
    # A little at a time: damage may follow soon, and ISA-L decodes far ahead of what it gives.
    inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_ZLIB)
    given = b""
    try:
        for begin in range(0, len(head), 32):
            if not inflater.eof:
                given += inflater.decompress(head[begin : begin + 32])
    except InflateError:
        return len(given) >= HEADER_BYTES
    return len(given) >= HEADER_BYTES or inflater.eof or len(head) < 64


def detect(head: bytes) -> Compression:
    """Tell the compression of a file from its first bytes.

    Args:
        head: The first bytes, ``HEAD_BYTES`` or the whole file when shorter.

    Returns:
        ``"none"`` for everything that is neither gzip nor zlib, be it TFRecord or not.
    """
    if header_length(head) is not None:
        return "none"
    if head.startswith(GZIP_MAGIC):
        return "gzip"
    return "zlib" if _is_zlib(head) else "none"


_LOOKS = {
    "none": "looks like plain TFRecord",
    "gzip": "this file is gzip (magic 1f 8b)",
    "zlib": "this file is zlib (header {:02x} {:02x})",
}


def resolve(head: bytes, choice: Compression | None, name: str) -> Compression:
    """Return the compression to read with; a forced one must fit the content.

    Raises:
        NotTFRecordError: ``choice`` was forced and the content is something else.
    """
    found = detect(head)
    if choice is None or choice == found or len(head) < len(GZIP_MAGIC):
        return choice or found
    look = _LOOKS[found].format(*head[:2])
    if found == "none" and header_length(head) is None:
        look = "its first bytes are " + head[:8].hex(" ")
    claim = f"not {choice}; " if choice != "none" else ""
    raise NotTFRecordError(
        f"{name}: {claim}{look}, but compression={choice!r} was forced; "
        "leave compression out to go by the content",
        path=name,
    )

"""What bytes say of the image they are, or were before text types changed them. Pure."""

from __future__ import annotations

import ast
import base64
import binascii
import re
from typing import TYPE_CHECKING, Final

from tfrio.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["IMAGE_STARTS", "image_format", "image_size", "mangled_text", "unmangle"]

# First bytes of the image formats met in TFRecord files.
_MAGIC: Final = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"GIF8": "GIF",
    b"BM": "BMP",
    b"II*\x00": "TIFF",
    b"MM\x00*": "TIFF",
}
# A BMP file begins with 14 bytes of header and 12 or more of another; two letters are no proof.
_LEAST_BMP: Final = 26
# Windows' code page 1252 has other characters than Latin-1 for most bytes from 80 to 9f.
_CP1252: Final = {
    ord(bytes([byte]).decode("cp1252")): byte
    for byte in range(0x80, 0xA0)
    if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)  # which it leaves undefined
}
_LOST: Final = "\ufffd".encode()  # what takes the place of bytes that are no text
# The start of each image format after each of the ways through a text type.
_MANGLED: Final = {
    start: f"{way} {name}"
    for magic, name in _MAGIC.items()
    if name in ("JPEG", "PNG")
    for way, start in (
        ("UTF-8-encoded", magic.decode("latin-1").encode()),
        ("UTF-8-encoded", magic.decode("cp1252").encode()),
        ("base64-encoded", base64.b64encode(magic[: len(magic) // 3 * 3])),
        ("printed", repr(magic)[:-1].encode()),
        ("printed", f'b"{repr(magic)[2:-1]}'.encode()),
    )
} | {
    b"data:image/jpeg;base64,": "base64-encoded JPEG",
    b"data:image/png;base64,": "base64-encoded PNG",
}
# Two bytes that begin any of these, to look closer only where they stand.
IMAGE_STARTS: Final = frozenset(s[:2] for s in (*_MAGIC, *_MANGLED, _LOST, b"RIFF"))
# JPEG markers that hold the size: SOF0 to SOF15 but for the tables DHT, JPG and DAC.
_SIZE_MARKERS: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def image_format(value: bytes) -> str | None:
    """Return what image format bytes look like, ``"PNG"`` or ``"JPEG"`` ..., None for none.

    An image that went through a text type shows as ``"UTF-8-encoded JPEG"`` (each byte above 127
    became two), ``"base64-encoded PNG"``, ``"printed JPEG"`` (as ``str(data)`` writes it) or
    ``"text-damaged JPEG"`` (bytes were replaced). ``unmangle`` restores all but the last.
    """
    for magic, name in _MAGIC.items():
        if value.startswith(magic):
            return name if name != "BMP" or len(value) >= _LEAST_BMP else None
    if value[:4] == b"RIFF" and value[8:12] == b"WEBP":
        return "WEBP"
    if value.startswith(_LOST):
        return _damaged(value)
    return next((name for start, name in _MANGLED.items() if value.startswith(start)), None)


def _damaged(value: bytes) -> str | None:
    if value.startswith(_LOST + b"PNG\r\n"):
        return "text-damaged PNG"
    jpeg = value.startswith(_LOST * 3) and re.search(b"JFIF|Exif", value[:32])
    return "text-damaged JPEG" if jpeg else None


def mangled_text(value: bytes) -> str | None:
    """Say what became of an image on its way through a text type, None where nothing did.

    Returns:
        A short text such as ``UTF-8-encoded JPEG (was ff d8)``.
    """
    found = image_format(value)
    if found is None or ("-" not in found and not found.startswith("printed")):
        return None
    began = next(magic for magic, name in _MAGIC.items() if found.endswith(name))
    return f"{found} (was {began[:2].hex(' ')})"


def unmangle(value: bytes) -> bytes:
    """Restore bytes that were stored as text: as UTF-8 of Latin-1, as base64, or as printed.

    Args:
        value: The stored bytes, such as those that ``image_format`` says are mangled.

    Returns:
        The bytes as they were.

    Raises:
        DecodeError: That is not what happened, or bytes were replaced and are lost.
    """
    try:
        if value.startswith((b"b'", b'b"')):
            return _printed(value)
        if (image_format(value) or "").startswith("base64"):
            return base64.b64decode(value.partition(b"base64,")[2] or value, validate=False)
        return value.decode().translate(_CP1252).encode("latin-1")
    except (ValueError, SyntaxError, binascii.Error) as error:
        if _LOST in value:
            raise DecodeError(
                "bytes that are no text were replaced by U+FFFD and are lost: write the file "
                "again from the images, and keep their bytes as bytes"
            ) from error
        raise DecodeError(f"these bytes did not go through a text type: {error}") from error


def _printed(value: bytes) -> bytes:
    """Return the bytes that ``str(data)`` printed as ``b'...'``."""
    restored = ast.literal_eval(value.decode())
    if not isinstance(restored, bytes):
        raise ValueError("no bytes in Python's notation")
    return restored


def image_size(value: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels as the header says, None where it does not.

    Args:
        value: An encoded image; PNG, JPEG, GIF, BMP and WEBP are known.
    """
    size = _SIZES.get(image_format(value) or "", _no_size)(value)
    return size if size is not None and all(size) else None


def _no_size(_value: bytes) -> None:
    """Return None for formats that are not looked into."""


def _plain_size(value: bytes, start: int, size: int, order: str) -> tuple[int, int] | None:
    """Return two numbers that stand side by side; the height of a BMP may be negative."""
    if len(value) < start + 2 * size:
        return None
    first, second = (_number(value, start + k * size, size, order) for k in (0, 1))
    return abs(first), abs(second)


def _number(value: bytes, start: int, size: int, order: str = "little") -> int:
    return int.from_bytes(value[start : start + size], order, signed=size == 4)  # type: ignore[arg-type]


def _jpeg_size(value: bytes) -> tuple[int, int] | None:
    """Look for the size in the segments before the pixels."""
    at = 2
    while at + 9 <= len(value) and value[at] == 0xFF:
        if value[at + 1] in _SIZE_MARKERS:
            return _number(value, at + 7, 2, "big"), _number(value, at + 5, 2, "big")
        at += 2 + max(_number(value, at + 2, 2, "big"), 2)
    return None


def _webp_size(value: bytes) -> tuple[int, int] | None:
    form, body = value[12:16], value[20:30]
    if len(body) < 10:
        return None
    if form == b"VP8X":
        return _number(body, 4, 3) + 1, _number(body, 7, 3) + 1
    if form == b"VP8L":
        bits = _number(body, 1, 4) & 0xFFFFFFFF
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return _number(body, 6, 2) & 0x3FFF, _number(body, 8, 2) & 0x3FFF


_SIZES: Final[dict[str, Callable[[bytes], tuple[int, int] | None]]] = {
    "PNG": lambda value: _plain_size(value, 16, 4, "big"),
    "GIF": lambda value: _plain_size(value, 6, 2, "little"),
    "BMP": lambda value: _plain_size(value, 18, 4, "little"),
    "JPEG": _jpeg_size,
    "WEBP": _webp_size,
}

"""Write PNG images with the standard library (PNG specification, third edition, W3C 2025)."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["png_bytes", "stretched"]

# Colour types by number of channels: grey, grey with alpha, RGB, RGB with alpha (section 11.2.1).
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}


def png_bytes(pixels: NDArray[Any]) -> bytes:
    """Encode an image.

    Args:
        pixels: uint8, shape (height, width) or (height, width, channels) with 1 to 4 channels.

    Returns:
        The PNG file.

    Raises:
        UsageError: Another shape or type.
    """
    image = pixels[:, :, None] if pixels.ndim == 2 else pixels
    if image.ndim != 3 or image.shape[2] not in _COLOR_TYPES or image.dtype != np.uint8:
        raise UsageError(
            f"a PNG is uint8 (height, width) or (height, width, 1 to 4 channels); got "
            f"{pixels.dtype} {pixels.shape}"
        )
    height, width, channels = image.shape
    header = struct.pack(">2I5B", width, height, 8, _COLOR_TYPES[channels], 0, 0, 0)
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row begins with filter 0
    rows[:, 1:] = image.reshape(height, -1)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def stretched(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Turn numbers into grey levels: uint8 as they are, others from their least to their most.

    Args:
        values: Any shape; NaN becomes 0.

    Returns:
        Same shape.
    """
    if values.dtype == np.uint8:
        return values
    numbers = values.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    scale = 255 / (high - low) if high > low else 0.0
    return np.nan_to_num((numbers - low) * scale, posinf=255, neginf=0).astype(np.uint8)

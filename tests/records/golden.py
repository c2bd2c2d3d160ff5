"""Golden files of the records tests, as hex or built from it; the format is spelled out anew."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import google_crc32c

# Three Examples {id: int64 10/20/30, v: float 10.5/20.5/30.5}, 46 bytes each framed.
FRAMES = (
    bytes.fromhex(
        "1e00000000000000d9dc12320a1c0a0b0a02696412051a030a010a0a0d0a0176120812060a040000"
        "2841e4f2f70a"
    ),
    bytes.fromhex(
        "1e00000000000000d9dc12320a1c0a0b0a02696412051a030a01140a0d0a0176120812060a040000"
        "a441a91335f8"
    ),
    bytes.fromhex(
        "1e00000000000000d9dc12320a1c0a0b0a02696412051a030a011e0a0d0a0176120812060a040000"
        "f4412f647061"
    ),
)
THREE = b"".join(FRAMES)
PAYLOADS = tuple(frame[12:-4] for frame in FRAMES)
THREE_GZ = gzip.compress(THREE, mtime=0)
THREE_ZLIB = bytes.fromhex(
    "789c936380809b77848cb864b8b8b99832538458a598b918b9b878b918cb843884d8b8581818341c9f7cface"
    "258753b5088aea258e2b854d7fe0562d87a2fa8ba37e4a412200a26215aa"
)
THREE_MEMBERS = b"".join(gzip.compress(frame, mtime=0) for frame in FRAMES)
EMPTY_GZ = bytes.fromhex("1f8b080000000000020303000000000000000000")
HUGE_LENGTH = bytes.fromhex("00000000000004001d7030497878")  # claims 2**50 bytes, 2 follow


def masked(data: bytes) -> int:
    """Return the masked CRC32C, by another library."""
    crc = google_crc32c.value(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def frame(payload: bytes) -> bytes:
    """Return one framed record."""
    length = struct.pack("<Q", len(payload))
    return b"".join(
        (length, struct.pack("<I", masked(length)), payload, struct.pack("<I", masked(payload)))
    )


def header(length: int) -> bytes:
    """Return a valid record header that claims ``length`` bytes."""
    packed = struct.pack("<Q", length)
    return packed + struct.pack("<I", masked(packed))


def flipped(data: bytes, byte: int, mask: int = 1) -> bytes:
    """Return data with bits of one byte turned over."""
    return data[:byte] + bytes([data[byte] ^ mask]) + data[byte + 1 :]


LENGTH_CRC_FLIP = flipped(THREE, 46 + 8)
LENGTH_FLIP = flipped(THREE, 46)
PAYLOAD_FLIP = flipped(THREE, 46 + 12 + 3, 0x40)
JUNK_BETWEEN = FRAMES[0] + bytes(37) + FRAMES[1] + FRAMES[2]
ZERO_TAIL = THREE + bytes(4096)
CUT_HEADER = THREE + FRAMES[0][:7]
CUT_PAYLOAD = THREE + FRAMES[0][:20]
CUT_FOOTER = THREE[:-2]


def put(folder: Path, name: str, data: bytes) -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.write_bytes(data)
    return path


def raw_deflate(data: bytes, level: int = 6, strategy: int = 0) -> bytes:
    """Return raw deflate data by zlib."""
    packer = zlib.compressobj(level, zlib.DEFLATED, -15, 8, strategy)
    return packer.compress(data) + packer.flush()


def bgzf(data: bytes) -> bytes:
    """Return data as BGZF: gzip members of at most 64 KiB that tell their size."""
    out = []
    for begin in range(0, len(data), 60_000):
        piece = data[begin : begin + 60_000]
        body = raw_deflate(piece, 1)
        size = 18 + len(body) + 8
        extra = b"BC" + struct.pack("<HH", 2, size - 1)
        head = b"\x1f\x8b\x08\x04" + bytes(4) + b"\x00\xff" + struct.pack("<H", 6) + extra
        out.append(head + body + struct.pack("<II", zlib.crc32(piece), len(piece)))
    return b"".join(out)

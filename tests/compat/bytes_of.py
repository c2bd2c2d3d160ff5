"""Record files made byte by byte, without the code under test."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import google_crc32c

UNSET = b""


def masked_crc(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(payload: bytes, *, length_crc: bytes | None = None, crc: bytes | None = None) -> bytes:
    header = struct.pack("<Q", len(payload))
    return header + (length_crc or masked_crc(header)) + payload + (crc or masked_crc(payload))


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def ints(*values: int) -> bytes:
    return field(3, field(1, b"".join(map(varint, values))) if values else b"")


def floats(*values: float) -> bytes:
    return field(2, field(1, struct.pack(f"<{len(values)}f", *values)) if values else b"")


def strings(*values: bytes) -> bytes:
    return field(1, b"".join(field(1, value) for value in values))


def entry(name: bytes, body: bytes) -> bytes:
    return field(1, field(1, name) + field(2, body))


def example(**features: bytes) -> bytes:
    return field(1, b"".join(entry(name.encode(), body) for name, body in features.items()))


def sequence(context: dict[str, bytes], lists: dict[str, list[bytes]]) -> bytes:
    steps = {name: b"".join(field(1, step) for step in items) for name, items in lists.items()}
    return example(**context) + field(
        2, b"".join(entry(name.encode(), body) for name, body in steps.items())
    )


def write(path: Path, *payloads: bytes, tail: bytes = b"") -> str:
    path.write_bytes(b"".join(map(frame, payloads)) + tail)
    return str(path)


def write_numbers(path: Path, count: int, *, first: int = 0) -> str:
    """One Example {i: [k]} a record, 30 bytes each while k < 128."""
    return write(path, *(example(i=ints(first + k)) for k in range(count)))


def write_index(path: Path, count: int, size: int = 30) -> str:
    path.write_text("".join(f"{k * size} {size}\n" for k in range(count)))
    return str(path)


def write_gzip(path: Path, plain: str) -> str:
    path.write_bytes(gzip.compress(Path(plain).read_bytes()))
    return str(path)


def numbers(rows: object) -> list[int]:
    return [int(row["i"][0]) for row in rows]  # type: ignore[attr-defined]

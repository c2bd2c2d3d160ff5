"""Find the records of a plain local file by their headers alone, stepping over payloads."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from tfrio import _core
from tfrio.compression.detect import HEADER_BYTES, header_length
from tfrio.storage import open_read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tfrio.storage import BinaryReader, Source

__all__ = ["header_offsets", "headers"]

# Read at once: small records lie close together, of large ones only the header is wanted.
_CLOSE, _APART = 1 << 20, 4 << 10
_FOOTER = 4


def headers(reader: BinaryReader, size: int) -> Iterator[NDArray[np.int64] | None]:
    """Yield the offsets of record headers, some at a time.

    Args:
        reader: A plain local file.
        size: Its size in bytes.

    Yields:
        int64 (n,), in bytes; None, and nothing after it, where a header is damaged or cut.
    """
    at, room = 0, _APART
    while at < size:
        block = reader.read_at(at, min(room, size - at))
        scan = _core.scan(block, 0, -1, False, False)
        last = block[scan.consumed : scan.consumed + HEADER_BYTES]
        begin = at + scan.consumed
        if len(scan.spans):
            yield scan.spans[:, 0] + (at - HEADER_BYTES)
        at = begin
        if len(last) == HEADER_BYTES:  # of a record that reaches past the block
            length = header_length(last)
            at = size + 1 if length is None else begin + HEADER_BYTES + length + _FOOTER
            if at > size:
                break
            yield np.array([begin], np.int64)
        elif not scan.consumed:
            break
        room = _CLOSE if scan.consumed > len(block) // 2 else _APART
    if at != size:
        yield None


def header_offsets(path: Source) -> tuple[NDArray[np.int64], int] | None:
    """Find every record of a plain local file.

    Returns:
        Header offsets, int64 (n,), and the size of the file in bytes; None where a header is
        damaged or cut.
    """
    with closing(open_read(path)) as reader:
        size = reader.size or 0
        found = list(headers(reader, size))
    pieces = [piece for piece in found if piece is not None]
    if len(pieces) < len(found):
        return None
    return np.concatenate([np.empty(0, np.int64), *pieces]), size

"""The one walk over a stream: chunks of whole records, and damage with where it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfrio import _core
from tfrio.errors import StoredDataError
from tfrio.records.damage import Damage, recover, recover_stored

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from tfrio.records.reader import RecordStream

__all__ = ["Chunk", "refill", "tally", "walk"]

_HEADER, _FOOTER = 12, 4


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole, checked records in a row. ``data`` dies at the next step of the walk.

    Attributes:
        data: The stream's buffer.
        spans: (n, 2) int64: payload offset in ``data`` and length, in bytes.
        position: Uncompressed offset of ``data[0]`` in the file.
        first: Number of the first record in the file.
    """

    data: memoryview
    spans: NDArray[np.int64]
    position: int
    first: int

    def frames(self) -> tuple[memoryview, NDArray[np.int64]]:
        """Return the framed records, and the end of each in them: int64 (n,), in bytes."""
        begin = int(self.spans[0, 0]) - _HEADER
        ends = self.spans[:, 0] + self.spans[:, 1] + _FOOTER - begin
        return self.data[begin : begin + int(ends[-1])], ends

    def payloads(self) -> Iterator[bytes]:
        """Yield a copy of each payload."""
        data = self.data
        for offset, length in self.spans.tolist():
            yield bytes(data[offset : offset + length])


def walk(stream: RecordStream, *, verify: bool = True) -> Iterator[Chunk | Damage]:
    """Walk a stream to its end, past damage.

    Args:
        stream: An open stream.
        verify: Check payload CRCs.

    Yields:
        Chunks of whole records and, where they lie, damages.

    Raises:
        NotTFRecordError: The file is something else than TFRecord.
    """
    while True:
        data = stream.buffer
        scan = _core.scan(data, 0, -1, verify, stream.final)
        if len(scan.spans):
            yield Chunk(data, scan.spans, stream.position, stream.records)
        stream.advance(scan.consumed, len(scan.spans))
        damage, more = _go_on(stream, scan.fault)
        if damage is not None:
            yield damage
        if not more:
            return


def tally(stream: RecordStream, *, verify: bool = True) -> Iterator[int | Damage]:
    """Walk like ``walk``, but yield only the number of records of each step, and damages."""
    while True:
        step = _core.count(stream.buffer, 0, verify, stream.final)
        stream.advance(step.consumed, step.records)
        if step.records:
            yield step.records
        damage, more = _go_on(stream, step.fault)
        if damage is not None:
            yield damage
        if not more:
            return


def _go_on(stream: RecordStream, fault: _core.Fault | None) -> tuple[Damage | None, bool]:
    """Step over damage, or get more bytes; return what is wrong and whether the walk goes on."""
    if fault is not None:
        return recover(stream, fault), True
    if stream.final:
        return None, False
    return refill(stream), True


def refill(stream: RecordStream) -> Damage | None:
    """Fill the stream; damaged or lost stored data becomes a ``Damage``."""
    try:
        stream.fill()
    except StoredDataError as error:
        return recover_stored(stream, error)
    return None

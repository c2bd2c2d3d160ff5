"""Join chunks of different layouts into one of the last layout. Pure."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.examples.engine import Chunk
from tfrio.examples.layout import NativeColumn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrio.examples.columns import Array
    from tfrio.examples.layout import Slot
    from tfrio.examples.shaping import Places

__all__ = ["join_chunks"]

_BYTES, _FLOAT = 1, 2
_DTYPES = {_BYTES: np.uint8, _FLOAT: np.float32, 3: np.int64}


def join_chunks(chunks: Sequence[Chunk]) -> Chunk:
    """Join chunks whose layouts only ever widened.

    Args:
        chunks: At least one, in order.

    Returns:
        All rows under the last layout: features of fixed length that became ragged are ragged
        throughout, features that appeared are absent before.
    """
    if len(chunks) == 1:
        return chunks[0]
    layout = chunks[-1].layout
    natives = [_concat([_conform(chunk, slot) for chunk in chunks]) for slot in layout.slots]
    starts = np.cumsum([0, *(chunk.rows for chunk in chunks)]).tolist()
    origin = JoinedPlaces([chunk.origin for chunk in chunks], starts)
    return Chunk(layout, natives, starts[-1], origin)


class JoinedPlaces:
    """Where the rows of several chunks came from.

    Args:
        places: One a chunk.
        starts: The first row of each chunk.
    """

    def __init__(self, places: Sequence[Places], starts: Sequence[int]) -> None:
        self._places = places
        self._starts = starts[: len(places)]

    def _find(self, row: int) -> tuple[Places, int]:
        chunk = bisect_right(self._starts, row) - 1
        return self._places[chunk], row - self._starts[chunk]

    def where(self, row: int) -> str:
        """Return ``record 17 of a.tfrecord``."""
        places, inner = self._find(row)
        return places.where(inner)

    def place(self, row: int) -> Mapping[str, Any]:
        """Return path and record as keyword arguments of an error."""
        places, inner = self._find(row)
        return places.place(inner)


def _conform(chunk: Chunk, slot: Slot) -> NativeColumn:
    """Return the column of a slot in a chunk of an earlier layout, in the slot's form."""
    for known, native in zip(chunk.layout.slots, chunk.natives, strict=True):
        if known[0] == slot.name and known.place == slot.place:
            # Columns only ever become ragged. Of another kind or no longer ragged: the kind was
            # not known, so there is no value so far, but perhaps steps without any.
            if known.kind != slot.kind or known.values < 0 <= slot.values:
                return _absent(slot, chunk.rows, native)
            if known.values == slot.values:
                return native
            return _ragged(native, known.values)
    return _absent(slot, chunk.rows)


def _ragged(native: NativeColumn, count: int) -> NativeColumn:
    """Return a fixed column as a ragged one; absent rows become empty lists."""
    there = native.present.astype(np.bool_)
    if native.step_offsets is not None:
        there = np.ones(int(native.step_offsets[-1]), np.bool_)
    lengths = there * np.int64(count)
    keep = np.repeat(there, count)
    offsets = _ends(lengths)
    if native.byte_offsets is None:
        return native._replace(values=native.values.ravel()[keep], value_offsets=offsets)
    # Absent rows hold empty bytes: leaving out their offsets moves no data.
    sizes = np.diff(native.byte_offsets)[keep]
    return native._replace(byte_offsets=_ends(sizes), value_offsets=offsets)


def _absent(slot: Slot, rows: int, empty: NativeColumn | None = None) -> NativeColumn:
    """Return a column without values: of absent rows, or with the steps of one without values."""
    steps = empty.step_offsets if empty else None
    if slot.place and steps is None:
        steps = np.zeros(rows + 1, np.int64)
    lists = rows if steps is None else int(steps[-1])
    count = max(slot.values, 0) * lists
    return NativeColumn(
        values=np.zeros(0 if slot.kind == _BYTES else count, _DTYPES[slot.kind]),
        byte_offsets=np.zeros(count + 1, np.int64) if slot.kind == _BYTES else None,
        value_offsets=np.zeros(lists + 1, np.int64) if slot.values < 0 else None,
        step_offsets=steps,
        present=empty.present if empty else np.zeros(rows, np.uint8),
        step_present=empty.step_present if empty else None,
    )


def _concat(parts: list[NativeColumn]) -> NativeColumn:
    def chained(arrays: list[Array | None]) -> Array | None:
        """Chain offsets; None where the columns have none."""
        return None if arrays[0] is None else _chain([a for a in arrays if a is not None])

    return NativeColumn(
        values=np.concatenate([p.values.ravel() for p in parts]),
        byte_offsets=chained([p.byte_offsets for p in parts]),
        value_offsets=chained([p.value_offsets for p in parts]),
        step_offsets=chained([p.step_offsets for p in parts]),
        present=np.concatenate([p.present for p in parts]),
        step_present=_joined_steps(parts),
    )


def _joined_steps(parts: list[NativeColumn]) -> Array | None:
    """Return which steps carry a kind, None where all do."""
    if all(part.step_present is None for part in parts):
        return None
    return np.concatenate(
        [
            np.ones(int(p.step_offsets[-1]), np.uint8) if p.step_present is None else p.step_present
            for p in parts
            if p.step_offsets is not None
        ]
    )


def _chain(offsets: list[Array]) -> Array:
    """Return offsets one after another, each shifted to where the one before ends."""
    return _ends(np.concatenate([np.diff(o) for o in offsets]))


def _ends(lengths: Array) -> Array:
    out = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=out[1:])
    return out

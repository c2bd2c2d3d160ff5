"""Framed records, wherever they lie, to a batch of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tfrio import _core
from tfrio.datasets.outputs import Outputs
from tfrio.errors import (
    CompressedDataError,
    CorruptRecordError,
    DecodeError,
    MissingFeatureError,
    TfrioError,
    from_fault,
)
from tfrio.examples.convert import make_batch
from tfrio.examples.engine import Chunk
from tfrio.examples.faults import with_present
from tfrio.examples.layout import Layout, NativeColumn
from tfrio.examples.merge import join_chunks
from tfrio.records.damage import Damage, DamagePolicy
from tfrio.records.mapped import check_maps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tfrio.datasets.order import Int64
    from tfrio.datasets.source import Frames, Lost, RecordSource
    from tfrio.examples.columns import Batch
    from tfrio.examples.schema import Schema

__all__ = ["Decoder", "Room"]

Room: TypeAlias = "Callable[[int], NDArray[np.uint8] | None]"
"""Returns memory of at least so many bytes, or None where they are too few to be worth it."""

_SHORT_RUN = 16
_SAMPLE = 256  # records that tell a shuffled batch from one in order


class Places:
    """Where the rows of a batch in any order came from, for errors."""

    def __init__(
        self, files: Sequence[RecordSource], file: NDArray[np.int32], record: Int64
    ) -> None:
        self._files = files
        self._file = file
        self._record = record

    def where(self, row: int) -> str:
        """Return ``record 17 of a.tfrecord``."""
        return f"record {self._record[row]} of {self._files[self._file[row]].path}"

    def place(self, row: int) -> Mapping[str, Any]:
        """Return path and record as keyword arguments of an error."""
        return {"path": self._files[self._file[row]].path, "record": int(self._record[row])}


class Decoder:
    """Decode framed records into the columns of a schema.

    Args:
        schema: The features wanted.
        policy: What to do with damaged records.
        verify: Whether payload checksums are checked.
        mean_size: Mean bytes of a record.
    """

    def __init__(
        self,
        schema: Schema,
        policy: DamagePolicy,
        *,
        verify: bool = True,
        mean_size: int = 1,
    ) -> None:
        self._layout = Layout(schema)
        self._outputs = Outputs(self._layout, mean_size)
        self._verify = verify
        self._policy = policy
        self._native = _core.ExampleDecoder(self._layout.slots, sequence=schema.sequence)

    def decode(
        self,
        frames: Frames,
        files: Sequence[RecordSource],
        file: NDArray[np.int32],
        record: Int64,
        *,
        room: Room | None = None,
    ) -> tuple[Batch, NDArray[np.bool_] | None]:
        """Decode records in the order given.

        Args:
            frames: Where they lie.
            files: The files they came from, for errors.
            file: File of each record, shape (n,).
            record: Record number within its file, shape (n,).
            room: Gives memory to decode into.

        Returns:
            The batch, and which of the records are in it (None: all), shape (n,).

        Raises:
            CorruptRecordError: A record is damaged, and damage is not skipped.
            SchemaError: A record does not fit the schema.
        """
        if frames.lost:
            return self._decode_rest(frames, files, file, record)
        kept: NDArray[np.bool_] | None = None
        ends = _run_ends(frames, record)
        done = 0
        parts: list[Chunk] = []
        if room is not None:
            self._set_outputs(record.size, room)
        while done < record.size:
            feed = self._feed(frames, done, ends)
            done += feed.records
            if feed.fault is None:
                if not feed.records:  # the memory is full: the rest goes elsewhere
                    self._outputs.overflowed()
                    parts.append(self._taken(Places(files, file, record)))
                continue
            self._check(frames)
            self._fail(feed.fault, files[file[done]], int(record[done]))
            kept = np.ones(record.size, np.bool_) if kept is None else kept
            kept[done] = False
            done += 1
        self._check(frames)
        if kept is not None:
            file, record = file[kept], record[kept]
        whole = join_chunks([*parts, self._taken(Places(files, file, record))])
        places = Places(files, file, record)
        try:
            batch = make_batch(self._layout, whole.natives, whole.rows, places)
        except MissingFeatureError as error:
            raise with_present(error, compression=None) from None
        return batch, kept

    def _set_outputs(self, rows: int, room: Room) -> None:
        memory = room(self._outputs.size(rows))
        if memory is not None:
            for slot, array in self._outputs.cut(memory, rows).items():
                self._native.set_output(slot, array)

    def _taken(self, places: Places) -> Chunk:
        """Return the rows decoded since the last time."""
        rows = self._native.rows
        natives = [NativeColumn.of(column) for column in self._native.take()]
        return Chunk(self._layout, natives, rows, places)

    def _decode_rest(
        self, frames: Frames, files: Sequence[RecordSource], file: NDArray[np.int32], record: Int64
    ) -> tuple[Batch, NDArray[np.bool_]]:
        """Decode what does not lie in damaged compressed data."""
        kept = np.ones(record.size, np.bool_)
        for lost in frames.lost:
            damage = _lost_stretch(lost, files[lost.file], int(record[lost.places[0]]))
            if self._policy.mode == "raise":
                raise damage.error()
            if (record[lost.places] == lost.told).any():
                self._policy.take(damage)
            kept[lost.places] = False
        rest = frames._replace(which=frames.which[kept], starts=frames.starts[kept], lost=[])
        batch, inner = self.decode(rest, files, file[kept], record[kept])
        if inner is not None:
            kept[kept] = inner
        return batch, kept

    def _feed(self, frames: Frames, first: int, ends: Int64 | None) -> _core.Feed:
        """Decode from record ``first`` on: the rest of its run, or all that is left."""
        if ends is None:
            return self._native.feed_at(
                frames.buffers, frames.which[first:], frames.starts[first:], verify=self._verify
            )
        most = int(ends[np.searchsorted(ends, first, side="right")]) - first
        buffer, start = frames.buffers[frames.which[first]], int(frames.starts[first])
        feed = self._native.feed(buffer, start, most, verify=self._verify, final=True)
        if feed.records or feed.fault is not None:
            return feed
        # The data ends where a record should begin: let the call for single records say so.
        return self._native.feed_at(
            frames.buffers, frames.which[first : first + 1], frames.starts[first : first + 1]
        )

    def _check(self, frames: Frames) -> None:
        """See that mapped files were whole while they were read."""
        try:
            check_maps(frames.buffers)
        except TfrioError:
            self._native.take()  # leave nothing behind for the next batch
            raise

    def _fail(self, fault: Any, source: RecordSource, record: int) -> None:
        """Skip a damaged record, or raise."""
        offset = source.offset(record)
        error = from_fault(fault, path=source.path, record=record, offset=offset)
        try:
            if not isinstance(error, CorruptRecordError | DecodeError):
                raise error
            if self._policy.mode == "raise":
                raise error
            self._policy.take(_damage(error, fault, source, record))
        except TfrioError:
            self._native.take()  # leave nothing behind for the next batch
            raise


def _run_ends(frames: Frames, record: Int64) -> Int64 | None:
    """Return where runs of neighbouring records end, ascending; None where runs are short.

    A run is decoded several times faster than as many single records.
    """
    if not frames.adjacent or not record.size:
        return None
    if record.size > _SAMPLE and _breaks(frames, record, _SAMPLE).size * _SHORT_RUN > _SAMPLE:
        return None
    breaks = _breaks(frames, record, record.size)
    if (breaks.size + 1) * _SHORT_RUN > record.size:
        return None
    return np.append(breaks, record.size)


def _breaks(frames: Frames, record: Int64, stop: int) -> NDArray[np.intp]:
    """Return which of the first ``stop`` records do not follow the one before them."""
    apart = (np.diff(record[:stop]) != 1) | (np.diff(frames.which[:stop]) != 0)
    return np.flatnonzero(apart) + 1


def _lost_stretch(lost: Lost, source: RecordSource, wanted: int) -> Damage:
    """Describe a stretch that cannot be read, as reading in order does."""
    error, last = lost.error, lost.stop >= source.count
    begin = source.offset(lost.first)
    end = source.data_size if last else source.offset(lost.stop)
    code, at = "unreadable", None
    if isinstance(error, CompressedDataError):
        code, at = f"{error.field}-{error.code}", error.offset
    return Damage(
        path=source.path,
        record=lost.first,
        offset=begin,
        code=code,
        field=str(error.field),
        expected=None,
        got=None,
        lost=end - begin,
        resumed=None if last else end,
        message=f"{error.message}; records {lost.first} to {lost.stop - 1} are lost, record "
        f"{wanted} was wanted. Fetch or write the file again, keep every whole record with `tfrio "
        'repair`, or read with errors="skip"',
        compressed_offset=at,
        lost_records=lost.stop - lost.first,
    )


def _damage(error: TfrioError, fault: Any, source: RecordSource, record: int) -> Damage:
    offset = source.offset(record)
    last = record + 1 >= source.count
    end = source.data_size if last else source.offset(record + 1)
    return Damage(
        path=source.path,
        record=record,
        offset=offset,
        code=fault.code,
        field=fault.field or "payload",
        expected=fault.expected,
        got=fault.got,
        lost=end - offset,
        resumed=None if last else end,
        message=error.message,
    )

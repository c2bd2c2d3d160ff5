"""Many files as one sequence of records, by number: single ones, slices, and batches."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from tfrio import _core
from tfrio.errors import UsageError, from_fault
from tfrio.records.access import IndexChoice, RecordFile
from tfrio.records.mapped import check_maps
from tfrio.records.shards import expand

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfrio.errors import TfrioError
    from tfrio.types import PathsLike

__all__ = ["Located", "RecordSequence"]

_Int64: TypeAlias = "NDArray[np.int64]"
_GAP = 64 << 10  # bytes fetched in vain to save a request to a remote file


@dataclass(frozen=True, slots=True)
class Located:
    """Where asked records lie: record k has its header at ``starts[k]`` of ``buffers[which[k]]``.

    Attributes:
        buffers: Bytes-like objects.
        which: int32 (n,).
        starts: int64 (n,), in bytes.
    """

    buffers: list[Any]
    which: NDArray[np.int32]
    starts: _Int64


class RecordSequence(Sequence[bytes]):
    """The payloads of one or more files as one sequence.

    ``len``, ``seq[5]``, ``seq[-1]``, ``seq[2:9]``, ``seq[[9, 2, 2]]``. Batches are read in file
    order, each stretch once. Pickles, and works on in forked and spawned processes.

    Args:
        paths: Files, folders, globs, shard prefixes or URLs, in order.
        index: ``"auto"`` uses and keeps index files, ``"memory"`` keeps none; a path names the
            index of a single file.
        split: Only shards of this split.
        verify: Check payload CRCs.

    Raises:
        FileNotFoundError: A path stands for no file.
        CorruptRecordError: An index had to be made and the data is damaged.
    """

    def __init__(
        self,
        paths: PathsLike,
        *,
        index: IndexChoice = "auto",
        split: str | None = None,
        verify: bool = True,
    ) -> None:
        files = expand(paths, split=split)
        if index not in ("auto", "memory") and len(files) > 1:
            raise UsageError(f"one index was named for {len(files)} files; leave it out")
        self.verify = verify
        self.files = [RecordFile(path, index=index) for path in files]
        self._ends = np.cumsum([file.count for file in self.files], dtype=np.int64)
        self._bounds: list[int] = self._ends.tolist()
        self._count: int = self._bounds[-1]

    def __len__(self) -> int:
        """Return the number of records in all files."""
        return self._count

    @overload
    def __getitem__(self, which: int) -> bytes: ...

    @overload
    def __getitem__(self, which: slice | Sequence[int] | _Int64) -> list[bytes]: ...

    def __getitem__(self, which: int | slice | Sequence[int] | _Int64) -> bytes | list[bytes]:
        """Return one payload, or a list of them in the order asked.

        Raises:
            IndexError: There is no such record.
            CorruptRecordError: A record is damaged.
        """
        try:
            number = operator.index(which)  # type: ignore[arg-type]
        except TypeError:
            return self.read(self._several(which))  # type: ignore[arg-type]
        return self._one(number)

    def _several(self, which: slice | Sequence[int] | _Int64) -> _Int64:
        if isinstance(which, slice):
            return np.arange(*which.indices(len(self)), dtype=np.int64)
        return self.numbers(which)

    def __iter__(self) -> Iterator[bytes]:
        """Yield all payloads in order, a stretch at a time."""
        for begin in range(0, len(self), 1024):
            yield from self[begin : begin + 1024]

    def numbers(self, which: Sequence[int] | _Int64) -> _Int64:
        """Check record numbers; negative ones count from the end.

        Returns:
            int64 (n,), from 0.

        Raises:
            IndexError: There is no such record.
        """
        given = np.asarray(which)
        if given.dtype.kind not in "iu" and given.size:
            raise UsageError(f"record numbers must be whole numbers, got {given.dtype}")
        if given.ndim != 1:
            raise UsageError(f"record numbers must be one list, got an array of {given.ndim} axes")
        numbers = given.astype(np.int64)
        count = self._count
        wrong = numbers[(numbers < -count) | (numbers >= count)]
        if wrong.size:
            raise IndexError(f"record {int(wrong[0])} asked of {count}")
        return np.where(numbers < 0, numbers + count, numbers)

    def place(self, number: int) -> tuple[RecordFile, int]:
        """Return the file of a record and the record's number in it.

        Args:
            number: Of the record in the sequence; a negative one counts from the end.

        Raises:
            IndexError: There is no such record.
        """
        if not -self._count <= number < self._count:
            raise IndexError(f"record {number} asked of {self._count}")
        return self.file_of(number + self._count if number < 0 else number)

    def file_of(self, number: int) -> tuple[RecordFile, int]:
        """Return the same for a number from 0 that is known to be one."""
        if len(self._bounds) == 1:
            return self.files[0], number
        which = bisect.bisect_right(self._bounds, number)
        file = self.files[which]
        return file, number - self._bounds[which] + file.count

    def _one(self, number: int) -> bytes:
        file, record = self.place(number)
        mapped = file.record_map
        payload = None if mapped is None else mapped.payload(record, self.verify)
        if payload is None:
            buffer, start = file.frame(record)
            payload = _core.payload_at(buffer, start, self.verify)
            check_maps([buffer])
        if isinstance(payload, bytes):
            return payload
        raise self._fault(payload, file, record)

    @staticmethod
    def _fault(fault: _core.Fault, file: RecordFile, record: int) -> TfrioError:
        error = from_fault(fault, path=file.path, record=record, offset=file.offset(record))
        error.message += (
            ". Records are found by an index: if the file was changed in place since that was "
            "made, make it again with `tfrio index`"
        )
        return error

    def locate(self, numbers: _Int64) -> Located:
        """Get the frames of records, each stretch of a file read once.

        Args:
            numbers: int64 (n,), as ``numbers`` returns them; in any order, repeated or not.

        Returns:
            Where each asked record lies, in the order asked.
        """
        if len(self.files) == 1 and self.files[0].mapped:
            buffer, offsets = self.files[0].frames(0, self._count)
            return Located([buffer], np.zeros(len(numbers), np.int32), offsets[numbers])
        which = np.zeros(len(numbers), np.int32)
        starts = np.zeros(len(numbers), np.int64)
        buffers: list[Any] = []
        owner = np.searchsorted(self._ends, numbers, "right")
        for k in np.flatnonzero(np.bincount(owner, minlength=len(self.files))).tolist():
            file = self.files[k]
            rows = np.flatnonzero(owner == k)
            local = numbers[rows] - (int(self._ends[k]) - file.count)
            if file.mapped:
                buffer, offsets = file.frames(0, file.count)
                which[rows], starts[rows] = len(buffers), offsets[local]
                buffers.append(buffer)
                continue
            for buffer, group, offsets in _stretches(file, local):
                which[rows[group]], starts[rows[group]] = len(buffers), offsets
                buffers.append(buffer)
        return Located(buffers, which, starts)

    def read(self, numbers: _Int64) -> list[bytes]:
        """Return the payloads of records in the order asked.

        Args:
            numbers: int64 (n,), as ``numbers`` returns them.

        Raises:
            CorruptRecordError: A record is damaged.
        """
        located = self.locate(numbers)
        payloads, fault = _core.payloads_at(
            located.buffers, located.which, located.starts, self.verify
        )
        check_maps(located.buffers)
        if fault is not None:
            raise self._fault(fault, *self.file_of(int(numbers[fault.record])))
        return payloads

    def close(self) -> None:
        """Release the handles of all files."""
        for file in self.files:
            file.close()


def _stretches(file: RecordFile, local: _Int64) -> Iterator[tuple[Any, _Int64, _Int64]]:
    """Yield a buffer for each stretch of a file, the rows it serves and their offsets in it."""
    order = np.argsort(local, kind="stable")
    ranked = local[order]
    for group in np.split(np.arange(len(ranked)), _breaks(file, ranked)):
        first, last = int(ranked[group[0]]), int(ranked[group[-1]])
        found = file.sound_frames(first, last + 1)
        inner = ranked[group] - first
        if found.lost is not None and found.lost[inner].any():
            wanted = first + int(inner[np.argmax(found.lost[inner])])
            file.frames(wanted, wanted + 1)  # raises
        yield found.buffer, order[group], found.starts[inner]


def _breaks(file: RecordFile, ranked: _Int64) -> _Int64:
    """Return where ascending record numbers are to be split into stretches read at once."""
    index = file.index
    if index.compression == "none":
        assert index.offsets is not None
        ends = np.append(index.offsets[1:], index.data_size)
        apart = index.offsets[ranked[1:]] - ends[ranked[:-1]] > _GAP
    else:
        block = np.searchsorted(file.blocks, ranked, "right")
        apart = np.diff(block) > 0
    return np.flatnonzero(apart) + 1

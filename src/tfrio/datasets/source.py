"""The files of a data set as one sequence of framed records, read by record number.

Plain local files are mapped: any record is at hand. Of other files whole stretches (compression
blocks, or runs of records) are read at once and held while the order stays near them.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from tfrio.errors import CorruptRecordError, UsageError
from tfrio.records.reader import RecordStream
from tfrio.storage import at_fork
from tfrio.storage.remote import uses_obstore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tfrio.datasets.order import Int64
    from tfrio.datasets.plan import Picks
    from tfrio.records.frames import Sound

__all__ = ["ForwardFrames", "Frames", "Lost", "RecordSource", "Sources", "run_length"]

Held: TypeAlias = "tuple[Any, Int64]"
"""A buffer with framed records, and where each begins in it."""


class Stretch(NamedTuple):
    """What is sound of a stretch of a file (see ``tfrio.records.frames.Sound``)."""

    buffer: Any
    starts: Int64
    lost: NDArray[np.bool_] | None = None
    error: CorruptRecordError | None = None


# Records that lie in about so many bytes are read at once.
RUN_BYTES = 1 << 20

# Files smaller than this are read whole where they cannot be entered in the middle.
WHOLE_BYTES = 4 << 20

# Stretches that may be held at once where the order does not name them; above this the records
# are copied out of each stretch instead.
HOLD_BYTES = 64 << 20


class RecordSource(Protocol):
    """One file by record number (see ``tfrio.records.access.RecordFile``)."""

    @property
    def path(self) -> str:
        """Return where the file is."""
        ...

    @property
    def count(self) -> int:
        """Return the number of records."""
        ...

    @property
    def blocks(self) -> Int64:
        """Return the record numbers at which a seek is cheap."""
        ...

    @property
    def mapped(self) -> bool:
        """Return whether ``frames`` hands out one mapping of the whole file."""
        ...

    @property
    def size(self) -> int:
        """Return the bytes as stored."""
        ...

    @property
    def data_size(self) -> int:
        """Return the bytes uncompressed."""
        ...

    def frames(self, start: int, stop: int) -> tuple[Any, Int64]:
        """Return a buffer with the framed records and their header offsets in it."""
        ...

    def sound_frames(self, start: int, stop: int) -> Sound:
        """Return the same, and which of the records are lost in damaged compressed data."""
        ...

    def offset(self, record: int) -> int:
        """Return where a record's header lies in the uncompressed data."""
        ...


class Lost(NamedTuple):
    """Records wanted of those in a row that cannot be read, as compressed data is damaged."""

    error: CorruptRecordError
    places: NDArray[np.intp]
    """Which of the records wanted, shape (n,)."""
    file: int
    first: int
    """First record of the row in its file."""
    stop: int
    """Record behind its last."""
    told: int
    """The record with which the damage is told, so that an epoch tells it once."""


class Frames(NamedTuple):
    """Where framed records lie: record k at ``starts[k]`` of ``buffers[which[k]]``."""

    buffers: list[Any]
    which: NDArray[np.int32]
    starts: Int64
    adjacent: bool
    """Whether records that follow each other in their file do so in their buffer, too."""
    lost: list[Lost]
    """What cannot be read; nothing is said of where these records lie."""


def run_length(source: RecordSource) -> int:
    """Return how many records of a file to read at once, from its mean record size."""
    mean = max(1, source.data_size // max(1, source.count))
    return max(1, RUN_BYTES // mean)


def _forward_only(source: RecordSource) -> bool:
    """Return whether a file can only be read from its beginning (a compressed one, far away)."""
    return not source.mapped and source.blocks.size <= 1 and source.data_size > WHOLE_BYTES


def _edges(source: RecordSource) -> Int64:
    """Return the record numbers at which the stretches of a file begin, and its count."""
    inner = source.blocks
    if source.mapped or inner.size == source.count or _forward_only(source):
        inner = np.arange(0, source.count, run_length(source))
    return np.append(inner, source.count).astype(np.int64)


class ForwardFrames:
    """Read a file front to back, run by run; going back begins anew."""

    def __init__(self, source: RecordSource) -> None:
        self._source = source
        self._stream: RecordStream | None = None

    def frames(self, start: int, stop: int) -> Held:
        """Return the framed records of a run and their header offsets (see ``RecordSource``)."""
        source = self._source
        offsets = np.array([source.offset(record) for record in range(start, stop)], np.int64)
        first = int(offsets[0])
        end = source.offset(stop) if stop < source.count else source.data_size
        if self._stream is None or self._stream.position > first:
            self.close()
            self._stream = RecordStream(source.path)
        run = bytearray()
        while len(run) < end - first:
            stream = self._stream
            at = first + len(run) - stream.position
            run += stream.buffer[at : end - stream.position] if at >= 0 else b""
            # What the next run needs is left in the window.
            stream.advance(min(len(stream.buffer), end - stream.position), 0)
            if len(run) < end - first and not stream.fill():
                raise CorruptRecordError(
                    f"{source.path}: ends at byte {stream.position} of {source.data_size}; was it "
                    "cut short since it was indexed?",
                    path=source.path,
                )
        return bytes(run), offsets - first

    def __del__(self) -> None:
        """Close the file, as datasets are not closed by their users."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


class Sources:
    """All files of a data set.

    Args:
        files: The files, opened by record number.
        selection: Ascending record numbers to use of each file; None uses all.
        gaps: Whether something else may lie between the records of a (damaged) file.
    """

    def __init__(
        self,
        files: Sequence[RecordSource],
        *,
        selection: Sequence[Int64] | None = None,
        gaps: bool = False,
    ) -> None:
        self.files = list(files)
        self.selection = selection
        self._gaps = gaps
        self.counts = [
            file.count if selection is None else len(selection[number])
            for number, file in enumerate(self.files)
        ]
        self.mapped = all(file.mapped for file in self.files)
        """Whether every record of every file is at hand."""
        self._edges: dict[int, Int64] = {}
        self._process = os.getpid()
        self.forked()
        at_fork(self)

    def forked(self) -> None:
        """Hold nothing."""
        self._held: dict[tuple[int, int], Stretch] = {}
        self._forward: dict[int, ForwardFrames] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the files, not what is held of them."""
        return {"files": self.files, "selection": self.selection, "gaps": self._gaps}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open the files again."""
        self.__init__(**state)  # type: ignore[misc]

    @property
    def needs_new_process(self) -> bool:
        """Return whether worker processes must not be forked: they would lack obstore's threads."""
        return any(uses_obstore(file.path) for file in self.files)

    def _check_process(self) -> None:
        """Refuse to wait for ever for what a forked process lacks."""
        if os.getpid() != self._process and self.needs_new_process:
            raise UsageError(
                f"{self.files[0].path}: files of an object store cannot be read in a forked worker "
                'process. Give the DataLoader multiprocessing_context="spawn", or use the '
                "dataset's own loader(), which does so"
            )

    @property
    def seekable(self) -> bool:
        """Return whether every file can be entered in the middle."""
        return not any(_forward_only(file) for file in self.files)

    @property
    def mean_size(self) -> int:
        """Return the mean size of a framed record in bytes, at least 1."""
        total = sum(file.data_size for file in self.files)
        return max(1, total // max(1, sum(file.count for file in self.files)))

    def blocks(self) -> Int64:
        """Return the record numbers (of the records used) at which blocks begin."""
        parts, before = [np.empty(0, np.int64)], 0
        for number in range(len(self.files)):
            inner = self._edges_of(number)[:-1]
            if self.selection is not None:
                inner = np.unique(np.searchsorted(self.selection[number], inner))
            parts.append(before + inner[inner < self.counts[number]])
            before += self.counts[number]
        return np.concatenate(parts)

    def numbers(self, picks: Picks) -> Int64:
        """Return the record numbers within the files, where only some records are used."""
        if self.selection is None:
            return picks.record
        records = np.empty_like(picks.record)
        for file in np.unique(picks.file).tolist():
            chosen = picks.file == file
            records[chosen] = self.selection[file][picks.record[chosen]]
        return records

    def fetch(self, picks: Picks, together: Picks | None = None) -> Frames:
        """Bring records into memory.

        Args:
            picks: The records, in the order wanted.
            together: Records that will be wanted soon; what they lie in is held.

        Returns:
            Where the records lie.

        Raises:
            UsageError: The files need obstore, and this process was forked after they were opened.
        """
        records = self.numbers(picks)
        which = np.empty(records.size, np.int32)
        starts = np.empty(records.size, np.int64)
        buffers: list[Any] = []
        for file in np.flatnonzero(np.bincount(picks.file)).tolist():
            if self.files[file].mapped:
                chosen = slice(None) if len(self.files) == 1 else picks.file == file
                buffer, places = self.files[file].frames(0, self.files[file].count)
                which[chosen] = len(buffers)
                starts[chosen] = places[records[chosen]]
                buffers.append(buffer)
        frames = Frames(buffers, which, starts, adjacent=not self._gaps, lost=[])
        if self.mapped:
            return frames
        self._check_process()
        adjacent = self._fetch_stretches(picks.file, records, together, frames)
        return frames._replace(adjacent=adjacent and not self._gaps)

    def _fetch_stretches(
        self, file: NDArray[np.int32], records: Int64, together: Picks | None, out: Frames
    ) -> bool:
        """Fill in the records of files that are not mapped; return ``Frames.adjacent``."""
        wanted = self._stretches(file, records)
        if not wanted:
            return True
        if together is None:
            bytes_held = sum(self._stretch_bytes(*key) for key in wanted)
            if bytes_held > HOLD_BYTES:
                self._copy_out(wanted, records, out)
                return False
            kept = set(wanted)
        else:
            kept = set(self._stretches(together.file, self.numbers(together))) | set(wanted)
        held = self._hold(kept)
        for key, places in wanted.items():
            stretch = held[key]
            out.which[places] = len(out.buffers)
            out.starts[places] = stretch.starts[records[places] - self._first_of(key)]
            out.buffers.append(stretch.buffer)
            out.lost.extend(self._lost(stretch, key, places, records))
        return True

    def _edges_of(self, file: int) -> Int64:
        if file not in self._edges:
            self._edges[file] = _edges(self.files[file])
        return self._edges[file]

    def _stretches(
        self, file: NDArray[np.int32], records: Int64
    ) -> dict[tuple[int, int], NDArray[np.intp]]:
        """Return, for each stretch of files that are not mapped, where its records are wanted."""
        found: dict[tuple[int, int], NDArray[np.intp]] = {}
        for number in np.unique(file).tolist():
            if self.files[number].mapped:
                continue
            chosen = np.flatnonzero(file == number)
            stretch = np.searchsorted(self._edges_of(number), records[chosen], side="right") - 1
            for part in np.unique(stretch).tolist():
                found[number, part] = chosen[stretch == part]
        return found

    def _stretch_bytes(self, file: int, stretch: int) -> int:
        edges, source = self._edges_of(file), self.files[file]
        share = int(edges[stretch + 1] - edges[stretch]) / max(1, source.count)
        return int(source.data_size * share)

    def _first_of(self, key: tuple[int, int]) -> int:
        """Return the first record of a stretch in its file."""
        return int(self._edges_of(key[0])[key[1]])

    def _lost(
        self, stretch: Stretch, key: tuple[int, int], places: NDArray[np.intp], records: Int64
    ) -> Iterator[Lost]:
        """Yield the rows of lost records of a stretch of which some are wanted."""
        if stretch.lost is None or stretch.error is None:
            return
        file, before = key[0], self._first_of(key)
        edges = np.flatnonzero(np.diff(stretch.lost, prepend=False, append=False)) + before
        for first, stop in edges.reshape(-1, 2).tolist():
            inside = places[(records[places] >= first) & (records[places] < stop)]
            told = first
            if self.selection is not None and inside.size:  # the first of those in use
                used = self.selection[file]
                told = int(used[np.searchsorted(used, first)])
            if inside.size:
                yield Lost(stretch.error, inside, file, first, stop, told)

    def _read(self, file: int, stretch: int) -> Stretch:
        """Read a stretch; damage is for whoever wants its records."""
        first, last = self._edges_of(file)[stretch : stretch + 2].tolist()
        try:
            return Stretch(*self._read_sound(file, first, last))
        except CorruptRecordError as error:
            count = last - first
            nowhere, all_lost = np.zeros(count, np.int64), np.ones(count, np.bool_)
            return Stretch(b"", nowhere, all_lost, error.with_traceback(None))

    def _read_sound(self, file: int, first: int, last: int) -> Sound | Held:
        source = self.files[file]
        if not _forward_only(source):
            return source.sound_frames(first, last)
        if file not in self._forward:
            self._forward[file] = ForwardFrames(source)
        return self._forward[file].frames(first, last)

    def _hold(self, wanted: set[tuple[int, int]]) -> dict[tuple[int, int], Stretch]:
        """Return the stretches wanted, reading what is missing front to back; drop the others."""
        with self._lock:
            for key in set(self._held) - wanted:
                del self._held[key]
            for key in sorted(wanted - set(self._held)):
                self._held[key] = self._read(*key)
            return dict(self._held)

    def _copy_out(
        self, wanted: dict[tuple[int, int], NDArray[np.intp]], records: Int64, out: Frames
    ) -> None:
        """Copy single records out of many stretches, holding one stretch at a time."""
        copied = bytearray()
        for key in sorted(wanted):
            with self._lock:
                stretch = self._read(*key)
            out.lost.extend(self._lost(stretch, key, wanted[key], records))
            view = memoryview(stretch.buffer)
            inner = records[wanted[key]] - self._first_of(key)
            for place, number in zip(wanted[key].tolist(), inner.tolist(), strict=True):
                out.which[place] = len(out.buffers)
                out.starts[place] = len(copied)
                if stretch.lost is not None and stretch.lost[number]:
                    continue
                first = int(stretch.starts[number])
                copied += view[
                    first : first + int.from_bytes(view[first : first + 8], "little") + 16
                ]
        out.buffers.append(copied)

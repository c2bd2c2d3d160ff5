"""Reading records in order: a window over the uncompressed bytes, and an iterator of payloads."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Literal, overload

from tfrio.compression import open_chunks
from tfrio.errors import FileCutError, StoredDataError, precede
from tfrio.records.damage import Damage, DamagePolicy, DamageReport, ErrorMode
from tfrio.records.mapped import open_window
from tfrio.records.shards import each_source
from tfrio.records.walk import Chunk, walk
from tfrio.storage import Closing, is_stream, name_of
from tfrio.types import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfrio.compression import Compression, Member
    from tfrio.storage import Source
    from tfrio.types import PathsLike

__all__ = ["RecordStream", "read_records"]

_LENGTH_BYTES = 8
_FRAME_BYTES = 16
# Where a local file's end is nearer than this, a record that claims to reach past it is simply
# read to the end; farther, its claim is judged by the file's size without reading on.
_READ_ON = 64 << 20


class RecordStream(Closing):
    """A window that slides over the uncompressed bytes of one file.

    Take what is whole from ``buffer``, say so with ``advance``, ask for more with ``fill``. The
    buffer is reused: views of it die at the next ``fill``. It grows only as bytes really arrive, to
    4 MiB where large records follow one another, and to whatever a single record takes.

    Args:
        path: Local path, URL or file object.
        compression: ``"none"``, ``"gzip"`` or ``"zlib"``; None goes by the content.
        buffer_size: Bytes to hold, at first.
        start: Uncompressed offset to begin at, which must be that of a record.
        threads: Threads to inflate on, by default up to 4; 1 starts none.
        mapped: Map a large plain local file instead of copying its bytes. The buffer is then what
            the file holds now, so ``confirm`` what was taken from it.

    Raises:
        FileNotFoundError: Nothing there.
        NotTFRecordError: The forced compression does not fit the content.
    """

    def __init__(
        self,
        path: Source,
        *,
        compression: str | None = None,
        buffer_size: int = 1 << 20,
        start: int = 0,
        threads: int | None = None,
        mapped: bool = False,
    ) -> None:
        self.path = name_of(path)
        self._given = path
        self._intact: bool | None = None
        self.position = whole_number(start, "start", least=0)
        if threads is not None:
            whole_number(threads, "threads", least=0)
        self.from_start = not start
        self.records = 0
        self.damaged = 0
        self._source = open_chunks(path, compression, threads=threads, start=start)
        self._window = open_window(self._source, buffer_size, mapped=mapped)
        self._paused = self._broken = False
        self._late: StoredDataError | None = None
        self._watcher: Callable[[memoryview], None] | None = None

    @property
    def buffer(self) -> memoryview:
        """The bytes not yet consumed."""
        return self._window.buffer

    @property
    def past(self) -> memoryview:
        """Up to 64 KiB before ``buffer``, as far as they are still at hand."""
        return self._window.past

    @property
    def final(self) -> bool:
        """Whether no more bytes will come for the record at the start of ``buffer``."""
        return self._broken or self._paused or self._window.exhausted

    @property
    def compression(self) -> Compression:
        """How the file is compressed."""
        return self._source.compression

    @property
    def members(self) -> int:
        """Whole gzip members read so far; 0 for plain files."""
        return self._source.members

    @property
    def blocks(self) -> list[Member] | None:
        """The blocks read so far of a blocked gzip file; None where the file is something else."""
        return self._source.blocks

    @property
    def consumed(self) -> int:
        """Bytes of the (compressed) file read so far, for progress."""
        return self._window.consumed

    @property
    def size(self) -> int | None:
        """Size of the file as stored, in bytes; for remote files as the store tells it."""
        return self._source.size

    @property
    def unread(self) -> int:
        """Bytes that follow ``buffer`` in a plain local file; 0 where this is not known."""
        return self._window.unread

    def fill(self) -> bool:
        """Get more bytes behind those not yet consumed.

        Returns:
            False when there are no more.

        Raises:
            StoredDataError: The stored data is damaged, or was cut short while it was read, and
                all sound bytes before that have been handed out.
        """
        got = self._pull()
        error = None if got else self.take_late()
        if error is not None:
            raise error
        return got > 0

    def take_late(self) -> StoredDataError | None:
        """Return the error that the next ``fill`` would raise, which then does not."""
        error, self._late = self._late, None
        return None if error is None else self._placed(error)

    def more(self) -> bool:
        """Get more bytes like ``fill``, but leave an error for the next ``fill`` to raise."""
        return self._pull() > 0

    @property
    def broken(self) -> bool:
        """Whether the next ``fill`` raises."""
        return self._late is not None

    def _pull(self) -> int:
        """Read until the store is full, the data ends or damage is met, which is kept."""
        if self._late is not None or self.final or self._beyond():
            return 0
        got = 0
        try:
            got = self._window.pull()
        except StoredDataError as error:
            self._late = error
        if self._watcher is not None and got:
            self._watcher(self._window.buffer[-got:])
        return got

    def _beyond(self) -> bool:
        """Check whether the pending record claims more bytes than a large local file has left."""
        left = self._window.unread
        if left < _READ_ON or not self._window.full:
            return False
        pending = len(self.buffer)
        claim = int.from_bytes(self.buffer[:_LENGTH_BYTES], "little") + _FRAME_BYTES
        self._paused = claim > pending + left
        return self._paused

    def _placed(self, error: StoredDataError, *, one: bool = True) -> StoredDataError:
        """Say which record is concerned (or from which on), and how many whole ones precede it."""
        self._broken = not error.resumable
        error.record = self.records
        if isinstance(error, FileCutError):
            error.offset = self.position
            place = f"record {self.records} at offset {self.position}"
            error.message += (
                f": {place} is not whole" if one else f": from {place} on some are gone"
            )
        error.message += (
            f"; {precede(self.records - self.damaged)}. Fetch or write the file again, or keep "
            "every whole record with `tfrio repair`"
        )
        error.args = (error.message,)
        return error

    def intact(self) -> bool:
        """Tell whether the compressed data is sound to its end, by inflating it once more.

        Returns:
            False where it is damaged, and where a pipe or file object cannot be read twice.
        """
        if self._intact is None:
            given = self._given
            again = isinstance(given, str | os.PathLike) and not is_stream(given)
            self._intact = again and _inflates(given, self.compression)
        return self._intact

    def watch(
        self, watcher: Callable[[memoryview], None], *, stored: Callable[[bytes], None]
    ) -> None:
        """Show all bytes of a compressed file to others, in order, from the start.

        Args:
            watcher: Gets the uncompressed bytes; it must copy what it keeps.
            stored: Gets the compressed bytes, before what they inflate to is shown; perhaps on
                another thread.
        """
        self._watcher = watcher
        self._source.watch_stored(stored)

    def watch_stored(self, watcher: Callable[[bytes | memoryview], None]) -> None:
        """Show the bytes of a file as stored to ``watcher``, in order, from the start.

        Args:
            watcher: Gets them, perhaps on another thread; it must copy what it keeps.
        """
        if self.compression == "none":
            self._watcher = watcher
        else:
            self._source.watch_stored(watcher)

    def advance(self, nbytes: int, nrecords: int) -> None:
        """Consume bytes at the start of ``buffer``.

        Args:
            nbytes: How many bytes, at most ``len(buffer)``.
            nrecords: How many records they held.
        """
        self._window.drop(nbytes)
        self.position += nbytes
        self.records += nrecords
        self._paused = False

    def confirm(self, nbytes: int | None = None) -> None:
        """See that what was taken from ``buffer``, but not consumed yet, was the file's.

        Args:
            nbytes: How many bytes from the start of ``buffer``; None for all of it.

        Raises:
            FileCutError: A mapped file was cut short before their end, so some were zeros.
        """
        try:
            self._window.check(nbytes)
        except StoredDataError as error:
            raise self._placed(error, one=nbytes is None) from None

    def shorten(self) -> None:
        """Drop from ``buffer`` what a mapped file has lost; the next ``fill`` tells of it."""
        if self._late is None:
            try:
                self._window.pull()
            except StoredDataError as error:
                self._late, self._broken = error, False

    def jump(self, nbytes: int, nrecords: int = 0) -> None:
        """Account for bytes and records that will never arrive: those of a damaged block."""
        self.position += nbytes
        self.records += nrecords

    def close(self) -> None:
        """Release the file and threads."""
        self._window.close()

    def __del__(self) -> None:
        """Let the threads of a forgotten stream end; waiting for them here could hang."""
        if hasattr(self, "_source"):
            self._source.let_go()


def _inflates(path: Source, compression: Compression) -> bool:
    """Inflate a file to its end; tell whether all its checksums hold."""
    with closing(open_chunks(path, compression, threads=1)) as source:
        room = memoryview(bytearray(1 << 20))
        try:
            while source.readinto(room):
                pass
        except StoredDataError:
            return False
    return True


@overload
def read_records(
    path: PathsLike | Source,
    *,
    compression: str | None = ...,
    verify: bool = ...,
    errors: Literal["raise", "skip"] = ...,
    max_bad: int | None = ...,
    report: DamageReport | None = ...,
    start: int = ...,
    threads: int | None = ...,
) -> Iterator[bytes]:
    """Read payloads; damage raises or is left out."""


@overload
def read_records(
    path: PathsLike | Source,
    *,
    compression: str | None = ...,
    verify: bool = ...,
    errors: ErrorMode,
    max_bad: int | None = ...,
    report: DamageReport | None = ...,
    start: int = ...,
    threads: int | None = ...,
) -> Iterator[bytes | Damage]:
    """Read payloads, and with ``errors="return"`` damage in its place."""


def read_records(
    path: PathsLike | Source,
    *,
    compression: str | None = None,
    verify: bool = True,
    errors: ErrorMode = "raise",
    max_bad: int | None = None,
    report: DamageReport | None = None,
    start: int = 0,
    threads: int | None = None,
) -> Iterator[bytes | Damage]:
    """Read the payloads of one or more files, in order.

    Args:
        path: File, folder, glob, URL, file object, or several paths.
        compression: ``"none"``, ``"gzip"`` or ``"zlib"``; None goes by the content of each file.
        verify: Check each payload's CRC32C. That of the length is always checked.
        errors: ``"raise"``; ``"skip"`` drops damaged records, counts them in ``report`` and warns
            once per file; ``"return"`` yields a ``Damage`` in their place.
        max_bad: Most damaged records to skip or return before the next one raises.
        report: Filled with what was skipped, over all files.
        start: Uncompressed offset of the record to begin at, in each file.
        threads: Threads to inflate on, by default up to 4; 1 starts none.

    Yields:
        Payloads; with ``errors="return"`` also ``Damage``.

    Raises:
        CorruptRecordError: A record is damaged and ``errors`` or ``max_bad`` says to stop.
        NotTFRecordError: A file is something else.
        FileNotFoundError: Nothing there.
    """
    policy = DamagePolicy(errors, max_bad=max_bad, report=report)
    for source in each_source(path):
        with RecordStream(source, compression=compression, start=start, threads=threads) as stream:
            for event in walk(stream, verify=verify):
                if isinstance(event, Chunk):
                    yield from event.payloads()
                elif policy.take(event):
                    yield event
        policy.file_done(name_of(source))

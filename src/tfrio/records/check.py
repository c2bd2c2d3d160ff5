"""Check one file from end to end: every CRC, on several threads where it pays."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tfrio import _core
from tfrio.compression.source import usable_threads
from tfrio.errors import NotTFRecordError, StoredDataError
from tfrio.records.damage import Damage, seek_record, without_payload
from tfrio.records.reader import RecordStream
from tfrio.records.walk import Chunk, tally, walk
from tfrio.storage import is_regular, is_remote, name_of, open_read, read_full, refuse_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfrio.storage import BinaryReader, Source

__all__ = ["FileReport", "check_file", "crc_of", "digest_of"]

# A file is cut into pieces for threads only from this size on; below, one thread takes 20 ms.
_WORTH_CUTTING = 128 << 20
# Looked into in each file: enough to see what varies, and no more than 16 MiB of large patches.
_SAMPLE_RECORDS = 1000
_SAMPLE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class FileReport:
    """What checking one file found.

    Attributes:
        path: The file.
        records: Sound records.
        bytes: Size as stored; of a pipe, what came out of it; None where nothing could be read.
        data_bytes: Uncompressed bytes walked.
        compression: ``"none"``, ``"gzip"``, ``"zlib"``, or None when it could not be read.
        members: gzip members; 0 for plain files.
        damages: Damaged places, in order.
        problem: Why the file could not be read as TFRecord at all.
        digest: SHA-256 of the stored bytes in hex, when asked for.
        crc: CRC32C of the stored bytes, as manifests of exports write it; only of remote files,
            which are not to be read twice, and not in ``to_dict``.
    """

    path: str
    records: int
    bytes: int | None
    data_bytes: int
    compression: str | None
    members: int
    damages: tuple[Damage, ...] = ()
    problem: str | None = None
    digest: str | None = None
    crc: str | None = None

    @property
    def good(self) -> int:
        """Sound records."""
        return self.records

    @property
    def bad(self) -> int:
        """Records given up; a damaged place that does not tell how many it held counts once."""
        return sum(damage.lost_records for damage in self.damages)

    @property
    def ok(self) -> bool:
        """Whether all is well."""
        return not self.damages and self.problem is None

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "path": self.path,
            "ok": self.ok,
            "records": self.records,
            "bad": self.bad,
            "bytes": self.bytes,
            "data_bytes": self.data_bytes,
            "compression": self.compression,
            "members": self.members,
            "damages": [d.to_dict() for d in self.damages],
            "problem": self.problem,
            "digest": self.digest,
        }


class _Stored:
    """The checksums of a file's stored bytes, taken while they are read."""

    def __init__(self, *, digest: bool) -> None:
        self._crc = 0
        self._digest = hashlib.sha256() if digest else None

    def see(self, piece: bytes | memoryview) -> None:
        """Take the next bytes."""
        self._crc = _core.crc32c(piece, self._crc)
        if self._digest is not None:
            self._digest.update(piece)

    @property
    def crc(self) -> str:
        """Return the CRC32C, as manifests of exports write it."""
        return f"crc32c:{self._crc:08x}"

    @property
    def digest(self) -> str | None:
        """Return the SHA-256 in hex, None where none was asked for."""
        return None if self._digest is None else self._digest.hexdigest()


def digest_of(path: Source) -> str:
    """Return the SHA-256 of a file's stored bytes, in hex."""
    digest = hashlib.sha256()
    reader = open_read(path)
    try:
        buffer = memoryview(bytearray(1 << 20))
        while got := read_full(reader, buffer):
            digest.update(buffer[:got])
    finally:
        reader.close()
    return digest.hexdigest()


def crc_of(reader: BinaryReader) -> str:
    """Return the CRC32C of what a reader still holds, as manifests of exports write it."""
    stored = _Stored(digest=False)
    block = memoryview(bytearray(1 << 20))
    while got := reader.readinto(block):
        stored.see(block[:got])
    return stored.crc


def check_file(
    path: Source,
    *,
    compression: str | None = None,
    start: int = 0,
    verify: bool = True,
    threads: int | None = None,
    digest: bool = False,
    look: Callable[[list[bytes]], None] | None = None,
    advanced: Callable[[int], None] | None = None,
) -> FileReport:
    """Check every record of one file.

    Args:
        path: Local path, URL or file object.
        compression: None goes by the content.
        start: Uncompressed offset of the record to begin at.
        verify: Check payload CRCs too.
        threads: Threads for this file, by default up to 4.
        digest: Also compute the SHA-256 of the stored bytes.
        look: Called once with the first sound payloads: 1,000, or fewer that exceed 16 MiB.
        advanced: Called with the number of stored bytes done since the last call.

    Returns:
        What was found; damage never raises here.

    Raises:
        NotTFRecordError: A forced compression does not fit.
        OSError: The file cannot be read.
        UsageError: A digest of a pipe is asked for.
    """
    if digest:
        refuse_stream(path, "checking with a digest")
    report = advanced or (lambda _: None)
    workers = usable_threads(threads)
    if is_remote(path) and not start:
        stored = _Stored(digest=digest)
        found = _check_in_order(path, compression, 0, verify, workers, look, report, stored)
        if found.ok:  # else it may not have been read to its end
            return replace(found, digest=stored.digest, crc=stored.crc)
        return found if not digest else replace(found, digest=digest_of(path))
    size = _worth_cutting(path, compression, start) if workers > 1 else 0
    fast = _check_in_pieces(path, start, start + size, verify, workers, report) if size else None
    if fast is not None and look is not None:
        look(_first_payloads(path, start))
    found = fast or _check_in_order(path, compression, start, verify, workers, look, report)
    return found if not digest else replace(found, digest=digest_of(path))


def _worth_cutting(path: Source, compression: str | None, start: int) -> int:
    """Return the bytes from ``start`` on of a large plain local file, 0 for all others."""
    if not is_regular(path):
        return 0
    with RecordStream(path, compression=compression, start=start, threads=1) as stream:
        large = stream.compression == "none" and stream.unread >= _WORTH_CUTTING
        return stream.unread if large else 0


def _check_in_order(
    path: Source,
    compression: str | None,
    start: int,
    verify: bool,
    threads: int,
    look: Callable[[list[bytes]], None] | None,
    advanced: Callable[[int], None],
    stored: _Stored | None = None,
) -> FileReport:
    damages: list[Damage] = []
    records, told = 0, 0
    problem = None
    with RecordStream(path, compression=compression, start=start, threads=threads) as stream:
        if stored is not None:
            stream.watch_stored(stored.see)
        try:
            for event in _steps(stream, verify, look):
                if isinstance(event, Damage):
                    damages.append(without_payload(event))
                else:
                    records += event
                advanced(stream.consumed - told)
                told = stream.consumed
        except NotTFRecordError as error:
            problem = error.message
        return FileReport(
            path=stream.path,
            records=records,
            bytes=stream.consumed if stream.size is None else stream.size,
            data_bytes=stream.position - start,
            compression=stream.compression,
            members=stream.members,
            damages=tuple(damages),
            problem=problem,
        )


class _Sample:
    """The first payloads of a file."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self._room = _SAMPLE_BYTES

    @property
    def full(self) -> bool:
        """Tell whether the sample has all it takes."""
        return len(self.payloads) >= _SAMPLE_RECORDS or self._room <= 0

    def add(self, chunk: Chunk) -> None:
        """Take payloads of a chunk while there is room."""
        for payload in () if self.full else chunk.payloads():
            self.payloads.append(payload)
            self._room -= len(payload)
            if self.full:
                return


def _steps(
    stream: RecordStream, verify: bool, look: Callable[[list[bytes]], None] | None
) -> Iterator[int | Damage]:
    """Yield the records of each step and damages, as ``tally``; show the first payloads."""
    if look is None:
        yield from tally(stream, verify=verify)
        return
    sample = _Sample()
    for event in walk(stream, verify=verify):
        if isinstance(event, Chunk):
            sample.add(event)
            yield len(event.spans)
        else:
            yield event
    look(sample.payloads)


def _first_payloads(path: Source, start: int) -> list[bytes]:
    sample = _Sample()
    with RecordStream(path, start=start, threads=1) as stream:
        for event in walk(stream):
            if isinstance(event, Chunk):
                sample.add(event)
            if sample.full:
                break
    return sample.payloads


@dataclass(frozen=True, slots=True)
class _Piece:
    """What one thread saw: sound records from ``first`` on, the next one at ``stop``."""

    first: int | None
    stop: int
    records: int
    sound: bool


def _check_in_pieces(
    path: Source,
    start: int,
    end: int,
    verify: bool,
    threads: int,
    advanced: Callable[[int], None],
) -> FileReport | None:
    """Check pieces of a plain local file side by side.

    Each piece begins at the first record found in it. The verdict counts only when every piece is
    sound and ends where the next one begins: then it is what one walk from the start would say.

    Returns:
        The report of a sound file, None when it must be walked in order.
    """
    bounds = [start + (end - start) * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads, "verify") as pool:
        jobs = [
            pool.submit(_check_piece, path, bounds[i], bounds[i + 1], i > 0, verify, advanced)
            for i in range(threads)
        ]
        pieces = [job.result() for job in jobs]
    at, records = start, 0
    for piece in pieces:
        if not piece.sound or (piece.first is not None and piece.first != at):
            advanced(start - end)  # begin again
            return None
        if piece.first is not None:
            at, records = piece.stop, records + piece.records
    if at != end:
        advanced(start - end)
        return None
    return FileReport(name_of(path), records, end, end - start, "none", 0)


def _check_piece(
    path: Source,
    begin: int,
    end: int,
    search: bool,
    verify: bool,
    advanced: Callable[[int], None],
) -> _Piece:
    """Check the records that start in [begin, end)."""
    with RecordStream(path, compression="none", start=begin, threads=1) as stream:
        if search and (not seek_record(stream) or stream.position >= end):
            advanced(end - begin)
            return _Piece(None, begin, 0, sound=True)
        first, told = stream.position, begin
        while stream.position < end:
            view = stream.buffer[: end - stream.position]
            step = _core.count(view, 0, verify, False)
            stream.advance(step.consumed, step.records)
            sound = step.fault is None and _went_on(stream, end, verify)
            advanced(min(stream.position, end) - told)
            told = min(stream.position, end)
            if not sound:
                advanced(end - told)
                return _Piece(first, stream.position, stream.records, sound=False)
        return _Piece(first, stream.position, stream.records, sound=True)


def _went_on(stream: RecordStream, end: int, verify: bool) -> bool:
    """Step across like ``_one_across``; a file cut short meanwhile is told by the walk in order."""
    try:
        return _one_across(stream, end, verify)
    except StoredDataError:
        return False


def _one_across(stream: RecordStream, end: int, verify: bool) -> bool:
    """Get more bytes; step over the record that reaches across ``end``. False if it is damaged."""
    if stream.position + len(stream.buffer) < end:
        return stream.fill()
    while stream.position < end:
        step = _core.scan(stream.buffer, 0, 1, verify, stream.final)
        stream.advance(step.consumed, len(step.spans))
        if step.fault is not None or (not len(step.spans) and not stream.fill()):
            return False
    return True

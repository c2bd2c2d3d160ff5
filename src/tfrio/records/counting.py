"""How many records, and the first few of them."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfrio.compression.source import usable_threads
from tfrio.errors import many
from tfrio.records.damage import Damage
from tfrio.records.headers import header_offsets
from tfrio.records.index import read_blocks
from tfrio.records.reader import RecordStream, read_records
from tfrio.records.shards import expand
from tfrio.records.walk import tally
from tfrio.storage import is_regular, size_of
from tfrio.types import whole_number

if TYPE_CHECKING:
    from tfrio.types import PathsLike

__all__ = ["CountReport", "FileCount", "count", "head"]


@dataclass(frozen=True, slots=True)
class FileCount:
    """Records and stored bytes of one file."""

    path: str
    records: int
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {"path": self.path, "records": self.records, "bytes": self.bytes}


@dataclass(frozen=True, slots=True)
class CountReport:
    """Records and stored bytes, file by file."""

    files: tuple[FileCount, ...]

    @property
    def records(self) -> int:
        """Records in all files."""
        return sum(file.records for file in self.files)

    @property
    def bytes(self) -> int:
        """Stored bytes of all files."""
        return sum(file.bytes for file in self.files)

    def __str__(self) -> str:
        """Return the totals in one line."""
        files = f"{len(self.files)} {many(len(self.files), 'file')}"
        return f"{self.records} {many(self.records, 'record')} in {files}, {self.bytes} bytes"

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        files = [file.to_dict() for file in self.files]
        return {"files": files, "records": self.records, "bytes": self.bytes}


def count(
    paths: PathsLike,
    *,
    split: str | None = None,
    verify: bool = False,
    threads: int | None = None,
) -> CountReport:
    """Count records.

    Args:
        paths: Files, folders, globs, shard prefixes or URLs.
        split: Only shards of this split.
        verify: Check payload CRCs too. Without, plain local files are read only at their record
            headers, whose CRCs are always checked, and blocked gzip only at its members' headers.
        threads: Threads over all files, by default up to 4.

    Returns:
        One entry a file, and totals.

    Raises:
        CorruptRecordError: A file is damaged or cut.
        NotTFRecordError: A file is something else.
    """
    files = expand(paths, split=split)
    workers = usable_threads(threads)
    with ThreadPoolExecutor(workers, "count") as pool:
        return CountReport(tuple(pool.map(lambda file: _count_file(file, verify), files)))


def _count_file(path: str, verify: bool) -> FileCount:
    quick = None if verify else _count_headers(path)
    if quick is not None:
        return FileCount(path, quick, size_of(path) or 0)
    records = 0
    with RecordStream(path) as stream:
        for event in tally(stream, verify=verify):
            if isinstance(event, Damage):
                raise event.error()
            records += event
        return FileCount(path, records, stream.consumed)


def _count_headers(path: str) -> int | None:
    """Count by headers alone; None where that cannot be done or something is wrong."""
    if not is_regular(path):
        return None
    with RecordStream(path, buffer_size=64, threads=1) as stream:
        kind = stream.compression
    if kind == "gzip":
        blocks = read_blocks(path)
        return int(blocks.first[-1]) if blocks is not None else None
    found = header_offsets(path) if kind == "none" else None
    return len(found[0]) if found is not None else None


def head(paths: PathsLike, n: int = 1, *, split: str | None = None) -> list[bytes]:
    """Return the first payloads, reading no more than needed.

    Args:
        paths: Files, folders, globs, shard prefixes or URLs.
        n: How many.
        split: Only shards of this split.

    Raises:
        CorruptRecordError: A record before the n-th is damaged.
    """
    records = read_records(expand(paths, split=split), threads=1)
    try:
        return list(itertools.islice(records, whole_number(n, "n", least=0)))
    finally:
        records.close()  # type: ignore[attr-defined]

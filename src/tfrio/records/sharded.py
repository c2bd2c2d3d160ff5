"""Writing many shards as one: by number of records or bytes, or dealt out over a fixed number."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tfrio.compression import BLOCK_SIZE, DEFAULT_LEVEL
from tfrio.errors import UsageError
from tfrio.records.names import shard_path
from tfrio.records.writer import RecordWriter
from tfrio.storage import (
    FORKED,
    Closing,
    at_fork,
    is_remote,
    local_path,
    publish,
    temporary_beside,
)
from tfrio.types import path_text, whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfrio.types import PathLike

__all__ = ["ShardedWriter", "one_limit"]

_FRAME_BYTES = 16


def one_limit(
    shards: int | None, max_records: int | None, max_bytes: int | None
) -> tuple[int | None, int | None, int | None]:
    """Return the one way to divide records among shards, the others None.

    Raises:
        UsageError: Not exactly one is given, or it is no whole number of at least 1.
    """
    if sum(limit is not None for limit in (shards, max_records, max_bytes)) != 1:
        raise UsageError("give one of shards, max_records and max_bytes, at least 1")
    return (
        None if shards is None else whole_number(shards, "shards"),
        None if max_records is None else whole_number(max_records, "max_records"),
        None if max_bytes is None else whole_number(max_bytes, "max_bytes"),
    )


class ShardedWriter(Closing):
    """Write records to several files.

    With ``shards`` records are dealt out in turn over so many files. With ``max_records`` or
    ``max_bytes`` a file is filled before the next one begins. No shard bears its final name before
    all are complete.

    Args:
        prefix: Folder, made where it is missing, and name before the number: ``out/train``.
        suffix: What follows the number; a name ending ``.gz`` means gzip.
        shards: Number of files.
        max_records: Most records in a file.
        max_bytes: Most uncompressed bytes in a file; one larger record still gets its own.
        total: Whether names tell the number of shards (``-00000-of-00002``) or not (``-00000``).
        compression: See ``RecordWriter``.
        level: See ``RecordWriter``.
        block_size: See ``RecordWriter``.
        threads: See ``RecordWriter``.
        fsync: See ``RecordWriter``.

    Raises:
        UsageError: Not exactly one of ``shards``, ``max_records``, ``max_bytes``, or below 1.
    """

    def __init__(
        self,
        prefix: PathLike,
        *,
        suffix: str = ".tfrecord",
        shards: int | None = None,
        max_records: int | None = None,
        max_bytes: int | None = None,
        total: bool = True,
        compression: str | None = None,
        level: int = DEFAULT_LEVEL,
        block_size: int = BLOCK_SIZE,
        threads: int | None = None,
        fsync: bool = False,
    ) -> None:
        self.closed = True  # until everything below succeeded
        shards, max_records, max_bytes = one_limit(shards, max_records, max_bytes)
        self.prefix = path_text(prefix)
        if is_remote(self.prefix):
            raise UsageError("sharded writing needs a local folder: names change at the end")
        self._suffix = path_text(suffix)
        self._total = total
        self._max_records = max_records or (1 << 62)
        self._max_bytes = max_bytes or (1 << 62)
        by_name = "gzip" if self._suffix.lower().endswith(".gz") else "none"
        self._new = functools.partial(
            RecordWriter,
            compression=compression or by_name,
            level=level,
            block_size=block_size,
            threads=1 if shards and threads is None else threads,
            fsync=fsync,
        )
        self._temporary: list[Path] = []
        self._writers: list[RecordWriter] = []
        self._bytes = 0
        self._why_closed = "writer is closed"
        self.records = 0
        self.paths: list[str] = []
        self._dealing = shards is not None
        local_path(self.prefix).parent.mkdir(parents=True, exist_ok=True)
        for _ in range(shards or 0):
            self._open()
        self.closed = False
        at_fork(self)

    def _open(self) -> RecordWriter:
        """Open the next shard under a temporary name."""
        final = Path(shard_path(self.prefix, len(self._writers), None, self._suffix))
        self._temporary.append(temporary_beside(final))
        self._writers.append(self._new(self._temporary[-1]))
        return self._writers[-1]

    def _writer(self, size: int) -> RecordWriter:
        """Return the shard that the next record of ``size`` framed bytes goes to."""
        if self._dealing:
            return self._writers[self.records % len(self._writers)]
        if self._writers:
            current = self._writers[-1]
            over = current.records and self._bytes + size > self._max_bytes
            if current.records < self._max_records and not over:
                self._bytes += size
                return current
            current.close()
        self._bytes = size
        return self._open()

    def write(self, payload: bytes | bytearray | memoryview) -> None:
        """Write one record to the shard whose turn it is.

        Args:
            payload: Its payload.

        Raises:
            OSError: The disk is full, or another failure; no shard keeps a name.
            UsageError: The writer is closed.
        """
        self._check_open()
        try:
            self._writer(len(payload) + _FRAME_BYTES).write(payload)
        except BaseException:
            self.abort()
            raise
        self.records += 1

    def write_framed(self, data: bytes | memoryview, ends: NDArray[np.int64]) -> None:
        """Write records that are framed already.

        Args:
            data: The frames, one after the other.
            ends: int64 (n,), the end of each record in ``data``, in bytes.

        Raises:
            OSError: As for ``write``.
            UsageError: The writer is closed.
        """
        self._check_open()
        view, begin = memoryview(data).cast("B"), 0
        for end in ends.tolist():
            one = np.array([end - begin], np.int64)
            try:
                self._writer(end - begin).write_framed(view[begin:end], one)
            except BaseException:
                self.abort()
                raise
            self.records += 1
            begin = end

    def _check_open(self) -> None:
        if self.closed:
            raise UsageError(f"{self._why_closed}: {self.prefix}")

    def close(self) -> list[str]:
        """Complete all shards and give them their names; a second call does nothing.

        Returns:
            The files written.

        Raises:
            OSError: As for ``write``.
        """
        if self.closed:
            return self.paths
        try:
            if not self._writers:
                self._open()
            for writer in self._writers:
                writer.close()
        except BaseException:
            self.abort()
            raise
        self.closed = True
        total = len(self._writers) if self._total else None
        for number, temporary in enumerate(self._temporary):
            final = shard_path(self.prefix, number, total, self._suffix)
            publish(temporary, Path(final))
            self.paths.append(final)
        return self.paths

    def abort(self) -> None:
        """Give up: leave no shard."""
        if self.closed:
            return
        self.closed = True
        for writer in self._writers:
            writer.abort()
        for temporary in self._temporary:
            temporary.unlink(missing_ok=True)

    def forked(self) -> None:
        """Be closed in a forked child: the shards are its parent's to finish."""
        if not self.closed:
            self.closed = True
            self._why_closed = f"writer {FORKED}"

    def __del__(self) -> None:
        """Give up a forgotten writer, with a warning."""
        if not getattr(self, "closed", True):
            self.forgotten(self.prefix, self.records)

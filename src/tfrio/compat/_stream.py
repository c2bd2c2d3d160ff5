"""Parts of a record file, a window of bytes at a time, with the errors callers know by heart."""

from __future__ import annotations

import contextlib
import os
import stat
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tfrio import _core
from tfrio.compression import detect
from tfrio.errors import NotTFRecordError
from tfrio.records.damage import recover
from tfrio.records.reader import RecordStream
from tfrio.storage import Closing
from tfrio.types import path_text

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Part",
    "PartStream",
    "as_runtime_error",
    "checked_compression",
    "open_part",
    "opened",
    "rewind",
]

_CUT: Final = {
    "payload-cut": "Failed to read the record.",
    "too-long": "Failed to read the record.",
    "footer-cut": "Failed to read the end token.",
}
_COMPRESSIONS: Final = {"": "none", "none": "none", "gzip": "gzip", "zlib": "zlib"}
_HEADER, _FRAME = 12, 16
_HEAD = 1024  # bytes that tell a compressed file from a plain one
_WINDOW = 1 << 20


class Part(NamedTuple):
    """A run of records: bytes [start, stop) of the uncompressed data, None for up to the end."""

    start: int = 0
    stop: int | None = None
    first: int = 0
    """Number of the first record, where known."""


def checked_compression(compression_type: Any) -> str | None:
    """Return the name of a compression as the floors below spell it.

    Args:
        compression_type: ``"gzip"`` or ``"zlib"`` in either case, ``""`` for none, or None.

    Returns:
        ``"none"``, ``"gzip"``, ``"zlib"``, or None: go by the content.

    Raises:
        ValueError: Something else.
    """
    if compression_type is None:
        return None
    if isinstance(compression_type, str) and compression_type.lower() in _COMPRESSIONS:
        return _COMPRESSIONS[compression_type.lower()]
    raise ValueError(
        "compression_type should be either 'gzip' or None (or 'zlib', or '' for none), "
        f"not {compression_type!r}"
    )


@contextlib.contextmanager
def opened(data_path: Any) -> Iterator[Any]:
    """Bring a path to what the floors below take: bytes decoded, a descriptor opened.

    Args:
        data_path: str, bytes, path-like, URL, file object, or a file descriptor, which is closed
            at the end.

    Yields:
        A path, URL or file object.
    """
    if isinstance(data_path, int):
        with os.fdopen(data_path, "rb") as file:
            yield file
    else:
        yield os.fsdecode(data_path) if isinstance(data_path, bytes) else data_path


class PartStream(Closing, ABC):
    """A window that slides over one part of a record file.

    Attributes:
        path: What the file is called.
        compression: How it is compressed.
    """

    path: str
    compression: str

    @property
    @abstractmethod
    def position(self) -> int:
        """Uncompressed offset of the start of ``buffer``."""

    @property
    @abstractmethod
    def record(self) -> int:
        """Number of the record at the start of ``buffer``."""

    @property
    @abstractmethod
    def buffer(self) -> memoryview:
        """The bytes not yet consumed; they die at the next ``fill`` or ``rest``."""

    @property
    @abstractmethod
    def final(self) -> bool:
        """Whether ``buffer`` reaches to the end of the part."""

    @abstractmethod
    def fill(self) -> None:
        """Get more bytes behind those not yet consumed."""

    @abstractmethod
    def advance(self, nbytes: int, nrecords: int) -> None:
        """Consume bytes, and the records they held, at the start of ``buffer``.

        Raises:
            RuntimeError: The file was cut short, so that they are not its own.
        """

    @abstractmethod
    def confirm(self) -> None:
        """See that what was taken from ``buffer``, but not consumed yet, was the file's.

        Raises:
            RuntimeError: The file was cut short.
        """

    @abstractmethod
    def rest(self) -> None:
        """Let go of what is not needed until the next batch."""

    @abstractmethod
    def close(self) -> None:
        """Release the file."""

    @abstractmethod
    def _damaged(self) -> RecordStream:
        """Return a stream that stands where ``buffer`` begins, to be told what is wrong there."""

    def where(self, row: int) -> str:
        """Return how an error names a record.

        Args:
            row: How many records it lies behind the start of ``buffer``.

        Returns:
            Words to put behind a sentence.
        """
        return f" Record {self.record + row} of {self.path}."

    def error(self, fault: _core.Fault) -> RuntimeError:
        """Return the exception for damage at the start of ``buffer``.

        Args:
            fault: What native code reported there.

        Returns:
            ``RuntimeError`` with the well-known text where the data ends too early, else
            ``CorruptRecordError``, which is a ``RuntimeError`` too.
        """
        self.confirm()
        with self._damaged() as stream:
            try:
                error = recover(stream, fault).error()
            except NotTFRecordError as stranger:
                return as_runtime_error(stranger)
        text = _CUT.get(fault.code)
        if fault.code == "header-cut":
            short = fault.got < 8
            text = "Failed to read the record size." if short else "Failed to read the start token."
        if text is None:
            return error
        made = RuntimeError(f"{text} {error.message}")
        made.__cause__ = error
        return made


class _Streamed(PartStream):
    """A part that is read in order: compressed files, pipes, URLs, file objects."""

    def __init__(
        self, source: Any, part: Part, compression: str | None, *, threads: int | None
    ) -> None:
        try:
            self._stream = RecordStream(
                source, compression=compression, start=part.start, threads=threads
            )
        except NotTFRecordError as error:
            raise as_runtime_error(error) from error
        self._stream.records = part.first
        self._stop = part.stop
        self.path = self._stream.path
        self.compression = self._stream.compression

    @property
    def position(self) -> int:
        """Uncompressed offset of the start of ``buffer``."""
        return self._stream.position

    @property
    def record(self) -> int:
        """Number of the record at the start of ``buffer``."""
        return self._stream.records

    @property
    def buffer(self) -> memoryview:
        """The bytes not yet consumed."""
        buffer = self._stream.buffer
        return buffer if self._stop is None else buffer[: self._stop - self._stream.position]

    @property
    def final(self) -> bool:
        """Whether ``buffer`` reaches to the end of the part."""
        if self._stop is None:
            return self._stream.final
        held = self._stream.position + len(self._stream.buffer)
        return self._stream.final or held >= self._stop

    def fill(self) -> None:
        """Get more bytes."""
        self._stream.fill()

    def advance(self, nbytes: int, nrecords: int) -> None:
        """Consume bytes at the start of ``buffer``."""
        self._stream.advance(nbytes, nrecords)

    def confirm(self) -> None:
        """Do nothing: what was read stays as it was."""

    def rest(self) -> None:
        """Keep everything: it cannot be had again cheaply."""

    def close(self) -> None:
        """Release the file."""
        self._stream.close()

    def _damaged(self) -> RecordStream:
        return self._stream


class _Mapped(PartStream):
    """A part of a plain local file, mapped into memory.

    Args:
        path: The file.
        part: Which bytes.
        brief: Whether ``rest`` lets go of the file, for readers of very many files.
    """

    compression = "none"

    def __init__(self, path: str, part: Part, *, brief: bool) -> None:
        self.path = path
        self._brief = brief
        self._position, self._record = part.start, part.first
        self._view = memoryview(b"")
        self._map: _core.FileMap | None = None
        self._size = _WINDOW
        self._stop = part.stop
        end = len(self._mapping())
        self._stop = end if part.stop is None else min(part.stop, end)

    def _mapping(self) -> memoryview:
        if self._map is None:
            with Path(self.path).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                self._map = _core.FileMap(self.path, file.fileno(), 0, size)
            self._view = memoryview(self._map)
        return self._view

    @property
    def position(self) -> int:
        """Uncompressed offset of the start of ``buffer``."""
        return self._position

    @property
    def record(self) -> int:
        """Number of the record at the start of ``buffer``."""
        return self._record

    @property
    def buffer(self) -> memoryview:
        """The bytes not yet consumed."""
        assert self._stop is not None
        end = min(self._position + self._size, self._stop)
        return self._mapping()[self._position : end]

    @property
    def final(self) -> bool:
        """Whether ``buffer`` reaches to the end of the part."""
        assert self._stop is not None
        return self._position + self._size >= self._stop

    def fill(self) -> None:
        """Look farther: the record at the start is longer than the window."""
        self._size *= 2

    def advance(self, nbytes: int, nrecords: int) -> None:
        """Consume bytes at the start of ``buffer``."""
        self._check(self._position + nbytes)
        self._position += nbytes
        self._record += nrecords

    def confirm(self) -> None:
        """See that what was taken from ``buffer`` was the file's."""
        assert self._stop is not None
        self._check(min(self._position + self._size, self._stop))

    def _check(self, end: int) -> None:
        if self._map is not None and not self._map.whole(min(end, len(self._map))):
            raise RuntimeError(
                f"Failed to read the record. {self.path} was cut short since it was opened"
            )

    def rest(self) -> None:
        """Let go of the file, when brief."""
        if self._brief:
            self.close()

    def close(self) -> None:
        """Release the file."""
        self._view, self._map = memoryview(b""), None  # unmapped with the last view of it

    def _damaged(self) -> RecordStream:
        stream = RecordStream(self.path, compression="none", start=self._position)
        stream.records = self._record
        stream.fill()
        return stream


def _is_plain_file(source: Any, compression: str | None) -> bool:
    """Tell whether ``source`` is a local regular file that holds bare records."""
    if compression not in (None, "none") or not isinstance(source, str | os.PathLike):
        return False
    try:
        status = Path(source).stat()
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
            return False
        with Path(source).open("rb") as file:
            return compression == "none" or detect(file.read(_HEAD)) == "none"
    except (OSError, ValueError):
        return False  # a URL, or opening it properly says what is wrong


def open_part(
    source: Any, part: Part, compression: str | None, *, brief: bool = False
) -> PartStream:
    """Open one part of a record file.

    Args:
        source: Path, URL or file object; one that can seek is read from its beginning.
        part: Which bytes.
        compression: How the file is compressed; None goes by the content.
        brief: One of very many files: hold it open only while reading, where it allows that, and
            start no threads for it.

    Returns:
        The stream; close it.

    Raises:
        RuntimeError: The file is compressed in another way than said.
        FileNotFoundError: No such file.
    """
    if _is_plain_file(source, compression):
        with contextlib.suppress(OSError):  # some file systems map no files
            return _Mapped(path_text(source), part, brief=brief)
    rewind(source)
    return _Streamed(source, part, compression, threads=1 if brief else None)


def rewind(source: Any) -> None:
    """Put a file object at its beginning, where it can seek.

    Args:
        source: Path, URL or file object.
    """
    if hasattr(source, "seekable") and source.seekable():
        source.seek(0)


def as_runtime_error(error: NotTFRecordError) -> RuntimeError:
    """Return the same message in the class that readers of records have always caught.

    Args:
        error: A file that holds something else.

    Returns:
        The exception, not yet raised.
    """
    made = RuntimeError(error.message)
    made.__cause__ = error
    return made

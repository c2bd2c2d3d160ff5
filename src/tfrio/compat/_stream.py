"""Parts of a record file, a window of bytes at a time, with the errors callers know by heart."""

from __future__ import annotations

import contextlib
import functools
import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tfrio.errors import NotTFRecordError
from tfrio.records.damage import recover
from tfrio.records.reader import RecordStream
from tfrio.storage import Closing, is_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfrio import _core

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
# Shown at once, though more may be mapped: what is made of it then stays in the cache.
_LOOK: Final = 1 << 20


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


class PartStream(Closing):
    """A window that slides over one part of a record file.

    Args:
        source: Path, URL or file object.
        part: Which bytes.
        compression: None goes by the content.
        brief: Whether ``rest`` lets go of a plain local file, for readers of very many files.

    Attributes:
        path: What the file is called.
        compression: How it is compressed.
    """

    def __init__(self, source: Any, part: Part, compression: str | None, *, brief: bool) -> None:
        self._open = functools.partial(
            RecordStream, source, threads=1 if brief else None, mapped=True
        )
        try:
            stream = self._open(compression=compression, start=part.start)
        except NotTFRecordError as error:
            raise as_runtime_error(error) from error
        stream.records = part.first
        self._held: RecordStream | None = stream
        self._stop = part.stop
        self._look = _LOOK
        self._rest = (part.start, part.first)
        self.path = stream.path
        self.compression = stream.compression
        self._brief = brief and self.compression == "none" and is_regular(source)

    @property
    def _stream(self) -> RecordStream:
        if self._held is None:
            position, record = self._rest
            self._held = self._open(compression="none", start=position)
            self._held.records = record
            self._held.fill()
        return self._held

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
        """The bytes not yet consumed; they die at the next ``fill`` or ``rest``."""
        stream = self._stream
        left = self._look if self._stop is None else self._stop - stream.position
        return stream.buffer[: min(left, self._look)]

    @property
    def final(self) -> bool:
        """Whether ``buffer`` reaches to the end of the part."""
        stream = self._stream
        if self._stop is not None and stream.position + self._look >= self._stop:
            return stream.final or stream.position + len(stream.buffer) >= self._stop
        return stream.final and len(stream.buffer) <= self._look

    def fill(self) -> None:
        """Get more bytes behind those not yet consumed."""
        if len(self._stream.buffer) > self._look:
            self._look *= 2  # the record at the start is longer
        else:
            self._stream.fill()

    def confirm(self) -> None:
        """See that what was taken from ``buffer``, but not consumed yet, was the file's.

        Raises:
            RuntimeError: The file was cut short.
        """
        self._stream.confirm(len(self.buffer))

    def advance(self, nbytes: int, nrecords: int) -> None:
        """Consume bytes, and the records they held, at the start of ``buffer``.

        Raises:
            RuntimeError: The file was cut short, so that they are not its own.
        """
        self._stream.confirm(nbytes)
        self._stream.advance(nbytes, nrecords)

    def rest(self) -> None:
        """Let go of a plain file, when brief; else what was read cannot be had again cheaply."""
        if self._brief and self._held is not None:
            self._rest = (self._held.position, self._held.records)
            self.close()

    def close(self) -> None:
        """Release the file."""
        if self._held is not None:
            self._held.close()
            self._held = None

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
        with self._stream as stream:
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
    rewind(source)
    return PartStream(source, part, compression, brief=brief)


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

"""Parts of a record file, a window of bytes at a time, with the errors callers know by heart."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from tfrio import _core
from tfrio.errors import NotTFRecordError
from tfrio.records.damage import recover
from tfrio.records.reader import RecordStream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    import numpy.typing as npt

__all__ = ["Part", "PartStream", "checked_compression", "header_offsets", "source_of"]

_CUT: Final = {
    "payload-cut": "Failed to read the record.",
    "too-long": "Failed to read the record.",
    "footer-cut": "Failed to read the end token.",
}
_COMPRESSIONS: Final = {"": "none", "none": "none", "gzip": "gzip", "zlib": "zlib"}


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


def source_of(data_path: Any) -> Any:
    """Return a path as the floors below take it: bytes decoded, a descriptor opened.

    Args:
        data_path: str, bytes, path-like, URL, file object, or a file descriptor.

    Returns:
        A path, URL or file object.
    """
    if isinstance(data_path, bytes):
        return os.fsdecode(data_path)
    if isinstance(data_path, int):
        return os.fdopen(data_path, "rb")
    return data_path


class PartStream:
    """A window that slides over one part of a record file.

    Args:
        source: Path, URL or file object.
        part: Which bytes.
        compression: How the file is compressed; None goes by the content.
        buffer_size: Bytes to hold, at first.
    """

    def __init__(
        self, source: Any, part: Part, compression: str | None, *, buffer_size: int = 1 << 20
    ) -> None:
        try:
            self._stream = RecordStream(
                source, compression=compression, start=part.start, buffer_size=buffer_size
            )
        except NotTFRecordError as error:
            raise _as_runtime_error(error) from error
        self._stream.records = part.first
        self._stop = part.stop

    @property
    def path(self) -> str:
        """What the file is called."""
        return self._stream.path

    @property
    def record(self) -> int:
        """Number of the record at the start of ``buffer``."""
        return self._stream.records

    @property
    def position(self) -> int:
        """Uncompressed offset of the start of ``buffer``."""
        return self._stream.position

    def where(self, row: int) -> str:
        """Return how an error names a record.

        Args:
            row: How many records it lies behind the start of ``buffer``.

        Returns:
            Words to put behind a sentence.
        """
        return f" Record {self.record + row} of {self.path}."

    @property
    def buffer(self) -> memoryview:
        """The bytes of the part that are not yet consumed; they die at the next ``fill``."""
        buffer = self._stream.buffer
        return buffer if self._stop is None else buffer[: self._stop - self._stream.position]

    @property
    def final(self) -> bool:
        """Whether no more bytes of the part will come."""
        if self._stop is None:
            return self._stream.final
        held = self._stream.position + len(self._stream.buffer)
        return self._stream.final or held >= self._stop

    def fill(self) -> None:
        """Get more bytes, where there are more."""
        self._stream.fill()

    def advance(self, nbytes: int, nrecords: int) -> None:
        """Consume bytes at the start of ``buffer``.

        Args:
            nbytes: How many.
            nrecords: How many records they held.
        """
        self._stream.advance(nbytes, nrecords)

    def error(self, fault: _core.Fault) -> RuntimeError:
        """Return the exception for damage at the start of ``buffer``.

        Args:
            fault: What native code reported there.

        Returns:
            ``RuntimeError`` with the well-known text where the data ends too early, else
            ``CorruptRecordError``, which is a ``RuntimeError`` too.
        """
        try:
            damage = recover(self._stream, fault)
        except NotTFRecordError as stranger:
            return _as_runtime_error(stranger)
        error = damage.error()
        text = _CUT.get(fault.code)
        if fault.code == "header-cut":
            short = fault.got < 8
            text = "Failed to read the record size." if short else "Failed to read the start token."
        if text is None:
            return error
        made = RuntimeError(f"{text} {error.message}")
        made.__cause__ = error
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()


def _as_runtime_error(error: NotTFRecordError) -> RuntimeError:
    """Return the same message in the class that readers of records have always caught."""
    made = RuntimeError(error.message)
    made.__cause__ = error
    return made


def _walk(stream: PartStream) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the payload offsets within the file and lengths of each window, headers checked."""
    position = 0
    while True:
        scan = _core.scan(stream.buffer, 0, -1, False, stream.final)
        yield scan.spans + (position, 0)
        position += scan.consumed
        stream.advance(scan.consumed, len(scan.spans))
        if scan.fault is not None:
            raise stream.error(scan.fault)
        if stream.final:
            return
        stream.fill()


def header_offsets(source: Any, compression: str | None) -> npt.NDArray[np.int64]:
    """Return where each record begins, by a walk over the record headers.

    Args:
        source: Path, URL or file object.
        compression: How the file is compressed; None goes by the content.

    Returns:
        int64 array (n,) of uncompressed byte offsets.

    Raises:
        RuntimeError: The file is cut or is no record file.
    """
    with PartStream(source, Part(), compression) as stream:
        return np.concatenate(list(_walk(stream)))[:, 0] - 12

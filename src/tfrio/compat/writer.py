"""Write Examples and SequenceExamples, given as dicts of name -> (value, type name)."""

from __future__ import annotations

import os
import struct
from typing import IO, TYPE_CHECKING, Any

from tfrio import _core
from tfrio.compat._stream import checked_compression
from tfrio.compat._values import plain
from tfrio.compat._wanted import KIND_OF, kind_of
from tfrio.records.writer import RecordWriter
from tfrio.storage.closing import Closing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrio.records.writer import Mode

__all__ = ["TFRecordWriter"]

# Framed records are handed on once this many bytes of them have gathered.
_GATHER = 64 << 10


def _encoder() -> _core.RowEncoder:
    return _core.RowEncoder(KIND_OF, kind_of, plain)


def _as_dict(datum: Mapping[Any, Any]) -> dict[Any, Any]:
    return datum if isinstance(datum, dict) else dict(datum.items())


class TFRecordWriter(Closing):
    """Write records to a file, which appears under its name when it is closed.

    Equal rows give equal bytes: features are written in the order of their names.

    Args:
        data_path: The file: a path, a URL, a file descriptor or a writable file object. An
            existing file is replaced at the end.
        compression_type: ``"gzip"`` or ``"zlib"``; None writes plain records, whatever the name.
        mode: ``"w"`` replaces an existing file, ``"x"`` refuses to, ``"a"`` appends to one.

    Raises:
        FileNotFoundError: No such folder.
        ValueError: Unknown compression or mode.
    """

    def __init__(
        self, data_path: Any, *, compression_type: str | None = None, mode: Mode = "w"
    ) -> None:
        self._owned: IO[bytes] | None = None
        self._encoder = _encoder()
        target = os.fsdecode(data_path) if isinstance(data_path, bytes) else data_path
        if isinstance(data_path, int):
            target = self._owned = os.fdopen(data_path, "wb")
        compression = checked_compression(compression_type)
        if compression is None and mode != "a":
            compression = "none"
        self.file = RecordWriter(target, mode=mode, compression=compression)

    def write(
        self, datum: Mapping[Any, Any], sequence_datum: Mapping[Any, Any] | None = None
    ) -> None:
        """Write one record.

        Args:
            datum: Name -> (value, type name), the type name one of ``"byte"``, ``"float"`` and
                ``"int"``; of a SequenceExample these are the features of the context.
            sequence_datum: Name -> (steps, type name); given, a SequenceExample is written, each
                item of ``steps`` one step.

        Raises:
            KeyError: An unknown type name.
            TypeError: A value that cannot be written as its type.
            ValueError: An integer outside of int64, or the writer is closed.
        """
        if self.file.closed:
            raise ValueError("write to closed file")
        lists = None if sequence_datum is None else _as_dict(sequence_datum)
        if self._encoder.add(_as_dict(datum), lists) >= _GATHER:
            self._hand_on()

    def _hand_on(self) -> None:
        data, ends = self._encoder.take()
        self.file.write_framed(data.data, ends)

    def flush(self) -> None:
        """Bring what was written so far to the disk, readable under the final name."""
        self._hand_on()
        self.file.flush()

    def close(self) -> None:
        """Complete the file; a second call does nothing."""
        if self.file.closed:
            return
        self._hand_on()
        self.file.close()
        self._release()

    def abort(self) -> None:
        """Give up: the file is not completed, one of the same name stays as it was."""
        self.file.abort()
        self._release()

    def _release(self) -> None:
        if self._owned is not None:
            self._owned.close()

    def __del__(self) -> None:
        """Complete the file of a writer that nobody closed."""
        if hasattr(self, "file"):
            self.close()

    @staticmethod
    def masked_crc(data: bytes) -> bytes:
        """Return the checksum of ``data`` as record files store it.

        Args:
            data: Any bytes.

        Returns:
            Four bytes, little-endian.
        """
        return struct.pack("<I", _core.masked_crc32c(data))

    @staticmethod
    def serialize_tf_example(datum: Mapping[Any, Any]) -> bytes:
        """Serialize a row as a ``tf.train.Example``.

        Args:
            datum: As for ``write``.

        Returns:
            The payload.

        Raises:
            KeyError: As for ``write``.
            TypeError: As for ``write``.
            ValueError: An integer outside of int64.
        """
        return _encoder().payload(_as_dict(datum))

    @staticmethod
    def serialize_tf_sequence_example(
        context_datum: Mapping[Any, Any], features_datum: Mapping[Any, Any]
    ) -> bytes:
        """Serialize a row as a ``tf.train.SequenceExample``.

        Args:
            context_datum: As ``datum`` for ``write``.
            features_datum: As ``sequence_datum`` for ``write``.

        Returns:
            The payload.

        Raises:
            KeyError: As for ``write``.
            TypeError: As for ``write``.
            ValueError: An integer outside of int64.
        """
        return _encoder().payload(_as_dict(context_datum), _as_dict(features_datum))

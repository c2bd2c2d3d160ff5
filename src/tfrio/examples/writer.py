"""Write Examples and SequenceExamples: rows, batches of columns, or ready payloads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any, Literal, get_args

from tfrio.compression import BLOCK_SIZE, DEFAULT_LEVEL
from tfrio.errors import EncodeError, UsageError, warn_user
from tfrio.examples.batches import BatchEncoder
from tfrio.examples.encode import RowEncoder
from tfrio.examples.infer import Utf8
from tfrio.examples.pending import PendingRows
from tfrio.examples.schema import Schema
from tfrio.examples.sidecar import load_sidecar, noted, save_sidecar
from tfrio.examples.wire import Encoders, Target, WireColumn, check_values, pieces
from tfrio.records.writer import Mode, RecordWriter
from tfrio.storage import is_stream
from tfrio.storage.closing import Closing
from tfrio.types import path_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrio.compression import Compression
    from tfrio.examples.columns import Array
    from tfrio.examples.schema import SchemaLike
    from tfrio.storage import Source

__all__ = ["RaggedMode", "Writer"]

RaggedMode = Literal["error", "split"]


class Writer(Closing):
    """Write Examples to one file.

    Use it as a context manager: the file appears under its name when the block ends well, and not
    at all when it raises. Records go to the file in the order written, whatever the way.

    Args:
        path: Local path, URL or writable file object.
        schema: What the features are; a row that does not fit is refused. None goes by the values,
            and a feature keeps the kind it had first.
        mode: ``"w"`` replaces an existing file, ``"x"`` refuses to, ``"a"`` appends to one after
            checking it.
        compression: ``"none"``, ``"gzip"`` or ``"zlib"``; None means gzip for names ending ``.gz``.
        level: 1 (fast) to 9 (small).
        sequence: Write SequenceExamples: features with lists inside become feature lists. A schema
            with feature lists implies it.
        strict: Refuse numbers that float32 changes noticeably, instead of warning once.
        ragged: What to do with a list of lists in an Example: ``"error"``, or ``"split"`` into
            ``NAME/values`` and ``NAME/lengths``.
        sort: Write features in the order of their names, so that equal rows give equal bytes;
            otherwise in the order of the row.
        utf8: ``"surrogateescape"`` writes feature names that are no UTF-8 as a reader with the
            same option gave them; by default they are refused, as readers refuse them.
        sidecar: Note what records cannot say of themselves (arrays with several axes, say) in
            ``FILE.schema.json`` beside the file, where there is anything to note; not for file
            objects.
        block_size: Uncompressed bytes in a gzip block.
        threads: Threads to compress on, by default up to 4; 1 starts none.
        fsync: Wait at ``close`` until the bytes are on the disk.

    Raises:
        FileExistsError: Mode ``"x"`` and the file exists.
        UsageError: An unknown option, or one that does not fit.
    """

    def __init__(
        self,
        path: Source | IO[bytes],
        *,
        schema: SchemaLike | None = None,
        mode: Mode = "w",
        compression: Compression | None = None,
        level: int = DEFAULT_LEVEL,
        sequence: bool = False,
        strict: bool = False,
        ragged: RaggedMode = "error",
        sort: bool = True,
        utf8: Utf8 = "strict",
        sidecar: bool = True,
        block_size: int = BLOCK_SIZE,
        threads: int | None = None,
        fsync: bool = False,
    ) -> None:
        if ragged not in get_args(RaggedMode):
            raise UsageError(f"ragged must be 'error' or 'split', got {ragged!r}")
        if utf8 not in get_args(Utf8):
            raise UsageError(f"utf8 must be 'strict' or 'surrogateescape', got {utf8!r}")
        made = None if schema is None else Schema.of(schema)
        self.sequence = sequence or (made is not None and made.sequence)
        self._rows = RowEncoder(
            made, strict=strict, ragged=ragged, sequence_only=self.sequence, utf8=utf8
        )
        self._batches = BatchEncoder(self._rows)
        self._pending = PendingRows(self._rows)
        self._encoders = Encoders(sort=sort)
        named = isinstance(path, str | bytes | os.PathLike)
        self._sidecar = path_text(path) if sidecar and named else None
        # Believed only while the file is as it was noted for, so before anything is appended.
        self._joined = mode == "a"
        self._before = load_sidecar(self._sidecar) if self._sidecar and self._joined else None
        self._out = RecordWriter(
            path,
            mode=mode,
            compression=compression,
            level=level,
            block_size=block_size,
            threads=threads,
            fsync=fsync,
        )

    @property
    def path(self) -> str:
        """Return the name of the file."""
        return self._out.path

    @property
    def records(self) -> int:
        """Return how many records were written (those of an appended-to file left out)."""
        return self._out.records + len(self._pending)

    @property
    def closed(self) -> bool:
        """Return whether the writer is closed."""
        return self._out.closed

    def write(self, row: Mapping[str, Any]) -> None:
        """Write one row.

        Args:
            row: Value by feature name: a number, bytes, str, or a list or array of these, of any
                number of axes. None leaves the feature out.

        Raises:
            EncodeError: A value cannot be stored without changing it; nothing was written.
            MissingFeatureError: A feature that the schema requires is missing.
            UsageError: The writer is closed, or the row is no mapping.
        """
        if self._out.closed:
            self._check_open()
        try:
            taken = self._pending.offer(row)
        except (AttributeError, TypeError):
            self._check_mappings(row)
            raise
        if taken is False:
            self._drain()
            taken = self._pending.offer(row)
        if taken:
            return
        if self.sequence:
            context, lists = self._rows.split_places(row)
            self.write_sequence(context, lists)
            return
        columns = self._named(self._rows.row, row)
        self._drain()
        self._put(1, columns)

    def write_sequence(
        self, context: Mapping[str, Any], lists: Mapping[str, Sequence[Any]]
    ) -> None:
        """Write one SequenceExample.

        Args:
            context: Value by feature name.
            lists: Steps by feature list; each step is a value, or a list or array of values.

        Raises:
            EncodeError: A value cannot be stored without changing it; nothing was written.
            UsageError: The writer is closed.
        """
        self._check_open()
        columns = self._named(self._rows.sequence, context, lists)
        self._drain()
        self._put(1, columns, sequence=True)

    def write_batch(
        self, columns: Mapping[str, Any], *, present: Mapping[str, Array] | None = None
    ) -> None:
        """Write one record a row of some columns.

        Args:
            columns: Column by feature name, all of one length: an array (rows, ...), a
                ``BytesColumn``, a ``Ragged``, or a list of one value a row (None: absent). A
                ``Batch`` brings its own mask.
            present: bool array (rows,) by feature; False leaves the feature out of that record.

        Raises:
            EncodeError: Columns differ in length, or a value cannot be stored without changing
                it; nothing was written.
            UsageError: The writer is closed.
        """
        self._check_open()
        own = getattr(columns, "present", {})  # of a Batch, which may have lost columns since
        masks = present if present is not None else {k: own[k] for k in own if k in columns}
        rows, encoded = self._named(self._batches.columns, columns, masks)
        self._named(check_values, rows, encoded)
        self._drain()
        for count, part in pieces(rows, encoded):
            self._put(count, part)

    def write_payload(self, payload: bytes | bytearray | memoryview) -> None:
        """Write a record as it is, whatever it holds.

        Args:
            payload: The payload.

        Raises:
            UsageError: The writer is closed.
        """
        self._check_open()
        self._drain()
        self._out.write(payload)

    def flush(self) -> None:
        """Bring every record written so far to the disk, readable by others under the final name.

        Raises:
            OSError: The disk is full, or another failure.
            UsageError: zlib files and remote objects are readable only once closed.
        """
        self._check_open()
        self._drain()
        self._out.flush()

    def close(self) -> None:
        """Complete the file; a second call does nothing.

        Raises:
            OSError: The disk is full, or another failure; nothing is left under the name.
        """
        if self.closed:
            return
        try:
            self._drain()
        except BaseException:
            self._out.abort()
            raise
        self._out.close()
        if self._sidecar is not None and not is_stream(self._sidecar):
            self._note(self._sidecar)

    def _note(self, path: str) -> None:
        """Note beside the complete file what its records do not tell."""
        found = noted(self._rows)
        save_sidecar(
            path,
            found,
            added=self._out.records if self._joined else None,
            before=self._before,
            remedy="read it with a schema, or say sidecar=False",
        )
        for name in found.lost:
            warn_user(
                f"{path}: the steps of '{name}' differ in more than one axis, and come back flat; "
                "store their height and width as feature lists of their own, or say sidecar=False"
            )

    def abort(self) -> None:
        """Give up: leave nothing under the name but what an earlier ``flush`` brought there."""
        self._out.abort()

    def __del__(self) -> None:
        """Give up a forgotten writer, with a warning."""
        out = getattr(self, "_out", None)
        if out is not None and not out.closed:
            self.forgotten(self.path, self.records)

    def _check_open(self) -> None:
        if self._out.closed:
            raise UsageError(f"{self._out.why_closed}: {self.path}")

    def _named(self, make: Any, *values: Any) -> Any:
        """Call what encodes; an error gets the file and the number of the record."""
        self._rows.record = self.records
        try:
            return make(*values)
        except EncodeError as error:
            self._place(error, self.records + (error.record or 0))
            raise
        except (AttributeError, TypeError):
            self._check_mappings(*values)
            raise

    def _place(self, error: EncodeError, record: int) -> None:
        """Say which record of which file an error is about."""
        error.path, error.record = self.path, record
        error.message = f"{error.message}. Record {record} of {self.path}"

    def _check_mappings(self, *given: Any) -> None:
        """Refuse what has no feature names; asked only once it failed, for rows come in millions.

        Raises:
            UsageError: One is no mapping.
        """
        odd = [type(value).__name__ for value in given if not isinstance(value, Mapping)]
        if odd:
            raise UsageError(
                f"values come as a mapping by feature name, {{'name': value}}; got "
                f"{odd[0]}. Give a dict: a row to write, columns to write_batch. "
                f"Record {self.records} of {self.path}",
                path=self.path,
                record=self.records,
            )

    def _drain(self) -> None:
        """Encode the rows that wait."""
        if len(self._pending):
            rows, columns = self._pending.take()
            self._put(rows, columns)

    def _put(
        self, rows: int, columns: Mapping[Target, WireColumn], *, sequence: bool = False
    ) -> None:
        try:
            data, ends = self._encoders.encode(rows, columns, sequence=sequence or self.sequence)
        except EncodeError as error:
            self._place(error, self._out.records + (error.record or 0))
            raise
        self._out.write_framed(data, ends)

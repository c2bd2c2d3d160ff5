"""Random access to decoded records: many files as one sequence of rows."""

from __future__ import annotations

import operator
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tfrio import _core
from tfrio.errors import MissingFeatureError, from_fault
from tfrio.examples.convert import make_batch
from tfrio.examples.decode import check_names
from tfrio.examples.engine import Chunk, native_decoder
from tfrio.examples.faults import decode_error, with_present
from tfrio.examples.form import Bound, Form, Learned
from tfrio.examples.infer import sample_stream
from tfrio.examples.layout import NativeColumn
from tfrio.examples.merge import join_chunks
from tfrio.examples.observe import Observation
from tfrio.examples.rows import batch_rows
from tfrio.examples.schema import Schema
from tfrio.examples.sidecar import load_sidecar
from tfrio.examples.single import RowByRow, row_decoder
from tfrio.examples.told import outline
from tfrio.records.mapped import check_maps
from tfrio.records.reader import RecordStream
from tfrio.records.sequence import RecordSequence
from tfrio.storage import Closing, at_fork

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from tfrio.examples.columns import Array, Batch
    from tfrio.examples.schema import SchemaLike
    from tfrio.records.access import IndexChoice, RecordFile
    from tfrio.types import PathsLike

__all__ = ["ExampleSequence", "open"]

_ROWS_AT_ONCE = 1024


def open(  # noqa: A001 - the verb of the domain: tfrio.open
    paths: PathsLike,
    *,
    features: Sequence[str] | None = None,
    schema: SchemaLike | None = None,
    index: IndexChoice = "auto",
    split: str | None = None,
    verify: bool = True,
) -> ExampleSequence:
    """Open record files for access to any record by its number.

    Args:
        paths: File, folder, glob, shard prefix, URL, or several of these.
        features: Names of the features to read; the others are skipped unread.
        schema: What the features are; None goes by each record, as in ``tfrio.read``.
        index: ``"auto"`` uses and keeps index files, ``"memory"`` keeps none; a path names the
            index of a single file.
        split: Only shards of this split.
        verify: Check payload checksums.

    Returns:
        A sequence of rows. It pickles, and works on in forked and spawned processes.

    Raises:
        FileNotFoundError: A path stands for no file.
        CorruptRecordError: An index had to be made and the data is damaged.
    """
    check_names(features)
    records = RecordSequence(paths, index=index, split=split, verify=verify)
    bound = None if schema is None else Schema.of(schema)
    if bound is not None and features is not None:
        bound = bound.select(features)
    return ExampleSequence(records, schema=bound, features=features)


class ExampleSequence(Closing, Sequence[dict[str, Any]]):
    """The rows of record files: ``len(ds)``, ``ds[5]``, ``ds[-1]``, ``ds[2:9]``, ``ds[[9, 2]]``.

    Args:
        records: The records.
        schema: What the features are; None goes by each record.
        features: Names of the features to read, None for all.
    """

    def __init__(
        self,
        records: RecordSequence,
        *,
        schema: Schema | None = None,
        features: Sequence[str] | None = None,
    ) -> None:
        self.records = records
        self.schema = schema
        self._features = features
        self._start()

    def _start(self) -> None:
        self.forked()
        at_fork(self)

    def forked(self) -> None:
        """Begin anew, with decoders of its own."""
        self._lock = threading.Lock()
        self._columns: Form | None = None
        self._rows_of: dict[str, Form] | None = None  # by file; see ``_row_forms``
        self._several = False  # whether these are more than one
        self._decoder: Any = None
        self._decoder_for: Any = None
        self._row_decoder: RowByRow | None = None  # where one serves all files
        self._row_decoders: dict[int, RowByRow] = {}  # by the id of their form

    def __getstate__(self) -> dict[str, Any]:
        return {"records": self.records, "schema": self.schema, "_features": self._features}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def __len__(self) -> int:
        """Return the number of records in all files."""
        return len(self.records)

    @overload
    def __getitem__(self, which: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, which: slice | Sequence[int] | Array) -> list[dict[str, Any]]: ...
    def __getitem__(
        self, which: int | slice | Sequence[int] | Array
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """Return one row, or a list of rows in the order asked.

        Raises:
            IndexError: There is no such record.
            CorruptRecordError: A record is damaged.
            SchemaError: A record does not fit the schema.
        """
        if not isinstance(which, int):  # nearly always is one; the rest costs time
            try:
                which = operator.index(which)  # type: ignore[arg-type]
            except TypeError:
                return self._rows(self._numbers(which))  # type: ignore[arg-type]
        file, record = self.records.place(which)
        verify = self.records.verify
        with self._lock:
            decoder = self._row_decoder or self._ready_row_decoder(file.path)
            mapped = file.record_map
            if mapped is not None:
                row = decoder.row_of(mapped, record, verify)
            else:
                buffer, start = file.frame(record)  # the first time, a mapping too
                row = decoder.row(buffer, start, verify)
                check_maps([buffer])
        return self._rows(self.records.numbers([which]))[0] if row is None else row

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield all rows in order."""
        for begin in range(0, len(self), _ROWS_AT_ONCE):
            yield from self[begin : begin + _ROWS_AT_ONCE]

    def batch(self, which: slice | Sequence[int] | Array) -> Batch:
        """Return records as columns.

        Args:
            which: Record numbers, in any order, or a slice.

        Returns:
            A ``Batch``, rows in the order asked.

        Raises:
            IndexError: There is no such record.
            CorruptRecordError: A record is damaged.
            SchemaError: A record does not fit the schema.
        """
        numbers = self._numbers(which)
        with self._lock:
            if self._columns is None:
                self._columns = self._form([file.path for file in self._told_of()], switch=False)
            return self._batch(join_chunks(self._chunks(numbers, self._columns)))

    def close(self) -> None:
        """Release the handles of all files."""
        self.records.close()

    def _numbers(self, which: slice | Sequence[int] | Array) -> Array:
        if isinstance(which, slice):
            return np.arange(*which.indices(len(self)), dtype=np.int64)
        return self.records.numbers(which)

    def _rows(self, numbers: Array) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        with self._lock:
            for form, part in self._alike(numbers):
                for chunk in self._chunks(part, form):
                    batch = self._batch(chunk)
                    bound = self.schema is not None
                    found += batch_rows(batch, chunk.layout.schema, bound=bound)
        return found

    def _alike(self, numbers: Array) -> Iterator[tuple[Form, Array]]:
        """Yield runs of records that are read in one way, and how."""
        forms = self._row_forms()
        if not self._several:
            yield forms[""], numbers
            return
        paths = (self.records.file_of(number)[0].path for number in numbers.tolist())
        chosen = [forms.get(path, forms[""]) for path in paths]
        done = 0
        for _, run in groupby(chosen, id):
            form, *more = run
            yield form, numbers[done : done + 1 + len(more)]
            done += 1 + len(more)

    def _batch(self, chunk: Chunk) -> Batch:
        try:
            return make_batch(chunk.layout, chunk.natives, chunk.rows, chunk.origin)
        except MissingFeatureError as error:
            raise with_present(error, compression=None) from None

    def _row_forms(self) -> dict[str, Form]:
        """Return what decides the layout of rows, by file; ``""`` stands for any other file.

        Files that note the same of their features share one. Without a schema columns go by the
        first records of all files.
        """
        if self._rows_of is None:
            alike: dict[Hashable, list[str]] = {}
            for file in self._told_of():
                alike.setdefault(outline(load_sidecar(file.path)), []).append(file.path)
            self._rows_of = {}
            for paths in alike.values():
                form = self._form(paths, switch=True)
                self._rows_of |= dict.fromkeys(paths, form)
            self._rows_of[""] = form if alike else self._form([], switch=True)
            self._several = len(alike) > 1
        return self._rows_of

    def _told_of(self) -> Sequence[RecordFile]:
        """Return the files whose notes on their features count: none where a schema says it all."""
        return [] if self.schema else [file for file in self.records.files if file.count]

    def _form(self, paths: Sequence[str], *, switch: bool) -> Form:
        """Return what decides the layout of the records of some files."""
        if self.schema is not None:
            return Bound(self.schema)
        form = Learned(names=self._features, switch=switch)
        for path in paths:
            form.hint(load_sidecar(path), path)
        form.learn(self._sample())
        return form

    def _sample(self) -> Observation:
        """Look at the first records."""
        if not len(self):
            return Observation()
        file, _ = self.records.file_of(0)
        with RecordStream(file.path) as stream:
            return sample_stream(stream, verify=self.records.verify)

    def _chunks(self, numbers: Array, form: Form) -> list[Chunk]:
        """Decode records, a chunk under each layout that it takes."""
        located = self.records.locate(numbers)
        chunks: list[Chunk] = []
        done = 0
        while done < len(numbers) or not chunks:
            decoder = self._ready_decoder(form)
            feed = decoder.feed_at(
                located.buffers,
                located.which[done:],
                located.starts[done:],
                verify=self.records.verify,
            )
            natives = [NativeColumn.of(column) for column in decoder.take()]
            check_maps(located.buffers)
            origin = _Numbers(self.records, numbers[done : done + feed.records])
            chunks.append(Chunk(form.layout, natives, feed.records, origin))
            done += feed.records
            if feed.fault is not None:
                buffer = located.buffers[located.which[done]]
                start = int(located.starts[done])
                self._widen(form, feed.fault, int(numbers[done]), memoryview(buffer)[start:])
        return chunks

    def _ready_decoder(self, form: Form) -> Any:
        if self._decoder is None or self._decoder_for is not form.layout:
            self._decoder_for = form.layout
            self._decoder = native_decoder(form, utf8="strict")
        return self._decoder

    def _ready_row_decoder(self, path: str) -> RowByRow:
        """Return what decodes single records of a file under the present layout."""
        forms = self._row_forms()
        form = forms.get(path, forms[""])
        made = self._row_decoders.get(id(form))
        if made is None:
            made = row_decoder(form, bound=self.schema is not None, utf8="strict")
            self._row_decoders[id(form)] = made
        if not self._several:
            self._row_decoder = made
        return made

    def _widen(self, form: Form, fault: Any, number: int, buffer: memoryview) -> None:
        file, record = self.records.file_of(number)
        at = _At(file.path, record, file.offset(record), buffer)
        if fault.field:
            raise from_fault(fault, path=at.path, record=record, offset=at.position)
        error = decode_error(fault, at, form.layout)
        if fault.code not in ("kind", "count", "unknown"):
            raise error
        scanner = _core.SchemaScanner(sequence=True)
        feed = scanner.feed(buffer, 0, 1, verify=False, final=True)
        if feed.fault is not None:  # the decoder stopped before what is really wrong
            raise decode_error(feed.fault, at, form.layout)
        seen = Observation()
        seen.add(scanner.result(), feed.records, path=at.path, first=record)
        form.widen(fault, seen, error)
        self._row_decoder = None
        self._row_decoders.pop(id(form), None)


@dataclass(frozen=True, slots=True)
class _At:
    """One record, for errors: its frame is at the start of ``buffer``."""

    path: str
    records: int
    position: int
    buffer: memoryview
    final: bool = True


class _Numbers:
    """Where the rows of a batch came from: records by number."""

    def __init__(self, records: RecordSequence, numbers: Array) -> None:
        self._records = records
        self._numbers = numbers

    def where(self, row: int) -> str:
        """Return ``record 17 of a.tfrecord``."""
        file, record = self._records.file_of(int(self._numbers[row]))
        return f"record {record} of {file.path}"

    def place(self, row: int) -> Mapping[str, Any]:
        """Return path and record as keyword arguments of an error."""
        file, record = self._records.file_of(int(self._numbers[row]))
        return {"path": file.path, "record": record}

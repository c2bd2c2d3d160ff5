"""Pull the records of some files through the native decoder, a chunk under one layout at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tfrio import _core
from tfrio.compression.source import usable_threads
from tfrio.errors import DecodeError, StoredDataError, TfrioError, UsageError, warn_user
from tfrio.examples.faults import decode_error
from tfrio.examples.infer import NATIVE_UTF8, check_utf8, payload_fault, sample_stream
from tfrio.examples.layout import Layout, NativeColumn, Origin
from tfrio.examples.sidecar import load_sidecar
from tfrio.records.damage import Damage, DamagePolicy, DamageReport, recover, recover_stored
from tfrio.records.reader import RecordStream
from tfrio.records.shards import each_source
from tfrio.records.walk import refill
from tfrio.storage import Closing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrio.compression import Compression
    from tfrio.examples.columns import Array
    from tfrio.examples.form import Form
    from tfrio.examples.infer import Utf8
    from tfrio.examples.observe import Observation
    from tfrio.examples.shaping import Places
    from tfrio.storage import Source
    from tfrio.types import PathsLike

__all__ = ["Chunk", "Engine", "Options", "native_decoder", "native_features"]

_FRAME = 16


@dataclass(frozen=True, slots=True)
class Options:
    """How files are read.

    Args:
        compression: None goes by the content of each file.
        verify: Check payload checksums; those of lengths are always checked.
        errors: What to do with damaged records.
        max_bad: Most damaged records to skip.
        report: Filled with what was skipped.
        utf8: ``"surrogateescape"`` accepts feature names that are not UTF-8.
        threads: Threads to inflate and decode on.
    """

    compression: Compression | None = None
    verify: bool = True
    errors: Literal["raise", "skip"] = "raise"
    max_bad: int | None = None
    report: DamageReport | None = None
    utf8: Utf8 = "strict"
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.errors not in ("raise", "skip"):
            raise UsageError(
                f"errors must be 'raise' or 'skip', got {self.errors!r}; "
                "tfrio.read_records(errors='return') gives damaged payloads"
            )
        check_utf8(self.utf8)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Decoded records under one layout.

    Attributes:
        layout: Which slot holds which feature.
        natives: One column a slot.
        rows: Number of records.
        origin: File and record of each row.
    """

    layout: Layout
    natives: list[NativeColumn]
    rows: int
    origin: Places


class Engine(Closing):
    """Records of some files in order, as chunks of columns.

    Args:
        paths: A file, folder, glob, file object, or several of these.
        form: What decides the layout.
        options: How files are read.
    """

    def __init__(self, paths: PathsLike | Source, form: Form, options: Options) -> None:
        self._sources = each_source(paths)
        self._form = form
        self._options = options
        self._policy = DamagePolicy(options.errors, max_bad=options.max_bad, report=options.report)
        self._threads = usable_threads(options.threads)
        self._stream: RecordStream | None = None
        self._source: Source | None = None
        self._decoder: Any = None
        self._decoder_layout: Layout | None = None
        self._checked = self._warned = False
        self._consumed = 0

    @property
    def consumed(self) -> int:
        """Stored bytes read so far of all files, for progress."""
        return self._consumed + (self._stream.consumed if self._stream else 0)

    def close(self) -> None:
        """Close the file being read."""
        if self._stream is not None:
            self._consumed += self._stream.consumed
            self._stream.close()
            self._stream = None

    def chunk(
        self, limit: int, *, whole: bool = True, out: Mapping[int, Array] | None = None
    ) -> Chunk | None:
        """Decode the next records.

        Args:
            limit: Most records to decode.
            whole: Whether to go on until ``limit`` records are there, over the ends of windows and
                files; otherwise what the window holds is enough.
            out: Arrays to decode fixed columns into, by slot.

        Returns:
            At most ``limit`` records, fewer at the end or where the layout changes; None after
            the last.

        Raises:
            CorruptRecordError: A record is damaged.
            DecodeError: A payload is no Example.
            SchemaError: A record does not fit the schema.
        """
        origin, rows = Origin(), 0
        while (stream := self._current()) is not None:
            if rows and self._form.layout is not self._decoder_layout:
                break  # the next file's sidecar says more of the features
            decoder = self._ready_decoder(out)
            final = stream.final
            options = self._options
            feed = decoder.feed(
                stream.buffer,
                0,
                limit - rows,
                verify=options.verify,
                final=final,
                threads=self._threads,
            )
            stream.confirm(feed.consumed)
            if feed.records:
                origin.add(rows, stream.path, stream.records)
            rows += feed.records
            stream.advance(feed.consumed, feed.records)
            if feed.fault is not None:
                if rows and not whole:
                    break  # what precedes comes first; the fault is met again at the next call
                if self._handle(stream, feed.fault) and rows:
                    break
            elif rows == limit or (rows and not whole):
                break
            elif not final:
                self._refill(stream)
            else:
                self._done(stream)
        return self._taken(rows, origin) if rows else None

    def _current(self) -> RecordStream | None:
        """Return the stream to read from, the next file's where one has ended."""
        if self._stream is None:
            source = next(self._sources, None)
            if source is None:
                return None
            options = self._options
            self._stream = RecordStream(
                source, compression=options.compression, threads=options.threads, mapped=True
            )
            self._source = source
            self._checked = False
        if not self._checked:
            self._check_first(self._stream)
        return self._stream

    def _check_first(self, stream: RecordStream) -> None:
        """Refuse payloads that are no Example, and learn the form from the first that are."""
        content = self._first_content(stream)
        if content is not None:  # a file without records says nothing
            self._form.hint(load_sidecar(self._source), stream.path)
        if not self._form.ready:
            self._form.learn(self._sample(stream))
        self._checked = True
        if content == "sequence" and not self._form.sequence and not self._warned:
            self._warned = True
            warn_user(
                f"{stream.path} holds SequenceExamples; the schema has no feature list, so all "
                "feature lists are left out. Add them with place='list' to read them"
            )

    def _first_content(self, stream: RecordStream) -> str | None:
        """Say what the next payload is, stepping over what is no Example where that is asked."""
        while (payload := self._first_payload(stream)) is not None:
            content = _core.classify(payload)
            if content != "other":
                return content
            error = DecodeError(
                f"{stream.path}: the payload of record {stream.records} ({len(payload)} bytes) is "
                "not a tf.train.Example. Read raw payloads with tfrio.read_records",
                path=stream.path,
                record=stream.records,
            )
            if (lost := _lost(stream)) is not None:
                self._policy.take(lost)
            else:
                self._step_over(stream, "wire", error)
        return None

    def _first_payload(self, stream: RecordStream) -> memoryview | None:
        """Return the payload of the next sound record, None where there is none.

        Damage before it is dealt with at once, as no form can be learned from that.
        """
        while True:
            scan = _core.scan(stream.buffer, 0, 1, self._options.verify, stream.final)
            if len(scan.spans):
                offset, length = scan.spans[0].tolist()
                return stream.buffer[offset : offset + length]
            if scan.fault is not None:
                self._policy.take(recover(stream, scan.fault))
            elif not stream.more():
                if not stream.broken:
                    return None
                self._refill(stream)

    def _step_over(self, stream: RecordStream, code: str, error: TfrioError) -> None:
        """Leave out the record at the start of the window, or raise."""
        if self._options.errors == "raise":
            raise error
        self._policy.take(_unreadable(stream, code, error))

    def _ready_decoder(self, out: Mapping[int, Array] | None) -> Any:
        """Return a decoder for the form's layout; the one in use where that has not changed."""
        layout = self._form.layout
        if self._decoder is None or layout is not self._decoder_layout:
            self._decoder_layout = layout
            self._decoder = native_decoder(self._form, utf8=self._options.utf8)
        if out is not None and not self._decoder.rows:
            for slot, array in out.items():
                self._decoder.set_output(slot, array)
        return self._decoder

    def _handle(self, stream: RecordStream, fault: Any) -> bool:
        """Deal with the record at the start of the window; return whether the layout changed."""
        lost = recover(stream, fault) if fault.field else _lost(stream)
        if lost is not None:
            self._policy.take(lost)
            return False
        layout = self._form.layout
        error = decode_error(fault, stream, layout)
        if fault.code in ("kind", "count", "unknown"):
            seen = self._sample(stream)
            if seen.records:
                self._form.widen(fault, seen, error)
                return True
            # The decoder stops at the first thing it did not expect; there is worse behind it.
            fault = payload_fault(stream, utf8=self._options.utf8) or fault
            error = decode_error(fault, stream, layout)
        self._step_over(stream, fault.code, error)
        return False

    def _sample(self, stream: RecordStream) -> Observation:
        options = self._options
        return sample_stream(stream, verify=options.verify, utf8=options.utf8)

    def _refill(self, stream: RecordStream) -> None:
        damage = refill(stream)
        if damage is not None:
            self._policy.take(damage)

    def _done(self, stream: RecordStream) -> None:
        self.close()
        self._policy.file_done(stream.path)

    def _taken(self, rows: int, origin: Origin) -> Chunk:
        layout = self._decoder_layout
        assert layout is not None
        natives = [NativeColumn.of(column) for column in self._decoder.take()]
        return Chunk(layout, natives, rows, origin)


def native_decoder(form: Form, *, utf8: Utf8) -> Any:
    """Return a native decoder for the layout of a form."""
    return _core.ExampleDecoder(
        native_features(form),
        sequence=form.sequence,
        discover=form.discover,
        utf8=NATIVE_UTF8[utf8],
    )


def native_features(form: Form) -> list[tuple[bytes, int, int, int]]:
    """Return what a native decoder is asked for: name, kind, count and place of each feature."""
    return [(s.name, s.kind, s.values, s.place) for s in form.layout.slots]


def _lost(stream: RecordStream) -> Damage | None:
    """Return the damage where the record at the start of the window is gone from its file."""
    size = int.from_bytes(stream.buffer[:8], "little") + _FRAME
    try:
        stream.confirm(min(size, len(stream.buffer)))
    except StoredDataError as error:
        return recover_stored(stream, error)
    return None


def _unreadable(stream: RecordStream, code: str, error: TfrioError) -> Damage:
    """Step over a sound record whose payload is no Example, and say so."""
    start, first = stream.position, stream.records
    size = int.from_bytes(stream.buffer[:8], "little") + _FRAME
    stream.advance(size, 1)
    return Damage(
        path=stream.path,
        record=first,
        offset=start,
        code=code,
        field="payload",
        expected=None,
        got=None,
        lost=size,
        resumed=stream.position,
        message=error.message,
    )

"""Errors of decoding, told in full: what the record holds, what was asked, what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tfrio import _core
from tfrio.errors import (
    FeatureKindError,
    MissingFeatureError,
    SchemaError,
    TfrioError,
    from_fault,
)
from tfrio.examples.codecs import misfit_text
from tfrio.examples.layout import KIND_NAMES, stored_name
from tfrio.examples.observe import Observation
from tfrio.records.reader import RecordStream

if TYPE_CHECKING:
    from tfrio.compression import Compression
    from tfrio.examples.layout import Layout
    from tfrio.examples.schema import Feature, Place

__all__ = ["AtRecord", "decode_error", "with_present"]


class AtRecord(Protocol):
    """A place in a file: ``RecordStream`` is one."""

    @property
    def path(self) -> str:
        """Return the name of the file."""
        ...

    @property
    def records(self) -> int:
        """Return the number of the record."""
        ...

    @property
    def position(self) -> int:
        """Return the uncompressed offset of the record's header."""
        ...

    @property
    def buffer(self) -> memoryview:
        """Return bytes that begin with the record's frame."""
        ...

    @property
    def final(self) -> bool:
        """Return whether no more bytes will come."""
        ...


def decode_error(fault: Any, stream: AtRecord, layout: Layout) -> TfrioError:
    """Turn a fault of the record at the start of the window into an exception.

    Args:
        fault: What the native decoder reported.
        stream: Advanced to the record.
        layout: What was asked for.

    Returns:
        The exception, not yet raised.
    """
    path, record = stream.path, stream.records
    error = from_fault(fault, path=path, record=record, offset=stream.position)
    name = stored_name(fault.feature)
    step = f", step {fault.step}" if fault.step >= 0 else ""
    place: dict[str, Any] = {
        "path": path,
        "record": record,
        "offset": stream.position,
        "feature": name,
    }
    if fault.code == "kind":
        found, asked = KIND_NAMES[fault.got], KIND_NAMES[fault.expected]
        seen = _look(stream).features.get((name, "list" if fault.step >= 0 else "context"))
        values = f" ({seen.lengths[1]} values)" if seen and seen.lengths and not step else ""
        return FeatureKindError(
            f"feature '{name}' is {found}_list{values} but {asked} was asked, "
            f"record {record}{step} of {path}; declare {found}",
            **place,
        )
    feature = _feature(layout, name)
    if fault.code == "count" and feature is not None and feature.shape and len(feature.shape) > 1:
        shape = tuple(d for d in feature.shape if isinstance(d, int))
        text = misfit_text(fault.got, shape)
        return SchemaError(
            f"feature '{name}': {text}, record {record}{step} of {path}",
            expected=fault.expected,
            got=fault.got,
            **place,
        )
    return error


def with_present(
    error: MissingFeatureError, *, compression: Compression | None
) -> MissingFeatureError:
    """Add to an error what the record does hold, read again from its file.

    Args:
        error: Names path and record.
        compression: How the file is compressed.

    Returns:
        The same error; unchanged where the record cannot be read again.
    """
    if error.path is None or error.record is None:
        return error
    try:
        names = _names_of(error.path, error.record, compression)
    except (OSError, TfrioError):
        return error
    before, mark, after = error.message.partition("; ")
    if (place := names.get(error.feature or "")) is not None:
        what = "a feature list" if place == "list" else "a feature outside feature lists"
        after = f"'{error.feature}' is {what} there: declare place='{place}'"
    error.message = f"{before}; present: {sorted(names)}{mark}{after}"
    error.args = (error.message,)
    return error


def _feature(layout: Layout, name: str) -> Feature | None:
    found = (f for key, f in layout.schema.items() if f.stored_as(key) == name)
    return next(found, None)


def _look(stream: AtRecord) -> Observation:
    scanner = _core.SchemaScanner(sequence=True, utf8="accept")
    feed = scanner.feed(stream.buffer, 0, 1, verify=False, final=stream.final)
    seen = Observation()
    seen.add(scanner.result(), feed.records)
    return seen


def _names_of(path: str, record: int, compression: Compression | None) -> dict[str, Place]:
    """Return the features that a record has, and their places."""
    with RecordStream(path, compression=compression) as stream:
        while True:
            left = record - stream.records
            scanner = _core.SchemaScanner(sequence=True, utf8="accept")
            feed = scanner.feed(stream.buffer, 0, left or 1, verify=False, final=stream.final)
            if feed.records and not left:
                rows = [row for row in scanner.result() if row[2]]
                return {stored_name(row[0]): "list" if row[1] else "context" for row in rows}
            stream.advance(feed.consumed, feed.records)
            if not feed.records and not stream.fill():
                return {}

"""Look at records to learn their schema: a sample, or every record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from tfrio import _core
from tfrio.errors import TfrioError, UsageError, from_fault
from tfrio.examples.observe import Observation
from tfrio.examples.sidecar import load_sidecar
from tfrio.examples.told import noted_schema
from tfrio.records.damage import recover
from tfrio.records.reader import RecordStream
from tfrio.records.shards import each_source
from tfrio.types import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfrio.compression import Compression
    from tfrio.examples.schema import Place, Schema
    from tfrio.examples.sidecar import Noted
    from tfrio.storage import Source
    from tfrio.types import PathsLike

__all__ = [
    "NATIVE_UTF8",
    "SAMPLE_RECORDS",
    "Utf8",
    "infer_schema",
    "observe",
    "payload_fault",
    "sample_stream",
]

Utf8: TypeAlias = Literal["strict", "surrogateescape"]
# What the native core calls the two ways to treat feature names that are not UTF-8.
NATIVE_UTF8: Final[dict[Utf8, str]] = {"strict": "error", "surrogateescape": "accept"}


def check_utf8(utf8: object) -> None:
    """Refuse what is no choice of names that are not UTF-8."""
    if utf8 not in tuple(NATIVE_UTF8):  # a tuple also takes what cannot be hashed
        raise UsageError(f"utf8 must be 'strict' or 'surrogateescape', got {utf8!r}")


# How many records decide the form of columns where no schema is given, and how many bytes at
# most: a thousand large patches would be gigabytes.
SAMPLE_RECORDS: Final = 1000
SAMPLE_BYTES: Final = 4 << 20


def infer_schema(
    paths: PathsLike,
    *,
    sample: int | None = None,
    scalars: bool = False,
    compression: Compression | None = None,
    verify: bool = True,
    utf8: Utf8 = "strict",
) -> Schema:
    """Learn the schema that every record fits.

    Args:
        paths: A file, folder, glob, or several of these.
        sample: Number of records to look at; None looks at all. Only after all records is a
            length that never varied made a fixed shape; after a sample the feature stays a list
            whose description says ``length 1 so far``.
        scalars: Whether features with exactly one value in every record become scalars, shape
            ``()``. Otherwise they are lists of one, shape ``(1,)``.
        compression: How the files are compressed; None goes by content.
        verify: Whether payload checksums are checked.
        utf8: ``"surrogateescape"`` accepts feature names that are not UTF-8.

    Returns:
        The schema. Features absent from some record are optional. Where all files that have a
        feature note its axes, its type or how it is packed (``FILE.schema.json``), and these fit
        one form, the feature has that form.

    Raises:
        CorruptRecordError: A record is damaged.
        FeatureKindError: A feature has two kinds; the text names the first record of each.
        NotTFRecordError: A file is something else.
        DecodeError: A payload is neither an Example nor a SequenceExample.
    """
    total, whole = Observation(), True
    files: list[tuple[Noted | None, set[tuple[str, Place]] | None]] = []
    for look in _looks(paths, sample, compression=compression, verify=verify, utf8=utf8):
        has = {key for key, one in look.seen.features.items() if one.present}
        if look.seen.records or not look.whole:
            files.append((load_sidecar(look.source), has if look.whole else None))
        total.join(look.seen)
        whole = whole and look.whole
    return noted_schema(total.schema(fixed=whole, scalars=scalars), total, files)


def observe(
    paths: PathsLike,
    *,
    sample: int | None = None,
    compression: Compression | None = None,
    verify: bool = True,
    utf8: Utf8 = "strict",
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Observation, bool]:
    """Look at records and say what each feature is, conflicts included.

    Args:
        paths: A file, folder, glob, or several of these.
        sample: Number of records to look at; None looks at all.
        compression: How the files are compressed; None goes by content.
        verify: Whether payload checksums are checked.
        utf8: ``"surrogateescape"`` accepts feature names that are not UTF-8.
        progress: Called with records looked at, and 0.

    Returns:
        What was seen, and whether that is all there is.

    Raises:
        CorruptRecordError: A record is damaged.
        NotTFRecordError: A file is something else.
        DecodeError: A payload is neither an Example nor a SequenceExample.
    """
    total, whole = Observation(), True
    for look in _looks(
        paths, sample, compression=compression, verify=verify, utf8=utf8, progress=progress
    ):
        total.join(look.seen)
        whole = whole and look.whole
    return total, whole


class _Look(NamedTuple):
    """What was seen of one file, and whether that is all of it."""

    source: Source
    seen: Observation
    whole: bool


def _looks(
    paths: PathsLike,
    sample: int | None,
    *,
    compression: Compression | None,
    verify: bool,
    utf8: Utf8,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[_Look]:
    """Look at file after file, until the sample is full; files not looked at are named, too."""
    if sample is not None:
        sample = whole_number(sample, "sample")
    check_utf8(utf8)
    done = 0
    for source in each_source(paths):
        seen, whole = Observation(), False
        with RecordStream(source, compression=compression) as stream:
            while not whole and (sample is None or done + seen.records < sample):
                room = -1 if sample is None else sample - done - seen.records
                final = stream.final
                found = _scan_window(stream, room, verify=verify, utf8=utf8)
                seen.join(found)
                if progress:
                    progress(done + seen.records, 0)
                whole = final and not found.records
                if not found.records:
                    stream.fill()
            seen.record_bytes = stream.position // max(stream.records, 1)
        done += seen.records
        yield _Look(source, seen, whole)


def sample_stream(
    stream: RecordStream, *, verify: bool = True, utf8: Utf8 = "strict"
) -> Observation:
    """Look at the first records of a stream without consuming any.

    Args:
        stream: The stream; its window grows until it holds the sample.
        verify: Whether payload checksums are checked.
        utf8: ``"surrogateescape"`` accepts feature names that are not UTF-8.

    Returns:
        What the next 1,000 records hold, or fewer where they exceed 4 MiB or damage ends them,
        which is left for the next ``fill``. No records: the stream is at its end, or what comes
        next is damaged.
    """
    while True:
        scanner = _core.SchemaScanner(sequence=True, utf8=NATIVE_UTF8[utf8])
        feed = scanner.feed(stream.buffer, 0, SAMPLE_RECORDS, verify=verify, final=stream.final)
        full = feed.records >= SAMPLE_RECORDS or (feed.records and feed.consumed >= SAMPLE_BYTES)
        if full or feed.fault is not None or not stream.more():
            seen = Observation()
            seen.add(scanner.result(), feed.records, path=stream.path, first=stream.records)
            return seen


def payload_fault(stream: RecordStream, *, utf8: Utf8 = "strict") -> _core.Fault | None:
    """Return what is wrong with the payload of the next record, None where nothing is.

    Args:
        stream: The stream; its window holds the record.
        utf8: ``"surrogateescape"`` accepts feature names that are not UTF-8.
    """
    scanner = _core.SchemaScanner(sequence=True, utf8=NATIVE_UTF8[utf8])
    return scanner.feed(stream.buffer, 0, 1, verify=False, final=stream.final).fault


def _scan_window(stream: RecordStream, room: int, *, verify: bool, utf8: Utf8) -> Observation:
    """Look at the whole records in the window and consume them."""
    scanner = _core.SchemaScanner(sequence=True, utf8=NATIVE_UTF8[utf8])
    feed = scanner.feed(stream.buffer, 0, room, verify=verify, final=stream.final)
    seen = Observation()
    seen.add(scanner.result(), feed.records, path=stream.path, first=stream.records)
    stream.advance(feed.consumed, feed.records)
    if feed.fault is not None:
        raise _error(stream, feed.fault)
    return seen


def _error(stream: RecordStream, fault: _core.Fault) -> TfrioError:
    """Say what is wrong with the record at the start of the window."""
    if fault.field:
        return recover(stream, fault).error()
    return from_fault(fault, path=stream.path, record=stream.records, offset=stream.position)

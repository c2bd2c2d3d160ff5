"""Read Examples and SequenceExamples: as rows, or as batches of columns."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Literal

from tfrio.errors import MissingFeatureError, UsageError
from tfrio.examples.convert import make_batch
from tfrio.examples.engine import Chunk, Engine, Options
from tfrio.examples.faults import with_present
from tfrio.examples.form import Bound, Form, Learned
from tfrio.examples.merge import join_chunks
from tfrio.examples.outputs import output_slots
from tfrio.examples.rows import batch_rows
from tfrio.examples.schema import Schema
from tfrio.types import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfrio.compression import Compression
    from tfrio.examples.columns import Array, Batch
    from tfrio.examples.infer import Utf8
    from tfrio.examples.schema import SchemaLike
    from tfrio.records.damage import DamageReport
    from tfrio.storage import Source
    from tfrio.types import PathsLike

__all__ = ["check_names", "read", "read_batches"]

# Rows are made from columns of at most this many records: enough to spread the cost of a call,
# few enough that a row held by the user keeps little memory alive.
_ROWS_AT_ONCE = 2048


def read(
    paths: PathsLike | Source,
    *,
    features: Sequence[str] | None = None,
    schema: SchemaLike | None = None,
    compression: Compression | None = None,
    verify: bool = True,
    errors: Literal["raise", "skip"] = "raise",
    max_bad: int | None = None,
    report: DamageReport | None = None,
    utf8: Utf8 = "strict",
    threads: int | None = None,
) -> Iterator[dict[str, Any]]:
    """Read records as dicts of NumPy arrays and bytes.

    Without a schema a row holds the features its record has: numbers as arrays (float32 or
    int64) with one axis, one bytes value as ``bytes``, several as a list, a feature list as a
    list of steps. With a schema every row has every feature of it, in its shape and type; an
    optional feature that is absent is None.

    Args:
        paths: File, folder, glob, URL, file object, or several paths.
        features: Names of the features to read; the others are skipped unread.
        schema: What the features are. A record that does not fit is an error.
        compression: ``"none"``, ``"gzip"`` or ``"zlib"``; None goes by the content of each file.
        verify: Check each payload's CRC32C. That of the length is always checked.
        errors: ``"raise"``, or ``"skip"`` to leave damaged records out, counted in ``report``.
        max_bad: Most damaged records to skip before the next one raises.
        report: Filled with what was skipped, over all files.
        utf8: ``"surrogateescape"`` accepts feature names that are not UTF-8.
        threads: Threads to inflate on, and to decode large batches on, by default up to 4; 1
            starts none.

    Yields:
        One dict a record. Arrays of neighbouring rows share memory; none is ever overwritten.

    Raises:
        CorruptRecordError: A record is damaged.
        DecodeError: A payload is neither an Example nor a SequenceExample.
        SchemaError: A record does not fit the schema.
        NotTFRecordError: A file is something else.
    """
    options = Options(
        compression=compression,
        verify=verify,
        errors=errors,
        max_bad=max_bad,
        report=report,
        utf8=utf8,
        threads=threads,
    )
    form = _form(schema, features, switch=True)
    with Engine(paths, form, options) as engine:
        while (chunk := engine.chunk(_ROWS_AT_ONCE, whole=False)) is not None:
            batch = _batch(chunk, options)
            yield from batch_rows(batch, chunk.layout.schema, bound=schema is not None)


def read_batches(
    paths: PathsLike | Source,
    batch_size: int,
    *,
    features: Sequence[str] | None = None,
    schema: SchemaLike | None = None,
    out: Mapping[str, Array] | None = None,
    drop_last: bool = False,
    compression: Compression | None = None,
    verify: bool = True,
    errors: Literal["raise", "skip"] = "raise",
    max_bad: int | None = None,
    report: DamageReport | None = None,
    utf8: Utf8 = "strict",
    threads: int | None = None,
) -> Iterator[Batch]:
    """Read records as columns, ``batch_size`` at a time.

    Without a schema the first 1,000 records decide the form of each column: numbers with one
    length in all of them are arrays (rows, length), bytes with one value are a ``BytesColumn``,
    all else is ``Ragged``. Where a later record does not fit, its column becomes ragged (or
    appears) from that batch on, and one warning says so.

    Args:
        paths: File, folder, glob, URL, file object, or several paths.
        batch_size: Records a batch; only the last of all files may have fewer.
        features: Names of the features to read; the others are skipped unread.
        schema: What the features are. A record that does not fit is an error.
        out: Arrays (batch_size, ...) of stored type to decode into, by feature; the batch holds
            views of them, overwritten by the next batch. Needs a schema with fixed shapes.
        drop_last: Leave out a last batch with fewer records.
        compression: ``"none"``, ``"gzip"`` or ``"zlib"``; None goes by the content of each file.
        verify: Check each payload's CRC32C. That of the length is always checked.
        errors: ``"raise"``, or ``"skip"`` to leave damaged records out, counted in ``report``.
        max_bad: Most damaged records to skip before the next one raises.
        report: Filled with what was skipped, over all files.
        utf8: ``"surrogateescape"`` accepts feature names that are not UTF-8.
        threads: Threads to inflate on, and to decode large batches on, by default up to 4; 1
            starts none.

    Yields:
        A ``Batch``: a dict of columns, with ``present`` masks and ``rows``.

    Raises:
        CorruptRecordError: A record is damaged.
        DecodeError: A payload is neither an Example nor a SequenceExample.
        SchemaError: A record does not fit the schema.
        NotTFRecordError: A file is something else.
    """
    batch_size = whole_number(batch_size, "batch_size")
    options = Options(
        compression=compression,
        verify=verify,
        errors=errors,
        max_bad=max_bad,
        report=report,
        utf8=utf8,
        threads=threads,
    )
    form = _form(schema, features, switch=False)
    slots = output_slots(out, form.layout, batch_size) if out else None
    with Engine(paths, form, options) as engine:
        while (chunk := _whole_batch(engine, batch_size, slots)) is not None:
            if chunk.rows == batch_size or not drop_last:
                yield _batch(chunk, options)


def _form(schema: SchemaLike | None, features: Sequence[str] | None, *, switch: bool) -> Form:
    check_names(features)
    if schema is None:
        return Learned(names=features, switch=switch)
    bound = Schema.of(schema)
    return Bound(bound if features is None else bound.select(features))


def check_names(features: object) -> None:
    """Refuse what is no list of names of features.

    Args:
        features: What a user gave; None stands for all.

    Raises:
        UsageError: A single name, or something else.
    """
    if isinstance(features, str):
        raise UsageError(f"features is a list of names; for one name write [{features!r}]")
    if features is None:
        return
    if not isinstance(features, Collection) or not all(isinstance(n, str) for n in features):
        raise UsageError(f"features is a list of names, got {features!r}")


def _whole_batch(
    engine: Engine, batch_size: int, slots: Mapping[int, Array] | None
) -> Chunk | None:
    """Return the next records as one chunk, however often the layout changed on the way."""
    chunks: list[Chunk] = []
    rows = 0
    while rows < batch_size:
        chunk = engine.chunk(batch_size - rows, out=slots)
        if chunk is None:
            break
        chunks.append(chunk)
        rows += chunk.rows
    return join_chunks(chunks) if chunks else None


def _batch(chunk: Chunk, options: Options) -> Batch:
    try:
        return make_batch(chunk.layout, chunk.natives, chunk.rows, chunk.origin)
    except MissingFeatureError as error:
        raise with_present(error, compression=options.compression) from None

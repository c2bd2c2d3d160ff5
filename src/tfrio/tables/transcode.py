"""TFRecord to Parquet, Arrow or NumPy archives and back, exactly, a batch at a time.

Absent is null, an empty list is an empty list, bytes are bytes. Columns keep the order in which
features stand in the first record, so that records come back byte for byte.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tfrio import storage
from tfrio.compression import DEFAULT_LEVEL
from tfrio.errors import SchemaError, UsageError, many, warn_user
from tfrio.examples.arrow import from_arrow
from tfrio.examples.carry import Carried, warn_lost
from tfrio.examples.writer import Writer
from tfrio.records.names import is_record_name, stem_of
from tfrio.records.reader import read_records
from tfrio.records.shards import expand
from tfrio.records.writer import RecordWriter
from tfrio.tables.archive import archive_batches, archive_schema, write_archive
from tfrio.tables.arrow import arrow_schema, look_through, record_batches, rows_per_batch
from tfrio.tables.axes import Believed, is_steps, nested, not_nested, with_arrays, with_notes
from tfrio.tables.restore import restore
from tfrio.tables.sinks import FORMATS, open_sink
from tfrio.tables.sources import ARROW, PARQUET, open_ipc, open_parquet
from tfrio.types import path_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tfrio.examples.schema import Schema
    from tfrio.examples.sidecar import Noted
    from tfrio.types import PathLike, PathsLike

__all__ = ["ConvertReport", "convert"]

_ARCHIVE = (".npz",)
_TOLD_EVERY = 4096  # records
_Told: TypeAlias = "Callable[[int, int], None]"


@dataclass(frozen=True, slots=True)
class ConvertReport:
    """What a conversion wrote.

    Args:
        path: The file written.
        rows: Records or rows in it.
        size: Its bytes.
        source_size: Bytes of what was read.
    """

    path: str
    rows: int
    size: int
    source_size: int

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the report as one line."""
        share = self.size / self.source_size if self.source_size else 0.0
        return (
            f"{self.rows:,} {many(self.rows, 'row')} -> {self.path} "
            f"({self.size:,} bytes, {share:.0%} of {self.source_size:,})"
        )


def convert(
    source: PathsLike,
    out: PathLike,
    *,
    features: Sequence[str] | None = None,
    batch_size: int | None = None,
    level: int = DEFAULT_LEVEL,
    strict: bool = False,
    unmangle: Sequence[str] = (),
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ConvertReport:
    """Convert between TFRecord, Parquet, Arrow and NumPy archives, by the endings of the names.

    Args:
        source: TFRecord files (a file, folder, glob, or several), or one ``.parquet``, ``.arrow``
            or ``.npz`` file.
        out: File to write: ``.parquet``, ``.arrow``, ``.npz``, or ``.tfrecord`` (no ending or one
            of its other forms will do; ``.gz`` for gzip). TFRecord to TFRecord changes the
            compression only; payloads stay as they are.
        features: Features to take, in this order; None takes all. Not for TFRecord to TFRecord.
        batch_size: Rows at a time; by default what fits in 64 MiB.
        level: Compression level of gzip: 1 (fast) to 9 (small).
        strict: Refuse numbers that float32 changes noticeably, instead of warning once.
        unmangle: Features whose bytes were stored as text, and are restored; from TFRecord to
            TFRecord (see ``tfrio.examples.images.unmangle``).
        overwrite: Allow ``out`` to exist.
        progress: Called with records done and in all; 0 in all where that is not known.

    Returns:
        What was written, with sizes before and after.

    Raises:
        UsageError: Both files are tables, or a feature does not exist.
        DecodeError: A value to restore did not go through a text type.
        FeatureKindError: A feature has two kinds.
        EncodeError: A value has no place in a TFRecord.
        FileExistsError: ``out`` exists and ``overwrite`` is not set.
    """
    target = path_text(out)
    given, made = _form(source), _form(target)
    _check_target(target, made)
    if given != "records" and made != "records":
        raise UsageError(
            f"{source} and {target} are both tables; one side of a conversion is TFRecord"
        )
    storage.refuse_existing(target, overwrite=overwrite)
    told = progress or (lambda _done, _total: None)
    if given == made:
        if features is not None:
            raise UsageError("features= needs Parquet, Arrow or .npz on one side")
        if unmangle:
            rows = restore(expand(source), target, unmangle, level=level, told=told)
        else:
            rows = _recompress(source, target, level, told)
    elif unmangle:
        raise UsageError("unmangle= is for TFRecord on both sides")
    elif given == "records":
        rows = _from_records(source, target, made, features, batch_size, told)
    else:
        options = {"level": level, "strict": strict}
        rows = _to_records(str(source), target, given, features, batch_size, options, told)
    files = expand(source) if given == "records" else [str(source)]
    sizes = [storage.size_of(file) or 0 for file in files]
    return ConvertReport(target, rows, storage.size_of(target) or 0, sum(sizes))


def _form(path: Any) -> str:
    """Return ``"parquet"``, ``"arrow"``, ``"npz"`` or ``"records"``, by the name."""
    name = path_text(path).lower() if isinstance(path, str | os.PathLike) else ""
    forms = ((PARQUET, "parquet"), (ARROW, "arrow"), (_ARCHIVE, "npz"))
    return next((form for endings, form in forms if name.endswith(endings)), "records")


def _check_target(target: str, form: str) -> None:
    """Refuse names that say something else than what would be written."""
    ending = os.path.splitext(stem_of(target))[1]  # noqa: PTH122 - it may be a URL
    if form != "records" or is_record_name(target) or not ending:
        return
    known = ", ".join((*PARQUET, *ARROW, *_ARCHIVE))
    table = ending.lower() in FORMATS
    remedy = "; import_table (tfrio import table) writes CSV and GeoJSON" if table else ""
    raise UsageError(f"{target}: the name must end in .tfrecord, .tfrecord.gz, {known}{remedy}")


def _recompress(source: PathsLike, target: str, level: int, told: _Told) -> int:
    files = expand(source)
    carried = Carried(files)
    with RecordWriter(target, level=level) as writer:
        for path in files:
            before = writer.records
            for number, payload in enumerate(read_records(path)):
                writer.write(payload)
                if number % _TOLD_EVERY == 0:
                    told(writer.records, 0)
            carried.take(path, range(writer.records - before))
        rows = writer.records
    carried.save(target)
    return rows


def _from_records(
    source: PathsLike,
    target: str,
    form: str,
    features: Sequence[str] | None,
    batch_size: int | None,
    told: _Told,
) -> int:
    files = expand(source)
    looked = look_through(files, progress=told)
    schema, kindless, size = looked.schema, looked.kindless, looked.record_bytes
    if features is not None:
        schema = schema.select(features)
    if not schema:
        raise SchemaError(f"{files[0]}: its records hold no features, so there are no columns")
    for name in kindless & set(schema):
        if schema[name].place == "list" and form != "npz":
            continue  # Arrow has lists of nothing
        warn_user(
            f"feature '{name}' is named without a kind in some records; it becomes null, and "
            "absent on the way back"
        )
    at_once = batch_size or rows_per_batch(schema, size)
    found = _noted(looked.parts)
    if form == "npz":
        return write_archive(files, target, schema, found, at_once, told)
    schema = nested(schema, looked.noted)
    left = not_nested(found, schema)
    warn_lost(target, left.lost)
    columns = with_notes(
        arrow_schema(schema), left, looked.records, _apart(files, schema, left, at_once)
    )
    rows = 0
    with storage.atomic_write(target) as file, open_sink(file, form, columns, None) as sink:
        for batch in record_batches(files, schema, at_once):
            sink.write(batch, None)
            rows += batch.num_rows
            told(rows, looked.records)
    return rows


def _noted(parts: Sequence[tuple[str, int]]) -> Noted:
    """Return what files of so many records each note of all these records."""
    carried = Carried(path for path, _ in parts)
    for path, records in parts:
        carried.take(path, range(records))
    return carried.noted()


def _apart(files: list[str], schema: Schema, left: Noted, rows: int) -> Iterator[Any]:
    """Return batches of the columns whose axes are noted row by row."""
    # Of files with feature lists one is read along: readers warn where they are to skip them all.
    lists = [name for name, feature in schema.items() if feature.place == "list"]
    return record_batches(files, schema.select([*left.rows, *lists[:1]]), rows)


def _to_records(
    source: str,
    target: str,
    form: str,
    features: Sequence[str] | None,
    batch_size: int | None,
    options: dict[str, Any],
    told: _Told,
) -> int:
    if form == "npz":
        schema = archive_schema(source, features)
        with Writer(target, schema=schema, **options) as writer:
            # Rows are views of arrays in memory; what is made of them is what takes room.
            at_once = batch_size or rows_per_batch(schema, 4096)
            for batch in archive_batches(source, schema, at_once):
                writer.write_batch(batch)
                told(writer.records, 0)
            return writer.records
    opener: Callable[[str], Any] = open_parquet if form == "parquet" else open_ipc
    with opener(source) as (schema, batches, _):
        names = list(features) if features is not None else schema.names
        _check_names(names, schema.names, source)
        steps = any(map(is_steps, schema))
        believed = Believed(schema, names, source)
        with Writer(target, sequence=steps, sort=False, **options) as writer:
            for part in _parts(batches, names, batch_size):
                believed.see(part)
                for batch in from_arrow(part):
                    writer.write_batch(with_arrays(batch))
                told(writer.records, 0)
        believed.save(target)
        return writer.records


def _check_names(names: Sequence[str], known: Sequence[str], source: str) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"{source}: no column '{name}'; there are {', '.join(known)}")


def _parts(batches: Any, names: Sequence[str], batch_size: int | None) -> Iterator[Any]:
    for batch in batches:
        chosen = batch.select(list(names))
        rows = batch_size or max(chosen.num_rows, 1)
        for start in range(0, chosen.num_rows, rows):
            yield chosen.slice(start, rows)

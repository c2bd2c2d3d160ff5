"""Do records fit a schema? Every misfit at once, where reading would stop at the first."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tfrio import _core
from tfrio.errors import DecodeError, SchemaError, many
from tfrio.examples.convert import make_column
from tfrio.examples.engine import Engine, Options
from tfrio.examples.form import Bound
from tfrio.examples.infer import observe
from tfrio.examples.layout import KIND_NAMES, Layout, shown_name, slot_of
from tfrio.examples.schema import Schema
from tfrio.records.reader import RecordStream

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrio.compression import Compression
    from tfrio.errors import TfrioError
    from tfrio.examples.engine import Chunk
    from tfrio.examples.infer import Utf8
    from tfrio.examples.observe import Observation, Seen
    from tfrio.examples.schema import Feature, SchemaLike
    from tfrio.types import PathsLike

__all__ = ["SchemaCheck", "check_schema", "misfits"]

_UNFIT: Final = (SchemaError, DecodeError)
# Records read at once: enough to spread the cost of a call, few enough for decoded images.
_AT_ONCE: Final = 256
_FOOTER: Final = 4  # bytes of the payload's checksum


@dataclass(frozen=True, slots=True)
class SchemaCheck:
    """How records fit a schema.

    Attributes:
        records: Number of records looked at.
        problems: What does not fit, one sentence each.
        unlisted: Features that the records have and the schema lacks; reading skips them.
    """

    records: int
    problems: tuple[str, ...]
    unlisted: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Return whether every record fits."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "ok": self.ok,
            "records": self.records,
            "problems": self.problems,
            "unlisted": tuple(map(shown_name, self.unlisted)),
        }

    def __str__(self) -> str:
        """Return each misfit, and the outcome, as lines for a person."""
        lines = [*self.problems]
        if self.unlisted:
            names = ", ".join(map(shown_name, self.unlisted))
            lines.append(f"not in the schema, skipped on reading: {names}")
        verdict = "fit" if self.ok else "looked at, not all fit"
        return "\n".join([*lines, f"{self.records:,} {many(self.records, 'record')} {verdict}"])


def check_schema(
    paths: PathsLike,
    schema: SchemaLike,
    *,
    sample: int | None = None,
    compression: Compression | None = None,
    verify: bool = True,
    utf8: Utf8 = "strict",
) -> SchemaCheck:
    """Say whether ``read`` would take all records by a schema, and what it would refuse.

    Args:
        paths: A file, folder, glob, or several of these.
        schema: The schema.
        sample: Number of records to look at; None looks at all.
        compression: How the files are compressed; None goes by content.
        verify: Whether payload checksums are checked.
        utf8: ``"surrogateescape"`` accepts feature names that are not UTF-8.

    Returns:
        All that does not fit: kinds, numbers of values, absence, and of values that no codec, dtype
        or shape of the schema takes, the first of each feature.

    Raises:
        DecodeError: A payload is neither an Example nor a SequenceExample.
        MissingExtraError: A codec needs a package that is not installed.
    """
    wanted = Schema.of(schema)
    seen, _ = observe(paths, sample=sample, compression=compression, verify=verify, utf8=utf8)
    options = Options(compression=compression, verify=verify, utf8=utf8)
    return misfits(seen, wanted, [(paths, sample)], options)


def misfits(
    seen: Observation,
    schema: Schema,
    parts: Sequence[tuple[PathsLike, int | None]],
    options: Options,
) -> SchemaCheck:
    """Compare records that were looked at with a schema.

    Args:
        seen: What the records hold.
        schema: The schema.
        parts: Where they are: paths, and how many of their first records, None for all. They are
            read again only where the schema changes stored values: by a codec, dtype, free or
            named axes, or row lengths.
        options: How they are read.

    Returns:
        All that does not fit; of values that cannot be changed so, the first of each feature.

    Raises:
        MissingExtraError: A codec needs a package that is not installed.
    """
    Layout(schema)  # refuses what reading refuses before any record
    problems: dict[str, list[str]] = {}
    listed = set()
    for key, feature in schema.items():
        place = (feature.stored_as(key), feature.place)
        listed.add(place)
        listed.update((name, "context") for name in (*feature.row_lengths, *feature.dims))
        found = list(_problems(key, feature, seen.features.get(place), seen.records))
        if found:
            problems[key] = found
    sound = [k for k, f in schema.items() if problems.keys().isdisjoint((k, *f.dims))]
    for name, text in _unread(schema.select(sound), parts, options):
        problems.setdefault(name, []).append(text)
    unlisted = tuple(name for name, place in seen.features if (name, place) not in listed)
    texts = (text for key in (*schema, "") for text in problems.get(key, ()))
    return SchemaCheck(seen.records, tuple(texts), unlisted)


def _unread(
    schema: Schema, parts: Sequence[tuple[PathsLike, int | None]], options: Options
) -> Iterator[tuple[str, str]]:
    """Read what the schema changes; yield the name of each feature that cannot be, and why."""
    left = set(schema)
    while left:
        some = schema.select([key for key in schema if key in left])
        try:
            for key, error in _refused(some, parts, options):
                left.discard(key)
                yield key, _placed(error, options)
            return
        except _UNFIT as error:  # of what serves as an axis, or as row lengths
            yield "", _placed(error, options)
            needed = {key: (f.stored_as(key), *f.dims, *f.row_lengths) for key, f in some.items()}
            left &= {key for key in left if error.feature not in needed[key]}
            if len(left) == len(some):
                return


def _refused(
    schema: Schema, parts: Sequence[tuple[PathsLike, int | None]], options: Options
) -> Iterator[tuple[str, TfrioError]]:
    """Read what the schema changes; yield the first error of each feature."""
    form = Bound(schema)
    form.sequence = True  # what is left out is told as ``unlisted``, not by a warning
    left = [output for output in form.layout.outputs if _changes(output[1])]
    for paths, limit in parts if left else ():
        for chunk in _chunks(paths, limit, form, options):
            for output in list(left):
                try:
                    make_column(form.layout, output, chunk.natives, chunk.rows, chunk.origin)
                except _UNFIT as error:
                    left.remove(output)
                    yield output[0], error


def _chunks(paths: PathsLike, limit: int | None, form: Bound, options: Options) -> Iterator[Chunk]:
    """Yield the first records, some at a time."""
    left = sys.maxsize if limit is None else limit
    with Engine(paths, form, options) as engine:
        while left and (chunk := engine.chunk(min(_AT_ONCE, left), whole=False)) is not None:
            left -= chunk.rows
            yield chunk


def _changes(feature: Feature) -> bool:
    """Return whether reading may refuse values that have the kind and number it asks for."""
    if feature.codec or feature.dims or feature.row_lengths:
        return True
    if feature.dtype == "str" or (-1 in (feature.shape or ()) and len(feature.shape or ()) > 1):
        return True
    dtype = None if feature.dtype is None else np.dtype(feature.dtype)
    if feature.kind == "float":
        return dtype is not None and dtype.itemsize < np.dtype(np.float32).itemsize
    return dtype not in (None, np.dtype(np.int64))


def _placed(error: TfrioError, options: Options) -> str:
    """Return what an error says, with the offset of the record added."""
    offset = error.offset
    if offset is None and error.path is not None and error.record is not None:
        offset = _offset(error.path, error.record, options)
    return error.message if offset is None else f"{error.message} (offset {offset})"


def _offset(path: str, record: int, options: Options) -> int | None:
    """Return the offset of a record in the uncompressed data, None where damage precedes it."""
    with RecordStream(path, compression=options.compression) as stream:
        while stream.records < record:
            spans = _core.scan(stream.buffer, 0, record - stream.records, False, stream.final).spans
            if len(spans):
                stream.advance(int(spans[-1].sum()) + _FOOTER, len(spans))
            elif not stream.more():
                return None
        return stream.position


def _problems(key: str, feature: Feature, seen: Seen | None, records: int) -> Iterator[str]:
    present = 0 if seen is None else seen.present
    if feature.required and feature.default is None and present < records:
        yield (
            f"feature '{key}' is required and missing in {records - present} of {records} "
            "records; give a default or mark it optional"
        )
    if seen is None:
        return
    slot = slot_of(key, feature)
    for kind, sighting in seen.kinds.items():
        if kind != KIND_NAMES[slot.kind]:
            where = f" of {sighting.path}" if sighting.path else ""
            yield (
                f"feature '{key}' is {kind}_list in {sighting.times} records (the first is record "
                f"{sighting.record}{where}); the schema says {feature.kind}"
            )
    lengths = seen.lengths
    if lengths is None and feature.place == "list" and seen.kindless:
        lengths = (0, 0)  # a step without a kind is a step without values
    if slot.values >= 0 and lengths not in (None, (slot.values, slot.values)):
        low, high = lengths or (0, 0)
        span = f"{low}" if low == high else f"{low} to {high}"
        unit = "step" if feature.place == "list" else "record"
        yield f"feature '{key}' has {span} values in a {unit}; the schema says {slot.values}"

"""Rows to features: what a schema says about them, and how nested values become flat ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tfrio.errors import EncodeError, MissingFeatureError
from tfrio.examples.axes import RowAxes
from tfrio.examples.codecs import encode_value
from tfrio.examples.exact import Exactness, Stored, is_missing, store
from tfrio.examples.steps import has_steps, list_column
from tfrio.examples.wire import Encoders, Target, WireColumn, one_value

if TYPE_CHECKING:
    from tfrio.examples.infer import Utf8
    from tfrio.examples.schema import Feature, Kind, Place, Schema, SchemaLike

__all__ = ["RowEncoder", "encode_example", "encode_sequence", "is_nested"]

_HEADER, _FOOTER = 12, 4


def encode_example(
    row: Mapping[str, Any],
    *,
    schema: SchemaLike | None = None,
    strict: bool = False,
    sort: bool = True,
) -> bytes:
    """Encode one row as the payload of a tf.train.Example.

    Args:
        row: Value by feature name; None leaves a feature out.
        schema: What the features are; None goes by the values.
        strict: Refuse numbers that float32 changes noticeably.
        sort: Write features in the order of their names; otherwise in that of the mapping.

    Returns:
        The serialized message; equal rows give equal bytes where names are sorted.

    Raises:
        EncodeError: A value cannot be stored without changing it.
    """
    columns = RowEncoder(_schema_of(schema), strict=strict).row(row)
    return _payload(columns, sequence=False, sort=sort)


def encode_sequence(
    context: Mapping[str, Any],
    lists: Mapping[str, Sequence[Any]],
    *,
    schema: SchemaLike | None = None,
    strict: bool = False,
    sort: bool = True,
) -> bytes:
    """Encode the payload of a tf.train.SequenceExample.

    Args:
        context: Value by feature name.
        lists: Steps by feature list; each step is a value or a list of values, None for one
            without a kind.
        schema: What the features are; None goes by the values.
        strict: Refuse numbers that float32 changes noticeably.
        sort: Write features in the order of their names; otherwise in that of the mapping.

    Returns:
        The serialized message; equal rows give equal bytes where names are sorted.

    Raises:
        EncodeError: A value cannot be stored without changing it.
    """
    encoder = RowEncoder(_schema_of(schema), strict=strict)
    return _payload(encoder.sequence(context, lists), sequence=True, sort=sort)


def _payload(columns: Mapping[Target, WireColumn], *, sequence: bool, sort: bool) -> bytes:
    data, _ = Encoders(sort=sort).encode(1, columns, sequence=sequence)
    return bytes(data[_HEADER:-_FOOTER])


def _schema_of(schema: SchemaLike | None) -> Schema | None:
    from tfrio.examples.schema import Schema

    return None if schema is None else Schema.of(schema)


def is_nested(value: Any) -> bool:
    """Return whether a value has lists inside: steps of a feature list, or rows of an array."""
    if isinstance(value, np.ndarray):
        return value.ndim > 1 or value.dtype.kind == "O"
    if not isinstance(value, Sequence) or isinstance(value, bytes | str | bytearray):
        return False
    return any(isinstance(item, list | tuple) or np.ndim(item) > 0 for item in value[:1])


@dataclass(slots=True)
class RowEncoder:
    """Turn rows into columns of one row, and remember the kind each feature has.

    Args:
        schema: What the features are; a feature it lacks is refused. None goes by the values.
        strict: Refuse numbers that float32 changes noticeably.
        ragged: ``"split"`` stores a list of lists as ``NAME/values`` and ``NAME/lengths``.
        sequence_only: Whether all rows are SequenceExamples.
        utf8: ``"surrogateescape"`` writes names that are no UTF-8 as they were read.

    Attributes:
        kinds: Kind of each feature so far.
        shapes: Axes of the values of two or more, by feature.
        flat: Features that had a value with fewer axes.
        listed: Feature lists whose steps have no kind yet.
        bare: Feature lists that have steps without a kind.
        splits: Features stored as values and lengths.
        record: Number of the next record.
    """

    schema: Schema | None = None
    strict: bool = False
    ragged: Literal["error", "split"] = "error"
    sequence_only: bool = False
    utf8: Utf8 = "strict"
    exactness: Exactness = field(init=False)
    kinds: dict[tuple[str, Place], Kind] = field(default_factory=dict)
    shapes: dict[tuple[str, Place], RowAxes] = field(default_factory=dict)
    flat: set[tuple[str, Place]] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)
    bare: set[str] = field(default_factory=set)
    record: int = 0
    splits: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.exactness = Exactness(strict=self.strict)

    def row(self, row: Mapping[str, Any]) -> dict[Target, WireColumn]:
        """Return the features of one Example."""
        found: dict[Target, WireColumn] = {}
        for name, value in self._completed(row).items():
            feature = self.feature(name)
            if is_missing(value):
                self._absent(name, feature, found)
            elif feature is not None and feature.row_lengths:
                self._put_split(name, value, feature.stored_as(name), feature.row_lengths, found)
            elif self.ragged == "split" and self._nested(name, value):
                self.splits.add(name)
                self._put_split(name, value, f"{name}/values", (f"{name}/lengths",), found)
            else:
                self._put(name, self.stored(name, value, feature), feature, found)
        self._check_complete(row)
        return found

    def _nested(self, name: str, value: Any) -> bool:
        """Return whether a value is to be split, which all rows of a feature are or none is."""
        split = name in self.splits
        if isinstance(value, list | tuple):
            nested = is_nested(value) or (split and not value)
        else:
            nested = split and np.ndim(value) > 1
        if nested != split and (split or (name, "context") in self.kinds):
            was, now = ("flat", "nested") if nested else ("nested", "flat")
            raise EncodeError(
                f"feature '{name}': the list was {was} in earlier records and is {now} now; give "
                "all rows as lists of lists, or write the two under two names",
                feature=name,
            )
        return nested

    def sequence(
        self, context: Mapping[str, Any], lists: Mapping[str, Any]
    ) -> dict[Target, WireColumn]:
        """Return the features and feature lists of one SequenceExample."""
        found: dict[Target, WireColumn] = {}
        for name, value in context.items():
            feature = self.feature(name)
            if is_missing(value):
                self._absent(name, feature, found)
            else:
                self._put(name, self.stored(name, value, feature), feature, found)
        for name, steps in lists.items():
            if not is_missing(steps):
                self._put_list(name, steps, found)
        self._check_complete({**context, **lists})
        return found

    def split_places(self, row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the context and the feature lists of a row: by the schema, else by nesting."""
        context: dict[str, Any] = {}
        lists: dict[str, Any] = {}
        for name, value in row.items():
            feature = self.feature(name)
            known = (name, "list") in self.kinds or name in self.listed
            as_list = feature.place == "list" if feature else known or has_steps(value)
            (lists if as_list else context)[name] = value
        return context, lists

    def feature(self, name: str) -> Feature | None:
        """Return what the schema says of a feature, None without a schema."""
        _check_name(name, self.utf8)
        if self.schema is None:
            return None
        if name not in self.schema:
            raise EncodeError(
                f"feature '{name}' is not in the schema, which has {sorted(self.schema)}; add it "
                "or leave it out of the row",
                feature=name,
            )
        return self.schema[name]

    def stored(
        self, name: str, value: Any, feature: Feature | None, place: Place = "context"
    ) -> Stored:
        """Return one value as it goes on the wire, checked against the schema."""
        if feature is not None and feature.codec is not None:
            return _encoded(name, value, feature)
        kind = feature.kind if feature else self.kinds.get((name, place), "unknown")
        if feature is None and kind == "int64":
            kind = "unknown"  # a float after integers must be seen as such
        made = store(value, name, self.exactness, kind=kind)
        if feature is not None:
            _check_shape(name, made, feature)
        return made

    def known_kind(self, name: str, kind: Kind, place: Place) -> Kind:
        """Return the kind to write, and remember it; refuse another than before."""
        key = (name, place)
        before = self.kinds.get(key)
        if kind == "unknown":
            if before is None:
                raise EncodeError(
                    f"feature '{name}': an empty list has no kind; give an empty array of a type "
                    "(np.array([], np.float32)) or a schema; a feature list of no steps is told "
                    "from it by Writer.write_sequence",
                    feature=name,
                )
            return before
        if before is not None and before != kind:
            raise EncodeError(
                f"feature '{name}' was {before} in earlier records and is {kind} now; convert the "
                f"values, or say the kind of all: schema={{'{name}': 'float'}}",
                feature=name,
            )
        self.kinds[key] = kind
        return kind

    def _put(
        self, name: str, made: Stored, feature: Feature | None, found: dict[Target, WireColumn]
    ) -> None:
        wire = feature.stored_as(name) if feature else name
        if made.kind == "unknown" and (wire, "context") in self.kinds:
            made = store([], name, self.exactness, kind=self.kinds[wire, "context"])
        kind = self.known_kind(wire, made.kind, "context")
        if feature is None:
            self.note_shape(name, made.shape)
        found[Target(wire, kind)] = one_value(made)

    def _put_list(self, name: str, steps: Any, found: dict[Target, WireColumn]) -> None:
        target, column = list_column(self, name, [steps], self.feature(name))
        found[target] = column

    def _put_split(
        self,
        name: str,
        value: Any,
        wire: str,
        row_lengths: tuple[str, ...],
        found: dict[Target, WireColumn],
    ) -> None:
        """Store nested lists as one flat list and the lengths of the lists, level by level."""
        level = list(value)
        for lengths in row_lengths:
            sizes = np.array([len(inner) for inner in level], np.int64)
            found[Target(lengths, "int64")] = one_value(Stored("int64", sizes, (len(sizes),)))
            level = [item for inner in level for item in inner]
        feature = self.feature(name)
        kind = feature.kind if feature else self.kinds.get((wire, "context"), "unknown")
        made = store(level, name, self.exactness, kind=kind)
        kind = self.known_kind(wire, made.kind, "context")
        found[Target(wire, kind)] = one_value(
            made if made.kind == kind else store([], name, self.exactness, kind=kind)
        )

    def _absent(self, name: str, feature: Feature | None, found: dict[Target, WireColumn]) -> None:
        """Leave a feature out; a required list becomes empty, of its kind."""
        if feature is None or not feature.required or feature.default is not None:
            return
        if feature.count != -1 or feature.codec is not None:
            raise _missing(name)
        self._put(name, store([], name, self.exactness, kind=feature.kind), feature, found)

    def _completed(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the row with the axes that other features name, taken from the arrays."""
        if self.schema is None:
            return row
        extra: dict[str, int] = {}
        for name, feature in self.schema.items():
            value = row.get(name)
            if feature.dims and value is not None and not isinstance(value, bytes):
                extra.update(_axes(name, _shape_of(name, value), feature, row))
        return {**row, **{k: v for k, v in extra.items() if k in self.schema}} if extra else row

    def _check_complete(self, row: Mapping[str, Any]) -> None:
        for name, feature in (self.schema or {}).items():
            helper = any(name in f.dims for f in (self.schema or {}).values())
            if name not in row and feature.required and feature.default is None and not helper:
                raise _missing(name)

    def note_shape(
        self,
        name: str,
        shape: tuple[int, ...],
        place: Place = "context",
        *,
        row: int = 0,
        count: int = 1,
    ) -> None:
        """Remember the axes of values (or steps), which the records themselves do not tell.

        Args:
            name: The feature.
            shape: Axes of each value, at most one of them -1.
            place: Where the feature is.
            row: The first of these values, counted from the next record.
            count: How many rows (not steps) have these axes.
        """
        key = (name, place)
        if len(shape) < 2:
            self.flat.add(key)
            return
        axes = self.shapes.setdefault(key, RowAxes())
        axes.note(self.record + row if place == "context" else axes.end, shape, count)


def _shape_of(name: str, value: Any) -> tuple[int, ...]:
    """Return the shape of an array or of nested lists; refuse lists of differing length."""
    try:
        return np.shape(value)
    except (TypeError, ValueError) as error:
        raise EncodeError(f"feature '{name}' is no array: {error}", feature=name) from error


def _axes(
    name: str, shape: tuple[int, ...], feature: Feature, row: Mapping[str, Any]
) -> dict[str, int]:
    """Return the lengths of the named axes of an array; refuse those the row contradicts."""
    wanted = feature.shape or ()
    if len(shape) != len(wanted):
        raise EncodeError(f"feature '{name}': shape {shape} is not {wanted}", feature=name)
    axes: dict[str, int] = {}
    for dim, size in zip(wanted, shape, strict=True):
        if isinstance(dim, str):
            given = row.get(dim)
            if given is not None and int(np.asarray(given).ravel()[0]) != size:
                raise EncodeError(
                    f"feature '{name}': axis '{dim}' is {size} long, the row says {given}",
                    feature=name,
                )
            axes[dim] = size
    return axes


def _encoded(name: str, value: Any, feature: Feature) -> Stored:
    values = list(value) if feature.many else [value]
    try:
        flat = [encode_value(v, feature) for v in values]
    except EncodeError as error:
        raise EncodeError(f"feature '{name}': {error.message}", feature=name) from error
    return Stored("bytes", flat, (len(flat),))


def _check_shape(name: str, made: Stored, feature: Feature) -> None:
    """Refuse values of another number or another order of axes than the schema's."""
    wanted = feature.shape
    if wanted is None or feature.dims:
        return
    got = made.shape
    flat = len(got) < 2 and len(wanted) != 1
    fits = len(got) == len(wanted) and all(d in (-1, n) for d, n in zip(wanted, got, strict=True))
    if flat:
        size = int(np.prod(feature.inner)) if -1 in wanted else feature.count
        fits = fits or (
            len(made.flat) % max(size, 1) == 0 if -1 in wanted else len(made.flat) == size
        )
    if wanted == (1,) and got == ():
        fits = True
    if not fits:
        raise EncodeError(
            f"feature '{name}': {len(made.flat)} values of shape {got}, the schema says {wanted}",
            feature=name,
        )


def _check_name(name: Any, utf8: Utf8) -> None:
    """Refuse a name that no record can hold, or that readers refuse."""
    if not isinstance(name, str):
        raise EncodeError(f"a feature's name is text, not {name!r}")
    if name.isascii():
        return
    try:
        name.encode("utf-8", utf8)
    except UnicodeEncodeError as error:
        raise EncodeError(
            f"a feature's name must be valid Unicode, not {name!r}: readers refuse the record. "
            "Rename it, or keep a name that was no UTF-8 with Writer(..., utf8='surrogateescape')"
        ) from error


def _missing(name: str) -> MissingFeatureError:
    return MissingFeatureError(
        f"feature '{name}' is required by the schema and missing in the row; give it, or mark it "
        "optional (required=False)",
        feature=name,
    )

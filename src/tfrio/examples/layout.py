"""Turn a schema into what the native decoder and encoder are asked for. Pure."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from tfrio.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tfrio.examples.columns import Array
    from tfrio.examples.schema import Feature, Kind, Place, Schema
    from tfrio.examples.told import Note

__all__ = [
    "KIND_NAMES",
    "KIND_NUMBERS",
    "PLACE_NUMBERS",
    "Layout",
    "NativeColumn",
    "Origin",
    "Output",
    "Slot",
    "shown_name",
    "slot_of",
    "stored_name",
    "wire_name",
]

# Field numbers of the oneof in tf.train.Feature; 0 stands for "carries no kind".
KIND_NUMBERS: Final[dict[Kind, int]] = {"unknown": 0, "bytes": 1, "float": 2, "int64": 3}
KIND_NAMES: Final[dict[int, Kind]] = {number: kind for kind, number in KIND_NUMBERS.items()}
PLACE_NUMBERS: Final[dict[Place, int]] = {"context": 0, "list": 1}


# A feature given out: name, form, slot, shape where its values change in nothing.
Output: TypeAlias = "tuple[str, Feature, int, tuple[int, ...] | None]"


class Slot(NamedTuple):
    """One feature as the native decoder is asked for it; ``values`` a record, -1 for any."""

    name: bytes
    kind: int
    values: int
    place: int


class NativeColumn(NamedTuple):
    """What the native decoder gives for one slot (see ``tfrio._core.Column``).

    ``whole`` is True where it is known that no row lacks the feature; ``step_present`` is None
    where every step carries a kind.
    """

    values: Array
    byte_offsets: Array | None
    value_offsets: Array | None
    step_offsets: Array | None
    present: Array
    whole: bool = False
    step_present: Array | None = None

    @classmethod
    def of(cls, column: Any) -> NativeColumn:
        """Take over the arrays of a ``tfrio._core.Column``."""
        return cls(
            column.values,
            column.byte_offsets,
            column.value_offsets,
            column.step_offsets,
            column.present,
            column.whole,
            column.step_present,
        )


class Layout:
    """The slots a schema needs, each stored feature once, and where each feature finds its own.

    Args:
        schema: The features asked for. Features that only serve as axes or row lengths get a slot
            too, but are not given out.
        apart: Features of which files say different things: what a file says, by feature.
    """

    def __init__(
        self, schema: Schema, *, apart: Mapping[str, Callable[[str], Note | None]] | None = None
    ) -> None:
        self.schema = schema
        self.apart = apart or {}
        self.slots: list[Slot] = []
        self._index: dict[tuple[bytes, int], int] = {}
        for name, feature in schema.items():
            self._add(slot_of(name, feature))
        for name, feature in schema.items():
            for dim in feature.dims:
                self._add_helper(name, self._helper(dim, 1))
            for lengths in feature.row_lengths:
                self._add_helper(name, Slot(wire_name(lengths), 3, -1, 0))
        self._slots = {
            key: self.index(feature.stored_as(key), feature.place)
            for key, feature in schema.items()
        }

    @cached_property
    def outputs(self) -> list[Output]:
        """Each feature given out: name, form, slot, shape where its values change in nothing."""
        return [
            (key, feature, self.slot(key), None if key in self.apart else _plain_shape(feature))
            for key, feature in self.schema.items()
        ]

    def index(self, name: str, place: Place = "context") -> int:
        """Return the slot of a stored feature."""
        return self._index[wire_name(name), PLACE_NUMBERS[place]]

    def slot(self, key: str) -> int:
        """Return the slot of a feature of the schema."""
        return self._slots[key]

    def dim_slot(self, dim: str) -> int:
        """Return the slot of a feature used as an axis."""
        return self.slot(dim) if dim in self.schema else self.index(dim)

    def _helper(self, dim: str, count: int) -> Slot:
        if dim in self.schema:
            return slot_of(dim, self.schema[dim])
        return Slot(wire_name(dim), 3, count, 0)

    def _add(self, slot: Slot) -> None:
        place = (slot.name, slot.place)
        known = self._index.get(place)
        if known is None:
            self._index[place] = len(self.slots)
            self.slots.append(slot)
        elif self.slots[known] != slot:
            name = stored_name(slot.name)
            raise SchemaError(
                f"two features of the schema read '{name}' with another kind or number of "
                "values; give both the same kind and shape",
                feature=name,
            )

    def _add_helper(self, user: str, slot: Slot) -> None:
        known = self._index.get((slot.name, slot.place))
        if known is None:
            self._add(slot)
        elif self.slots[known].kind != slot.kind:
            name = stored_name(slot.name)
            raise SchemaError(f"feature '{user}' needs '{name}' as int64", feature=user)


class Origin:
    """Where the rows of a batch came from, for errors: file and record of each row."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._places: list[tuple[str, int]] = []

    def add(self, row: int, path: str, record: int) -> None:
        """Say that from ``row`` on, rows are the records of ``path`` from ``record`` on."""
        if self._rows and self._rows[-1] == row:
            self._places[-1] = (path, record)
            return
        self._rows.append(row)
        self._places.append((path, record))

    def of(self, row: int) -> tuple[str, int]:
        """Return path and record number of a row."""
        i = bisect_right(self._rows, row) - 1
        if i < 0:
            return "", row
        path, record = self._places[i]
        return path, record + row - self._rows[i]

    def where(self, row: int) -> str:
        """Return ``record 17 of a.tfrecord``, or ``record 17`` where there is no file."""
        path, record = self.of(row)
        return f"record {record} of {path}" if path else f"record {record}"

    def place(self, row: int) -> Mapping[str, Any]:
        """Return path and record as keyword arguments of an error."""
        path, record = self.of(row)
        return {"path": path or None, "record": record}


def _plain_shape(feature: Feature) -> tuple[int, ...] | None:
    """Return the shape of a feature whose values are given out as they come, else None."""
    special = feature.codec or feature.row_lengths or feature.dims or feature.place == "list"
    if special or feature.count < 0 or feature.kind == "unknown":
        return None
    stored = {"float": "float32", "int64": "int64"}.get(feature.kind)
    if feature.dtype not in (None, stored) or (stored is None and feature.shape != ()):
        return None
    return tuple(d for d in feature.shape or () if isinstance(d, int))


def slot_of(key: str, feature: Feature) -> Slot:
    """Return the slot of one feature. An unknown kind is asked as bytes: only absence fits it."""
    kind = KIND_NUMBERS[feature.kind] or KIND_NUMBERS["bytes"]
    count = -1 if feature.kind == "unknown" else feature.count
    return Slot(wire_name(feature.stored_as(key)), kind, count, PLACE_NUMBERS[feature.place])


def wire_name(name: str) -> bytes:
    """Return a feature name as stored; bytes that are no UTF-8 survive as surrogates."""
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise SchemaError(f"no feature can be named {name!a} ({error.reason})") from error


def stored_name(name: bytes) -> str:
    """Return a stored feature name as text, the inverse of ``wire_name``."""
    return name.decode("utf-8", "surrogateescape")


def shown_name(name: str) -> str:
    """Return a feature name as it can be printed, bytes that are no UTF-8 escaped."""
    return wire_name(name).decode("utf-8", "backslashreplace")

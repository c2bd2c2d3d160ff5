"""Say what a feature is: its kind, its shape, and how its values become arrays. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from tfrio.errors import MissingFeatureError, SchemaError, UsageError
from tfrio.examples.feature_rules import Codec, Default, Dim, Kind, Place, check_feature
from tfrio.types import names_list, shown

if TYPE_CHECKING:
    from tfrio.types import PathLike

__all__ = [
    "Codec",
    "Default",
    "Dim",
    "Feature",
    "Kind",
    "Place",
    "Schema",
    "SchemaLike",
    "common_shape",
]

SchemaLike: TypeAlias = "Schema | Mapping[str, Feature | Kind]"

# What the wire holds: float_list is IEEE single, int64_list is signed 64-bit.
_STORED: Final[dict[str, np.dtype[Any]]] = {
    "float": np.dtype(np.float32),
    "int64": np.dtype(np.int64),
}


@dataclass(frozen=True, slots=True)
class Feature:
    """Describe one feature of an Example, or one feature list of a SequenceExample.

    Args:
        kind: ``"bytes"``, ``"float"`` or ``"int64"``, as stored; ``"unknown"`` where nothing
            but absent or kindless features was seen.
        shape: Axes of one record's value: ``()`` is a scalar, ``(1,)`` a list of one, ``-1`` one
            free axis, a name takes its length from that int64 feature of the same record. None is
            a list of any length. For a feature list: the shape of one step. With a codec: the
            shape of the decoded array (None: as decoded).
        dtype: NumPy type of the output (``"float16"``, ``"uint8"``, ``"bool"`` ...), or
            ``"str"`` for bytes decoded as UTF-8. None keeps float32, int64 or bytes.
        required: Whether absence is an error. An optional feature is None in a row, and
            False in ``Batch.present``.
        default: Value where the feature is absent; 0, False and ``b""`` count. A scalar fills the
            whole shape. One that does not become what the feature says is refused.
        codec: How one bytes value becomes an array: ``"raw"`` (the array's own bytes),
            ``"zlib"`` (the same, deflated), ``"image"`` (PNG, JPEG ...), ``"tensor"``
            (a serialized TensorProto).
        byte_order: Of ``raw`` and ``zlib`` values.
        many: With a codec: the feature holds a list of such values, not one.
        place: ``"context"`` for features of an Example and the context of a SequenceExample,
            ``"list"`` for feature lists.
        name: Name in the file where it differs from the key in the schema.
        row_lengths: Names of int64 features with the lengths of nested rows, outermost first.
        lengths: Fewest and most values seen in a record; a note, it binds nothing.
    """

    kind: Kind
    shape: tuple[Dim, ...] | None = None
    dtype: str | None = None
    required: bool = True
    default: Default | None = None
    codec: Codec | None = None
    byte_order: Literal["little", "big"] = "little"
    many: bool = False
    place: Place = "context"
    name: str | None = None
    row_lengths: tuple[str, ...] = ()
    lengths: tuple[int, int] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.shape, int):
            object.__setattr__(self, "shape", (self.shape,))
        elif isinstance(self.shape, str) or not isinstance(self.shape, Iterable | None):
            raise SchemaError(f"a shape is a tuple of axes, such as (3, 4), not {self.shape!r}")
        elif self.shape is not None:
            object.__setattr__(self, "shape", tuple(self.shape))
        object.__setattr__(self, "default", _plain(self.default))
        check_feature(self)

    @property
    def count(self) -> int:
        """Return how many values each record (or step) must have, -1 where that is free."""
        if self.codec is not None:
            return -1 if self.many else 1
        if self.shape is None or any(isinstance(d, str) or d < 0 for d in self.shape):
            return -1
        return math.prod(d for d in self.shape if isinstance(d, int))

    @property
    def scalar(self) -> bool:
        """Return whether one record (or step) has exactly one bare value."""
        return self.shape == () and self.codec is None

    @property
    def inner(self) -> tuple[int, ...]:
        """Return the axes behind a leading free axis: (-1, 4) gives (4,), None gives ()."""
        if self.shape is None or self.shape[:1] != (-1,):
            return ()
        return tuple(d for d in self.shape[1:] if isinstance(d, int))

    @property
    def dims(self) -> tuple[str, ...]:
        """Return the features whose values are axes of this one."""
        return tuple(d for d in self.shape or () if isinstance(d, str))

    @property
    def out_dtype(self) -> np.dtype[Any] | None:
        """Return the NumPy type of the output, None for bytes and str."""
        if self.dtype is not None:
            return None if self.dtype == "str" else np.dtype(self.dtype)
        if self.codec == "image":
            return np.dtype(np.uint8)
        return _STORED.get(self.kind)

    def stored_as(self, key: str) -> str:
        """Return the feature's name in the file, given its key in the schema."""
        return key if self.name is None else self.name

    def describe(self) -> str:
        """Return a short text: ``float32 (3, 4)``, ``list<bytes> (length 1 so far)``."""
        base = self.dtype or ("float32" if self.kind == "float" else self.kind)
        if self.codec is not None:
            base = f"{self.codec} {base}" if self.dtype else self.codec
        text = f"list<{base}>" if self.shape is None and self.codec is None else base
        for _ in self.row_lengths:
            text = f"list<{text}>"
        if self.shape is not None:
            text += f" {_shape_text(self.shape)}"
        if self.place == "list":
            text = f"steps of {text}"
        if self.lengths is not None and self.shape is None:
            text += f" ({_lengths_text(self.lengths)})"
        if self.default is not None:
            return f"{text}, default {self.default!r}"
        return text if self.required else f"{text}, optional"

    def merge(self, other: Feature, *, name: str = "") -> Feature:
        """Return the narrowest feature that both fit: kinds join, shapes widen.

        Args:
            other: What was found elsewhere.
            name: For the error.

        Returns:
            The join of both.

        Raises:
            SchemaError: The kinds or places differ.
        """
        if "unknown" not in (self.kind, other.kind) and self.kind != other.kind:
            raise SchemaError(
                f"feature '{name}' is {self.kind} in one place and {other.kind} in another; "
                "no schema fits both. Convert one, or read the files apart",
                feature=name or None,
            )
        if self.place != other.place:
            raise SchemaError(
                f"feature '{name}' is in the context of one file and a feature list of another",
                feature=name or None,
            )
        known, second = (other, self) if self.kind == "unknown" else (self, other)
        both = known.kind == second.kind
        return replace(
            known,
            shape=common_shape(known.shape, second.shape) if both else known.shape,
            dtype=known.dtype or second.dtype,
            required=self.required and other.required,
            default=known.default if known.default is not None else second.default,
            lengths=_join_lengths(self.lengths, other.lengths),
        )


def _checked(given: object) -> Mapping[str, Feature | Kind]:
    """Return the mapping that a user gave as a schema."""
    if isinstance(given, Mapping):
        return given
    raise UsageError(
        "a schema is a mapping of names to features, {'x': tfrio.Feature('float')}, or what "
        f"tfrio.load_schema reads; got {shown(given)}"
    )


class Schema(Mapping[str, Feature]):
    """An ordered, immutable mapping of feature names to features.

    Args:
        features: Names and features; a bare kind (``"float"``) is a list of any length.
    """

    __slots__ = ("_features",)

    def __init__(self, features: Mapping[str, Feature | Kind] | None = None) -> None:
        given = {} if features is None else _checked(features)
        made = {
            name: value if isinstance(value, Feature) else Feature(value)
            for name, value in given.items()
        }
        self._features = MappingProxyType(made)
        _check_references(self)

    @classmethod
    def of(cls, value: SchemaLike) -> Schema:
        """Take a schema, or make one of a plain mapping.

        Args:
            value: What a user gave.

        Returns:
            The schema.

        Raises:
            UsageError: It is neither.
        """
        return value if isinstance(value, Schema) else cls(_checked(value))

    def __getitem__(self, name: str) -> Feature:
        return self._features[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._features)

    def __len__(self) -> int:
        return len(self._features)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and dict(self) == dict(other)

    def __hash__(self) -> int:
        return hash(tuple(self._features.items()))

    def __reduce__(self) -> tuple[type[Schema], tuple[dict[str, Feature]]]:
        return Schema, (dict(self),)

    def __repr__(self) -> str:
        width = max((len(name) for name in self), default=0)
        lines = [f"  {name:<{width}}  {f.describe()}" for name, f in self.items()]
        return "\n".join([f"Schema of {len(self)} features", *lines])

    @property
    def sequence(self) -> bool:
        """Return whether it has feature lists, as only SequenceExamples do."""
        return any(f.place == "list" for f in self.values())

    def select(self, names: Iterable[str]) -> Schema:
        """Return a schema of these features only, in this order.

        Args:
            names: Keys of this schema.

        Returns:
            The smaller schema.

        Raises:
            MissingFeatureError: A name is not in the schema.
        """
        chosen = names_list(names, "features")
        for name in chosen:
            if name not in self:
                raise MissingFeatureError(
                    f"no feature '{name}'; there are: {sorted(self)}", feature=name
                )
        return Schema({name: self[name] for name in chosen})

    def updated(self, features: Mapping[str, Feature | Kind]) -> Schema:
        """Return a schema with these features added or put in place of those of the same name."""
        return Schema({**self, **features})

    def save(self, path: PathLike) -> None:
        """Write the schema as JSON, to be edited and loaded again.

        Args:
            path: The file.
        """
        from tfrio.examples.schema_files import save_schema

        save_schema(self, path)

    @classmethod
    def load(cls, path: PathLike) -> Schema:
        """Read a schema from a file.

        Args:
            path: Our JSON, a TFX schema in text form (schema.pbtxt), or a features.json.

        Returns:
            The schema.

        Raises:
            SchemaError: None of these, or damaged.
        """
        from tfrio.examples.schema_files import load_schema

        return load_schema(path)

    def merge(self, other: Schema) -> Schema:
        """Return the narrowest schema that both fit (a feature of one side only is optional)."""
        merged: dict[str, Feature | Kind] = {}
        for name in [*self, *(n for n in other if n not in self)]:
            if name in self and name in other:
                merged[name] = self[name].merge(other[name], name=name)
            else:
                merged[name] = replace(self.get(name) or other[name], required=False)
        return Schema(merged)


def common_shape(
    first: tuple[Dim, ...] | None, second: tuple[Dim, ...] | None
) -> tuple[Dim, ...] | None:
    """Return the narrowest shape both fit: equal stays, one differing axis becomes -1.

    Args:
        first: A shape, None for a list of any length.
        second: Another.

    Returns:
        The joined shape. (3,) and (4,) give None, a plain list; (3, 4) and (5, 4) give (-1, 4).
    """
    if first == second:
        return first
    if first is None or second is None or len(first) != len(second) or len(first) < 2:
        return None
    joined = tuple(a if a == b else -1 for a, b in zip(first, second, strict=True))
    # Beside an axis of 0 no number of values tells the free one.
    return joined if joined.count(-1) == 1 and 0 not in joined else None


def _plain(default: object) -> object:
    """Return a default as hashable Python values: lists as tuples, NumPy scalars as numbers."""
    if isinstance(default, list | tuple | np.ndarray):
        return tuple(_plain(value) for value in default)
    return default.item() if isinstance(default, np.generic) else default


def _shape_text(shape: tuple[Dim, ...]) -> str:
    parts = ", ".join(str(d) for d in shape)
    return f"({parts},)" if len(shape) == 1 else f"({parts})"


def _lengths_text(lengths: tuple[int, int]) -> str:
    low, high = lengths
    return f"length {low} so far" if low == high else f"{low} to {high} values"


def _join_lengths(
    first: tuple[int, int] | None, second: tuple[int, int] | None
) -> tuple[int, int] | None:
    if first is None or second is None:
        return first or second
    return min(first[0], second[0]), max(first[1], second[1])


def _check_references(schema: Schema) -> None:
    for name, feature in schema.items():
        for other in feature.dims:
            if other in schema and schema[other].kind not in ("int64", "unknown"):
                raise SchemaError(
                    f"feature '{name}' takes an axis from '{other}', which is "
                    f"{schema[other].kind}; an axis needs an int64 feature",
                    feature=name,
                )

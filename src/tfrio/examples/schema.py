"""Say what a feature is: its kind, its shape, and how its values become arrays. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np

from tfrio.errors import MissingFeatureError, SchemaError, UsageError
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

Kind: TypeAlias = Literal["unknown", "bytes", "float", "int64"]
Place: TypeAlias = Literal["context", "list"]
Codec: TypeAlias = Literal["raw", "zlib", "image", "tensor"]
Dim: TypeAlias = int | str
Default: TypeAlias = bool | int | float | str | bytes | tuple[bool | int | float | str | bytes, ...]
SchemaLike: TypeAlias = "Schema | Mapping[str, Feature | Kind]"

# What the wire holds: float_list is IEEE single, int64_list is signed 64-bit.
_STORED: Final[dict[str, np.dtype[Any]]] = {
    "float": np.dtype(np.float32),
    "int64": np.dtype(np.int64),
}
# A length on the wire is below 2 GiB, and a value takes at least one byte.
_MOST_VALUES: Final = 2**31
_ARRAY_CODECS: Final = ("raw", "zlib")


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
        _check_types(self)
        _check_choice("kind", self.kind, get_args(Kind))
        _check_choice("place", self.place, get_args(Place))
        _check_shape(self.shape)
        _check_dtype(self)
        _check_codec(self)
        _check_default(self)

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


def _check_types(feature: Feature) -> None:
    lengths, rows = feature.lengths, feature.row_lengths
    for what, fine, advice in (
        ("name", isinstance(feature.name, str | None), "text"),
        ("required", isinstance(feature.required, bool), "true or false"),
        ("many", isinstance(feature.many, bool), "true or false"),
        ("row_lengths", isinstance(rows, tuple) and all(isinstance(n, str) for n in rows), "names"),
        (
            "lengths",
            lengths is None or (isinstance(lengths, tuple) and len(lengths) == 2),
            "a pair",
        ),
    ):
        if not fine:
            raise SchemaError(f"{what} must be {advice}; got {getattr(feature, what)!r}")


def _check_choice(what: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        hint = _kind_hint(value) if what == "kind" else ""
        raise SchemaError(f"{what} must be one of {', '.join(choices)}; got {value!r}{hint}")


def _kind_hint(value: object) -> str:
    """Say which kind holds values of a type that a user took for a kind."""
    if isinstance(value, str | type) and value in ("str", "string", "text", "object", str, bytes):
        told = "" if value is bytes else ", dtype='str'"
        return f". Text is kind 'bytes': Feature('bytes'{told})"
    try:
        dtype = np.dtype(value)  # type: ignore[call-overload]
    except TypeError:
        return ""
    kind = {"f": "float", "i": "int64", "u": "int64", "b": "int64"}.get(dtype.kind)
    if kind is None or value is None:
        return ""
    stored = {"float": "float32", "int64": "int64"}[kind]
    told = "" if dtype.name == stored else f", dtype='{dtype.name}'"
    return f". {dtype.name} is kind '{kind}': Feature('{kind}'{told})"


def _check_shape(shape: tuple[Dim, ...] | None) -> None:
    free = 0
    for dim in shape or ():
        if isinstance(dim, bool) or not isinstance(dim, int | str) or dim == "":
            raise SchemaError(f"an axis is a whole number or a feature's name, not {dim!r}")
        if isinstance(dim, int) and dim < -1:
            raise SchemaError(f"an axis is -1 (free) or at least 0, not {dim}")
        free += dim == -1
    if math.prod(abs(d) for d in shape or () if isinstance(d, int)) > _MOST_VALUES:
        raise SchemaError(f"shape {shape} has more values than a record can hold")
    if free > 1:
        raise SchemaError(
            f"shape {shape} has {free} free axes, one is the most that can be worked out; "
            "name int64 features of the record as axes instead"
        )


def _check_dtype(feature: Feature) -> None:
    text = feature.dtype
    if text is None:
        return
    if text == "str":
        if feature.kind != "bytes" or feature.codec is not None:
            raise SchemaError('dtype "str" is for bytes features without a codec')
        return
    try:
        made = np.dtype(text)
    except TypeError as error:
        raise SchemaError(f"unknown dtype {text!r}: {error}") from error
    object.__setattr__(feature, "dtype", made.name)
    if made.kind not in "biuf":
        raise SchemaError(f"dtype {text!r} is none of bool, integer, float or str")
    if feature.kind == "bytes" and feature.codec is None:
        raise SchemaError(f'a bytes feature has dtype "str" or a codec; got dtype {text!r}')
    if feature.kind == "float" and made.kind != "f":
        raise SchemaError(
            f"a float feature cannot be given as {text}: that would cut its values; "
            "take float32 and round as you need"
        )


def _check_codec(feature: Feature) -> None:
    if feature.codec is None:
        if feature.many:
            raise SchemaError("many=True is for features with a codec; use shape=(-1,)")
        return
    _check_choice("codec", feature.codec, get_args(Codec))
    _check_choice("byte_order", feature.byte_order, ("little", "big"))
    if feature.kind != "bytes":
        raise SchemaError(f"a codec needs kind bytes, not {feature.kind}")
    if feature.codec in _ARRAY_CODECS and feature.dtype is None:
        raise SchemaError(f'codec "{feature.codec}" needs a dtype: the bytes do not tell it')
    if feature.default is not None and not isinstance(feature.default, bytes):
        raise SchemaError("the default of a feature with a codec is the bytes to decode")


def _check_default(feature: Feature) -> None:
    if feature.default is None:
        return
    if feature.codec is None:
        _check_default_kind(feature)
    from tfrio.examples.defaults import check_default  # what it needs takes features itself

    check_default(feature)


def _check_default_kind(feature: Feature) -> None:
    allowed: dict[str, tuple[type, ...]] = {
        "float": (bool, int, float),
        "int64": (bool, int),
        "bytes": (bytes, str),
        "unknown": (),
    }
    values = feature.default if isinstance(feature.default, tuple) else (feature.default,)
    for value in values:
        if not isinstance(value, allowed[feature.kind]):
            raise SchemaError(f"default {value!r} does not fit a {feature.kind} feature")
    if isinstance(feature.default, tuple) and feature.count not in (-1, len(values)):
        raise SchemaError(f"default has {len(values)} values, the shape holds {feature.count}")


def _check_references(schema: Schema) -> None:
    for name, feature in schema.items():
        for other in feature.dims:
            if other in schema and schema[other].kind not in ("int64", "unknown"):
                raise SchemaError(
                    f"feature '{name}' takes an axis from '{other}', which is "
                    f"{schema[other].kind}; an axis needs an int64 feature",
                    feature=name,
                )

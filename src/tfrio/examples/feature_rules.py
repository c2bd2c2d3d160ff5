"""What a feature may say of itself; each fault with what to say instead. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import numpy as np

from tfrio.errors import SchemaError

if TYPE_CHECKING:
    from tfrio.examples.schema import Feature

__all__ = ["Codec", "Default", "Dim", "Kind", "Place", "check_feature"]

Kind: TypeAlias = Literal["unknown", "bytes", "float", "int64"]
Place: TypeAlias = Literal["context", "list"]
Codec: TypeAlias = Literal["raw", "zlib", "image", "tensor"]
Dim: TypeAlias = int | str
Default: TypeAlias = bool | int | float | str | bytes | tuple[bool | int | float | str | bytes, ...]

# A length on the wire is below 2 GiB, and a value takes at least one byte.
_MOST_VALUES: Final = 2**31
_ARRAY_CODECS: Final = ("raw", "zlib")


def check_feature(feature: Feature) -> None:
    """See that what a feature says of itself can be; its dtype gets NumPy's own name.

    Args:
        feature: Just made.

    Raises:
        SchemaError: It contradicts itself, or no record could be like that.
    """
    _check_types(feature)
    _check_choice("kind", feature.kind, get_args(Kind))
    _check_choice("place", feature.place, get_args(Place))
    _check_shape(feature.shape)
    _check_dtype(feature)
    _check_codec(feature)
    _check_default(feature)


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

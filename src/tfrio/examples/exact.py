"""Python and NumPy values to what the wire can hold: exactly, or an error that says why not. Pure.

    stored as   accepted
    int64       bool, int, NumPy integers and booleans that fit
    float       float, NumPy floats (float64 rounds to float32)
    bytes       bytes, bytearray, memoryview, str (as UTF-8)

Lists and arrays of these, of any number of axes, in C order; arrays and scalars of other libraries
too, where they lack no value. Anything else is refused.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tfrio.errors import EncodeError, warn_user
from tfrio.examples.columns import Array, BytesColumn, NoBytes

if TYPE_CHECKING:
    from tfrio.examples.schema import Kind

__all__ = [
    "Exactness",
    "RaggedValueError",
    "Stored",
    "as_array",
    "is_missing",
    "missing_as_none",
    "refuse_masked",
    "store",
]

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1
# A float64 that rounds to float32 changes by at most 6e-8 of its size, unless it is so small that
# float32 keeps fewer digits of it: that is worth a word.
_TOLERANCE: Final = 1e-6
# Arrays that are stored as they are (in this machine's byte order: others are other types).
_QUICK: Final[dict[np.dtype[Any], Kind]] = {
    np.dtype(np.float32): "float",
    np.dtype(np.int64): "int64",
}


class RaggedValueError(EncodeError):
    """A list of lists of differing length, which an Example cannot hold as one feature."""


class Stored(NamedTuple):
    """A value as it goes on the wire.

    Attributes:
        kind: ``"int64"``, ``"float"`` or ``"bytes"``; ``"unknown"`` for an empty list.
        flat: int64 or float32 array with one axis, or list of bytes, in C order.
        shape: Axes the value had.
    """

    kind: Kind
    flat: Any
    shape: tuple[int, ...]


class Exactness:
    """What happens to numbers that float32 cannot hold.

    Args:
        strict: Refuse them; otherwise warn once a feature and store the nearest.
    """

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self._warned: set[str] = set()

    def narrowed(self, values: Array, name: str) -> Array:
        """Return numbers as float32.

        Args:
            values: Floats or integers of any type.
            name: The feature, for the message.

        Returns:
            float32 array of the same shape.

        Raises:
            EncodeError: A value changes too much, in strict mode.
        """
        if values.dtype == np.float32:
            return values
        with np.errstate(over="ignore", under="ignore"):
            out = values.astype(np.float32)
        if values.dtype.kind == "f" and values.dtype.itemsize < 4:
            return out
        bad = _changed(values, out)
        if bad.any():
            at = int(bad.argmax())
            self._tell(name, values.ravel()[at], out.ravel()[at])
        return out

    def _tell(self, name: str, value: Any, stored: Any) -> None:
        """Refuse or warn."""
        text = (
            f"feature '{name}': {value} becomes {stored} as float32, the only float TFRecord "
            "knows; store the array as bytes (codec='raw', dtype='float64') to keep it"
        )
        if self.strict:
            raise EncodeError(text, feature=name)
        if name not in self._warned:
            self._warned.add(name)
            warn_user(text)


class _Unheeded(Exactness):
    """For values that only pass through float32 on their way to whole numbers."""

    def _tell(self, name: str, value: Any, stored: Any) -> None:
        """Say nothing."""


_UNHEEDED: Final = _Unheeded(strict=False)


def store(value: Any, name: str, exactness: Exactness, *, kind: Kind = "unknown") -> Stored:
    """Return a value as it goes on the wire.

    Args:
        value: A number, text, bytes, or any nesting of these with even lengths.
        name: The feature, for messages.
        exactness: What to do with numbers that do not fit.
        kind: The kind wanted, ``"unknown"`` to take the value's own.

    Returns:
        Kind, flat values and shape.

    Raises:
        EncodeError: The value cannot be stored without changing it.
        RaggedValueError: Inner lists differ in length.
    """
    if type(value) is np.ndarray and (quick := _QUICK.get(value.dtype)) is not None:
        found = Stored(quick, value.ravel(), value.shape)
    else:
        found = _natural(value, name, _UNHEEDED if kind == "int64" else exactness)
    if kind in ("unknown", found.kind) or not len(found.flat):
        return found if kind == "unknown" else found._replace(kind=kind, flat=_as(found, kind))
    if kind == "float" and found.kind == "int64":
        flat = exactness.narrowed(found.flat, name)
        return Stored("float", flat, found.shape)
    if kind == "int64" and found.kind == "float":
        return Stored("int64", _whole_numbers(value, name), found.shape)
    raise EncodeError(
        f"feature '{name}' is {kind} but a value of kind {found.kind} was given "
        f"({_brief(value)}); convert it, or declare {found.kind}",
        feature=name,
    )


def _changed(values: Array, out: Array) -> Array:
    """Return where float32 is another number: for integers at all, for floats by much."""
    if values.dtype.kind == "i":
        wide = out.astype(np.float64)
        with np.errstate(invalid="ignore"):
            back = wide.astype(np.int64)
        differs: Array = (back != values) | (wide >= 2.0**63)
        return differs.ravel()
    with np.errstate(invalid="ignore", over="ignore"):
        far = np.abs(out.astype(values.dtype) - values) > _TOLERANCE * np.abs(values)
    return np.asarray(far & np.isfinite(values)).ravel()


def _as(found: Stored, kind: Kind) -> Any:
    if len(found.flat) or found.kind == kind:
        return found.flat
    return [] if kind == "bytes" else np.zeros(0, np.float32 if kind == "float" else np.int64)


def _natural(value: Any, name: str, exactness: Exactness) -> Stored:
    if isinstance(value, bytes | bytearray | str | np.str_):
        return Stored("bytes", [_bytes_of(value, name)], ())
    if isinstance(value, memoryview):
        return _view(value, name, exactness)
    refuse_masked(value, name)
    if isinstance(value, bool | int | float | np.generic | np.ndarray):
        return _array(_number_array(value, name), name, exactness)
    if isinstance(value, BytesColumn):
        return Stored("bytes", value.tolist(), (len(value),))
    _refuse(value, name)
    if hasattr(value, "as_py"):  # a scalar of pyarrow
        return _item(value.as_py(), name, exactness)
    value = missing_as_none(value)
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return _array(as_array(value, name), name, exactness)
    if isinstance(value, Sequence):
        return _sequence(value, name, exactness)
    raise EncodeError(
        f"feature '{name}': a value of type {type(value).__name__} cannot be stored; give numbers, "
        "bytes, str, or lists or arrays of these",
        feature=name,
    )


def as_array(value: Any, name: str) -> Array:
    """Return an array of another library as NumPy's; bfloat16 of torch as float32, exactly.

    Args:
        value: What has ``__array__`` or ``__array_interface__``.
        name: The feature, for messages.

    Returns:
        The array, without a copy where that is possible.

    Raises:
        EncodeError: It gives no array; the text says why.
    """
    try:
        if str(getattr(value, "dtype", "")) == "torch.bfloat16":  # NumPy has no such type
            value = value.float()
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise EncodeError(
            f"feature '{name}': a {type(value).__name__} that gives no array ({error})",
            feature=name,
        ) from error


def is_missing(value: Any) -> bool:
    """Return whether a value says that there is none: None, ``pandas.NA``, a null of pyarrow."""
    if value is None:
        return True
    name = type(value).__name__
    return name == "NAType" or (name.endswith("Scalar") and not getattr(value, "is_valid", True))


def missing_as_none(column: Any) -> Any:
    """Return a pandas, pyarrow or polars column that lacks values as a list with None for these.

    Their own way to NumPy makes floats of integers, and NaN of what is missing. NaN in a column of
    plain floats is a value, as in NumPy.

    Args:
        column: Any value. Columns of lists or structs are lists in any case: what is missing within
            them, they do not tell.

    Returns:
        A list, or the value itself.
    """
    if hasattr(column, "null_count"):  # pyarrow has a number, polars a method
        nulls = column.null_count() if callable(column.null_count) else column.null_count
        if not isinstance(nulls, int) or not (nulls or _is_nested(column)):
            return column
        return column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    if not hasattr(column, "isna") or not hasattr(column, "tolist"):
        return column
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return column
    missing = np.asarray(column.isna())
    values = column.tolist()
    text = any(isinstance(value, bytes | str) for value in values)
    if not missing.any() or not (text or not isinstance(dtype, np.dtype)):
        return column
    return [None if gone else value for gone, value in zip(missing, values, strict=True)]


def _is_nested(column: Any) -> bool:
    """Return whether a column of pyarrow or polars holds lists or structs."""
    if hasattr(column, "type"):
        return bool(getattr(column.type, "num_fields", 0))
    nested = getattr(column.dtype, "is_nested", None)
    return bool(nested and nested())


def refuse_masked(value: Any, name: str = "") -> None:
    """Refuse an array with masked values, which would be stored as if they were not masked.

    Args:
        value: Any value.
        name: The feature, where the caller does not name it in the message.

    Raises:
        EncodeError: Some values are masked.
    """
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        prefix = f"feature '{name}': " if name else ""
        raise EncodeError(
            f"{prefix}masked values cannot be stored; say what stands in their place "
            "(x.filled(value)), and store the mask as a feature of its own",
            feature=name or None,
        )


def _view(value: memoryview, name: str, exactness: Exactness) -> Stored:
    if value.format in ("B", "b", "c") and value.ndim == 1:
        return Stored("bytes", [value.tobytes()], ())
    return _array(np.asarray(value), name, exactness)


def _number_array(value: Any, name: str) -> Array:
    """Return a number or array as an array; Python integers stay exact."""
    if isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
        raise _too_large(value, name)
    return np.asarray(value)


def _array(array: Array, name: str, exactness: Exactness) -> Stored:
    kind = array.dtype.kind
    if kind in "bi" or (kind == "u" and array.dtype.itemsize < 8):
        return Stored("int64", array.astype(np.int64, copy=False).ravel(), array.shape)
    if kind == "u":
        over = array > np.uint64(INT64_MAX)
        if over.any():
            raise _too_large(array[over][0], name)
        return Stored("int64", array.astype(np.int64).ravel(), array.shape)
    if kind == "f":
        return Stored("float", exactness.narrowed(array, name).ravel(), array.shape)
    if array.dtype.name == "bfloat16":
        return Stored("float", array.astype(np.float32).ravel(), array.shape)
    if kind in "SU":
        values = [_bytes_of(v, name) for v in array.ravel().tolist()]
        return Stored("bytes", values, array.shape)
    if kind in "OT":  # T: text of any length, StringDType of NumPy 2
        if not array.size and (kind == "T" or array.ndim > 1):  # as readers give byte strings
            return Stored("bytes", [], array.shape)
        inner = _sequence(array.ravel().tolist(), name, exactness)
        return inner._replace(shape=(*array.shape, *inner.shape[1:]))
    _refuse(array, name)
    advice = "give each field as a feature of its own" if array.dtype.names else "give bytes"
    raise EncodeError(
        f"feature '{name}': dtype {array.dtype} cannot be stored; {advice}", feature=name
    )


def _sequence(values: Sequence[Any], name: str, exactness: Exactness) -> Stored:
    """Return a list of values, or of lists, as one flat value."""
    if not len(values):
        if isinstance(values, NoBytes):
            return Stored("bytes", [], (0,))
        return Stored("unknown", np.zeros(0, np.int64), (0,))
    numbers = _numbers(values, name)
    if numbers is not None:
        return _array(numbers, name, exactness)
    parts = [_item(v, name, exactness) for v in values]
    kinds = {part.kind for part in parts} - {"unknown"}
    if kinds == {"int64", "float"}:
        parts = [store(v, name, exactness, kind="float") for v in values]
        kinds = {"float"}
    if len(kinds) > 1:
        raise EncodeError(
            f"feature '{name}' mixes {' and '.join(sorted(kinds))}; convert the values to one kind",
            feature=name,
        )
    shapes = {part.shape for part in parts}
    if len(shapes) > 1:
        raise RaggedValueError(
            f"feature '{name}': ragged 2-D value needs a SequenceExample (or flatten + lengths); "
            "use write_sequence or ragged='split'",
            feature=name,
        )
    kind: Kind = kinds.pop() if kinds else "unknown"
    if kind == "bytes":
        flat: Any = [v for part in parts for v in part.flat]
    else:
        flat = np.concatenate([part.flat for part in parts])
    return Stored(kind, flat, (len(parts), *shapes.pop()))


def _item(value: Any, name: str, exactness: Exactness) -> Stored:
    if is_missing(value):
        raise EncodeError(
            f"feature '{name}' has None inside a list; leave it out or give a fill value",
            feature=name,
        )
    return _natural(value, name, exactness)


def _numbers(values: Sequence[Any], name: str) -> Array | None:
    """Return a flat list of plain numbers as an array, None where it is anything else."""
    types = set(map(type, values))
    if types <= {bool, int}:
        for value in (min(values), max(values)):
            if not INT64_MIN <= value <= INT64_MAX:
                raise _too_large(value, name)
        return np.array(values, np.int64)
    if all(issubclass(t, float | np.floating) for t in types):
        return np.array(values)
    if len(types) == 1 and issubclass(types.pop(), np.integer | np.bool_):
        return np.array(values)
    return None


def _bytes_of(value: Any, name: str) -> bytes:
    if not isinstance(value, str):
        return bytes(value)
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise EncodeError(
            f"feature '{name}': text that is not valid Unicode ({error}); give bytes", feature=name
        ) from error


def _whole_numbers(value: Any, name: str) -> Array:
    """Return floats that are whole numbers as int64; integers among them stay exact."""
    if isinstance(value, Sequence) and _numbers(value, name) is None:
        parts = [store(item, name, _UNHEEDED, kind="int64").flat for item in value]
        return np.concatenate(parts)
    numbers = np.asarray(value).astype(np.float64).ravel()
    with np.errstate(invalid="ignore"):
        whole = (np.floor(numbers) == numbers) & (numbers >= INT64_MIN) & (numbers < 2.0**63)
    if not whole.all():
        bad = numbers[int(np.argmin(whole))]
        raise EncodeError(
            f"feature '{name}' is int64 and {bad} is no whole number that fits; round it, or "
            "declare float",
            feature=name,
        )
    return numbers.astype(np.int64)


def _too_large(value: Any, name: str) -> EncodeError:
    return EncodeError(
        f"feature '{name}': {_brief(int(value))} does not fit int64; store as bytes", feature=name
    )


def _refuse(value: Any, name: str) -> None:
    """Raise for values that have no kind, each with its own advice."""
    advice = None
    dtype = getattr(value, "dtype", None)
    letter = getattr(dtype, "kind", "")
    if isinstance(value, dt.timedelta) or letter == "m":
        advice = (
            "a duration has no kind in TFRecord; store whole numbers "
            "(np.timedelta64(t, 'us').astype('int64')) or seconds (t.total_seconds())"
        )
    elif isinstance(value, dt.date | dt.time) or letter == "M":
        advice = (
            "a time has no kind in TFRecord; store whole numbers "
            "(np.datetime64(t, 'us').astype('int64')) or text (t.isoformat())"
        )
    elif isinstance(value, complex) or letter == "c":
        advice = "complex numbers have no kind; store real and imaginary parts as two features"
    elif isinstance(value, decimal.Decimal):
        advice = "store a Decimal as float(x) or str(x)"
    elif isinstance(value, Mapping):
        advice = "a dict is no value; flatten it into features named 'outer/inner'"
    elif isinstance(value, AbstractSet):
        advice = "a set has no order; give sorted(x)"
    elif is_missing(value):
        advice = f"{value} means absent and only stands for a whole feature"
    if advice is not None:
        raise EncodeError(f"feature '{name}': {advice}", feature=name)


def _brief(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else f"{text[:37]}..."

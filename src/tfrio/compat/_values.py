"""Which values can be written as which type: everything unambiguous, nothing changed silently."""

from __future__ import annotations

import operator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tfrio import _core
from tfrio.compat._wanted import NAME_OF

__all__ = ["plain"]

_Numbers: TypeAlias = npt.NDArray[Any]


def plain(name: str, value: Any, kind: int) -> _Numbers | list[bytes]:
    """Bring the values of one feature to the form that native code writes.

    Args:
        name: The feature, for errors.
        value: A number or byte string, a list, tuple or array of them (arrays of any shape, in C
            order), or anything NumPy takes as an array, such as a tensor.
        kind: Kind number to write.

    Returns:
        C-contiguous float32 or int64 array, or a list of ``bytes``.

    Raises:
        TypeError: A value that cannot be written as this type.
        ValueError: An integer outside of int64.
    """
    if hasattr(value, "__array__") and not isinstance(value, np.generic):
        value = _as_array(value)
    try:
        if kind == _core.KIND_BYTES:
            return [_bytes(item) for item in _items(value)]
        if isinstance(value, np.ndarray) and value.dtype != object:
            return _array(value, kind)
        convert = _float if kind == _core.KIND_FLOAT else _int
        numbers = [convert(item) for item in _items(value)]
    except (TypeError, ValueError) as error:
        message = f"feature {name!r}, written as {NAME_OF[kind]!r}: {error}"
        raise type(error)(message) from error
    return _float32(numbers) if kind == _core.KIND_FLOAT else np.array(numbers, np.int64)


def _as_array(value: Any) -> _Numbers:
    """Return an array for an array-like; tensors on a device or with a gradient are fetched."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    return np.asarray(value)


def _items(value: Any) -> list[Any]:
    """Return the items of a list, tuple or array; anything else is one item."""
    if isinstance(value, np.ndarray):
        return list(value.reshape(-1))
    return list(value) if isinstance(value, list | tuple) else [value]


def _array(value: _Numbers, kind: int) -> _Numbers:
    """Return an array of numbers as float32 or int64."""
    if not value.size:  # nothing that could be lost, whatever its type
        return np.empty(0, np.int64 if kind == _core.KIND_INT64 else np.float32)
    if value.dtype.kind not in ("bui" if kind == _core.KIND_INT64 else "buif"):
        raise TypeError(f"an array of {value.dtype} does not hold such numbers; convert it first")
    if kind == _core.KIND_FLOAT:
        return _float32(value)
    if value.dtype.kind == "u" and value.size and int(value.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"Value out of range: {value.max()}")
    return np.ascontiguousarray(value, np.int64)


def _float32(values: Any) -> _Numbers:
    """Return values as float32; what is too large becomes infinite, as it always has."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, np.float32)


def _one(item: Any) -> Any:
    """Return the number in a 0-d array or tensor; refuse what holds several."""
    if hasattr(item, "__array__") and not isinstance(item, np.generic):
        array = _as_array(item)
        if array.ndim:
            raise TypeError(
                f"an array of shape {array.shape} within a list is ambiguous; stack the list to "
                "one array, or write a sequence with one step per item"
            )
        return array[()]
    return item


def _int(item: Any) -> int:
    number = operator.index(int(item) if isinstance(item, np.bool_) else _one(item))
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"Value out of range: {number}")
    return number


def _float(item: Any) -> float:
    number = _one(item)
    numeric = hasattr(number, "__float__") or hasattr(number, "__index__")
    if not numeric or isinstance(number, str | bytes):  # NumPy's strings claim to be floats
        raise TypeError(f"expected a number, {type(item).__name__} found")
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _bytes(item: Any) -> bytes:
    if isinstance(item, bytes | bytearray | memoryview):
        return bytes(item)
    advice = ""
    if isinstance(item, str):
        advice = "; encode it, for example .encode('utf-8')"
    elif isinstance(item, int | np.integer):
        advice = "; write an array of bytes with .tobytes()"
    raise TypeError(f"expected bytes, {type(item).__name__} found{advice}")

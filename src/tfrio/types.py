"""Words of the domain as types, so that x and y, rows and columns cannot be swapped."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, SupportsIndex, TypeAlias

from tfrio.errors import UsageError

__all__ = [
    "XY",
    "Affine6",
    "PathLike",
    "PathsLike",
    "RecordSpan",
    "Shape",
    "mapping_like",
    "names_list",
    "path_text",
    "paths_list",
    "real_number",
    "several",
    "shown",
    "whole_number",
]

PathLike: TypeAlias = str | os.PathLike[str]
PathsLike: TypeAlias = PathLike | Iterable[PathLike]


def path_text(path: object) -> str:
    """Return a path given by a user as text; bytes as ``os.fsdecode`` has them.

    Args:
        path: What was given.

    Returns:
        The path or URL.

    Raises:
        UsageError: It is no path, or empty, which would stand for the current folder.
    """
    if isinstance(path, str | bytes | os.PathLike):
        text = os.fsdecode(path)
        if not text:
            raise UsageError("a path is empty; name a file, or '.' for the current folder")
        return text
    raise UsageError(f"expected a path (text or pathlib.Path), got {path!r}")


def paths_list(paths: object) -> list[object]:
    """Return the one or several paths (or file objects) given by a user as a list.

    Args:
        paths: What was given.

    Returns:
        What each is; they are not checked yet.

    Raises:
        UsageError: It is neither a path nor several, or none at all.
    """
    if isinstance(paths, str | bytes | os.PathLike):
        return [paths]
    if not isinstance(paths, Iterable) or isinstance(paths, bytearray | memoryview):
        raise UsageError(f"expected a path, or a list of paths, got {paths!r}")
    found = list(paths)
    if not found:
        raise UsageError("no path was given: the list of paths is empty")
    return found


def whole_number(value: object, name: str, *, least: int = 1) -> int:
    """Check a count given by a user.

    Args:
        value: What was given.
        name: What it is called in the error.
        least: The smallest count allowed.

    Returns:
        The count.

    Raises:
        UsageError: It is no whole number, or too small.
    """
    number = _whole(value)
    if number is None or not least <= number <= sys.maxsize:
        most = f" and at most {sys.maxsize}" if number and number > least else ""
        raise UsageError(
            f"{name} must be a whole number of at least {least}{most}, got {shown(value)}"
        )
    return number


def real_number(value: object, name: str) -> float:
    """Check a number given by a user.

    Args:
        value: What was given.
        name: What it is called in the error.

    Returns:
        The number as it was given: 0 stays 0, which reads better in messages than 0.0.

    Raises:
        UsageError: It is none.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise UsageError(f"{name} must be a number, got {shown(value)}")
    number: Any = value
    return number  # type: ignore[no-any-return]


def several(value: object, name: str, what: str) -> list[Any]:
    """Check a list given by a user.

    Args:
        value: What was given; it is read once.
        name: What it is called in the error.
        what: What it holds.

    Returns:
        Its members; they are not checked.

    Raises:
        UsageError: It is no list or another iterable of single things.
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise UsageError(f"{name} must be a list of {what}, got {shown(value)}")
    return list(value)


def names_list(value: object, name: str) -> list[str]:
    """Check names given by a user.

    Args:
        value: What was given; a text alone is one name, of a dict the keys count.
        name: What they are called in the error.

    Returns:
        The names.

    Raises:
        UsageError: It is neither a name nor a list of names.
    """
    given = value.keys() if isinstance(value, Mapping) else value
    found = [given] if isinstance(given, str) else several(given, name, "names")
    if not all(isinstance(one, str) for one in found):
        raise UsageError(f"{name} must be a list of names, got {shown(found)}")
    return found


def mapping_like(value: object, name: str, example: str) -> Mapping[Any, Any]:
    """Check a mapping given by a user.

    Args:
        value: What was given.
        name: What it is called in the error.
        example: One as it should be.

    Returns:
        The mapping.

    Raises:
        UsageError: It is none.
    """
    if not isinstance(value, Mapping):
        raise UsageError(f"{name} must be a dict such as {example}, got {shown(value)}")
    return value


def shown(value: object) -> str:
    """Write a value for an error: large ones are cut."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:76]} ..."


@dataclass(frozen=True, slots=True)
class XY:
    """A pair in Earth Engine's order: x (columns, width) first, then y (rows, height)."""

    x: int
    y: int

    @classmethod
    def of(cls, value: XY | int | Iterable[int], *, name: str = "pair", least: int = 1) -> XY:
        """Check a pair given by a user.

        Args:
            value: An ``XY``, two integers (x, y), or one integer for both.
            name: What the pair is called in the error.
            least: The smallest value allowed.

        Returns:
            The checked pair.

        Raises:
            UsageError: Not two integers, or one of them below ``least``.
        """
        if isinstance(value, XY):
            given: tuple[object, ...] = (value.x, value.y)
        else:
            given = tuple(value) if isinstance(value, Iterable) else (value, value)
        parts = [part for part in map(_whole, given) if part is not None and part >= least]
        if not len(parts) == len(given) == 2:
            raise UsageError(
                f"{name} must be two whole numbers (x, y), each at least {least}; got {value!r}"
            )
        return cls(*parts)

    @property
    def shape(self) -> Shape:
        """Return the same extent as an array shape (height, width)."""
        return Shape(self.y, self.x)

    def __str__(self) -> str:
        """Return ``256x128`` (x first)."""
        return f"{self.x}x{self.y}"


def _whole(part: object) -> int | None:
    """Return a whole number of any library as ``int``, None for what is none."""
    if isinstance(part, bool) or not isinstance(part, SupportsIndex):
        return None
    try:
        return operator.index(part)
    except TypeError:  # an array has the method, too
        return None


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a two-dimensional array: rows first, in pixels."""

    height: int
    width: int

    @property
    def size(self) -> int:
        """Return the number of pixels."""
        return self.height * self.width

    @property
    def xy(self) -> XY:
        """Return the same extent in Earth Engine's order."""
        return XY(self.width, self.height)


class Affine6(NamedTuple):
    """Six terms from pixel to map: x = a * column + b * row + c, y = d * column + e * row + f.

    The order is that of Earth Engine's ``doubleMatrix`` and of ``affine.Affine(*terms)``,
    not GDAL's.
    """

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float


@dataclass(frozen=True, slots=True)
class RecordSpan:
    """Where a payload lies in the uncompressed data, in bytes."""

    offset: int
    length: int

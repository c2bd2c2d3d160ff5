"""Words of the domain as types, so that x and y, rows and columns cannot be swapped."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, SupportsIndex, TypeAlias

from tfrio.errors import UsageError

__all__ = [
    "XY",
    "Affine6",
    "PathLike",
    "PathsLike",
    "RecordSpan",
    "Shape",
    "path_text",
    "paths_list",
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
    if number < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return number


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
        parts = [_whole(part) for part in given]
        if len(parts) != 2 or min(parts) < least:
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


def _whole(part: object) -> int:
    """Return a whole number of any library as ``int``; what is none is below any least."""
    whole = isinstance(part, SupportsIndex) and not isinstance(part, bool)
    return operator.index(part) if whole else -sys.maxsize  # type: ignore[arg-type]


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

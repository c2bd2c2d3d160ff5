"""Tables that are plain text: GeoJSON, GeoJSON lines and CSV, read with the standard library."""

from __future__ import annotations

import csv
import io
import json
import math
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from tfrio import storage
from tfrio.errors import SchemaError, UsageError
from tfrio.tables.fields import Field, Profile
from tfrio.tables.points import DEFAULT_CRS, point_of_geojson

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TextIO

    from tfrio.types import PathLike

__all__ = ["CsvRows", "GeoJsonRows", "Row"]

# What one feature has: its properties, and its geometry as GeoJSON.
Row: TypeAlias = tuple["Mapping[str, object]", "dict[str, Any] | None"]


class GeoJsonRows:
    """A FeatureCollection, or one Feature a line (``.geojsonl``, ``.geojsons``, ``.ndjson``).

    A FeatureCollection is read whole into memory, because JSON has no other way; lines stream.

    Args:
        path: The file.
        text: Columns the caller wants as bytes whatever they hold.
    """

    def __init__(self, path: PathLike, *, text: frozenset[str] = frozenset()) -> None:
        self.path = str(path)
        self._text = text
        self._lines = self.path.lower().endswith((".geojsonl", ".geojsons", ".ndjson", ".jsonl"))
        self._whole = None if self._lines else _collection(self.path)
        self.crs: str | None = DEFAULT_CRS if self._whole is None else _named_crs(self._whole)
        self.geometry = False
        self.fields = self._look()

    def _look(self) -> list[Field]:
        profiles: dict[str, Profile] = {}
        for number, (properties, geometry) in enumerate(self):
            self.geometry |= geometry is not None
            for name, value in properties.items():
                profile = profiles.get(name)
                if profile is None:
                    profile = profiles[name] = Profile(name, self.path, text=name in self._text)
                profile.add(value, number)
        return [profile.field() for profile in profiles.values()]

    def __iter__(self) -> Iterator[Row]:
        """Yield properties and geometry, feature by feature."""
        for number, feature in enumerate(self._features()):
            if not isinstance(feature, dict) or feature.get("type") != "Feature":
                raise SchemaError(
                    f"{self.path}: element {number} is not a GeoJSON Feature. A table is a "
                    "FeatureCollection, or one Feature a line",
                    path=self.path,
                    record=number,
                )
            yield feature.get("properties") or {}, feature.get("geometry")

    def _features(self) -> Iterator[Any]:
        if self._whole is not None:
            yield from self._whole["features"]
            return
        with _text_file(self.path, "utf-8") as lines:
            for number, line in enumerate(lines):
                if line.strip(" \t\r\n\x1e"):
                    yield _parsed(line.strip("\x1e"), f"{self.path}, line {number + 1}")

    def point(self, geometry: dict[str, Any] | None) -> tuple[float, float] | str | None:
        """Return (x, y) of a point geometry, another geometry's type, or None for null."""
        return point_of_geojson(geometry)


def _parsed(text: str | bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise SchemaError(f"{where}: not JSON ({error}). Is the file GeoJSON and whole?") from error


def _collection(path: str) -> dict[str, Any]:
    with _binary_file(path) as file:
        data = _parsed(file.read(), path)
    if isinstance(data, dict) and data.get("type") == "Feature":
        data = {"type": "FeatureCollection", "features": [data]}
    if not isinstance(data, dict) or not isinstance(data.get("features"), list):
        raise SchemaError(
            f"{path}: not a GeoJSON FeatureCollection. Export the table as one, or as CSV",
            path=path,
        )
    return data


def _named_crs(data: dict[str, Any]) -> str:
    """Return the CRS: RFC 7946 knows longitude and latitude only, GeoJSON 2008 could name one."""
    crs = data.get("crs")
    if not isinstance(crs, dict):
        return DEFAULT_CRS
    name = str(crs.get("properties", {}).get("name", DEFAULT_CRS))
    return DEFAULT_CRS if name.endswith("CRS84") else name


@contextmanager
def _binary_file(path: str) -> Iterator[io.BufferedReader]:
    with closing(storage.open_read(path)) as reader:
        yield io.BufferedReader(_Raw(reader), 1 << 18)


@contextmanager
def _text_file(path: str, encoding: str) -> Iterator[TextIO]:
    with _binary_file(path) as file:
        yield io.TextIOWrapper(file, encoding, newline="")


class _Raw(io.RawIOBase):
    """A ``BinaryReader`` as the raw file that Python's text layer builds on."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill part of the buffer, 0 at the end."""
        return int(self._reader.readinto(buffer))


class CsvRows:
    """A CSV file with a header line.

    A column is numbers when each cell that is not empty is one, text otherwise; an empty cell
    is null.

    Args:
        path: The file.
        encoding: Text encoding; a byte order mark is skipped.
        text: Columns that stay text although they look like numbers (codes with leading zeros).
    """

    geometry = False
    crs: str | None = None

    def __init__(
        self, path: PathLike, *, encoding: str = "utf-8-sig", text: frozenset[str] = frozenset()
    ) -> None:
        self.path = str(path)
        self._encoding = encoding
        self._text = text
        self.fields = self._look()

    def _look(self) -> list[Field]:
        forms: dict[str, Any] = {}
        for number, cells in enumerate(self._cells()):
            if number == 0:
                forms = dict.fromkeys(cells, "null")
            for name, cell in cells.items():
                if cell != "" and forms[name] != "text":
                    forms[name] = _widest(forms[name], cell)
        header: dict[str, Any] = forms or dict.fromkeys(self._header(), "null")
        return [
            Field(name, "text" if name in self._text else form) for name, form in header.items()
        ]

    def _header(self) -> list[str]:
        with _text_file(self.path, self._encoding) as file:
            return next(csv.reader(file), [])

    def _cells(self) -> Iterator[dict[str, str]]:
        with _text_file(self.path, self._encoding) as file:
            try:
                yield from self._read(csv.reader(file))
            except UnicodeDecodeError as error:
                raise SchemaError(
                    f"{self.path}: not {self._encoding} text ({error}). Pass encoding=, for "
                    "example encoding='latin-1'",
                    path=self.path,
                ) from error

    def _read(self, reader: Any) -> Iterator[dict[str, str]]:
        header: list[str] = next(reader, [])
        if len(set(header)) < len(header):
            twice = next(name for name in header if header.count(name) > 1)
            raise SchemaError(
                f"{self.path}: the header names column '{twice}' twice. Rename one of them",
                path=self.path,
            )
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise SchemaError(
                    f"{self.path}, line {reader.line_num}: {len(cells)} cells under a header of "
                    f"{len(header)}. Quote cells that hold a comma",
                    path=self.path,
                )
            yield dict(zip(header, cells, strict=True))

    def __iter__(self) -> Iterator[Row]:
        """Yield cells turned into numbers or text; an empty cell is None."""
        convert = {field.name: _CONVERT.get(field.form, str) for field in self.fields}
        for cells in self._cells():
            row = {n: None if cell == "" else convert[n](cell) for n, cell in cells.items()}
            yield row, None

    def point(self, geometry: dict[str, Any] | None) -> None:
        """Refuse: a CSV table has no geometry."""
        raise UsageError(f"{self.path}: a CSV table has columns but no geometry")


_CONVERT: dict[str, Any] = {"int": int, "float": float}


def _widest(form: str, cell: str) -> str:
    """Return the narrowest of int, float, text that holds the cells so far and this one."""
    number = _number(cell)
    if number is None:
        return "text"
    return "float" if form == "float" or isinstance(number, float) else "int"


def _number(cell: str) -> int | float | None:
    # Python also takes 1_000 as a number, and 007 as 7: the first is text in any table, the
    # second a code whose zeros matter.
    digits = cell.strip().lstrip("+-")
    if "_" in cell or (digits[:1] == "0" and digits[1:2].isdigit()):
        return None
    try:
        return int(cell)
    except ValueError:
        pass
    try:
        number = float(cell)
    except ValueError:
        return None
    # "infinity" is a word, and 1e999 a number that no float holds.
    return number if math.isfinite(number) or digits.lower() in ("nan", "inf") else None

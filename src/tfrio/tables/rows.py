"""Tables that are plain text: GeoJSON, GeoJSON lines and CSV, read with the standard library."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from tfrio import storage
from tfrio.errors import SchemaError
from tfrio.tables.cells import cells_of_values
from tfrio.tables.fields import Field, Profile
from tfrio.tables.points import DEFAULT_CRS, point_of_geojson

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TextIO

    from tfrio.tables.cells import Cells
    from tfrio.tables.fields import Form
    from tfrio.types import PathLike

__all__ = [
    "CONVERT",
    "FLOAT",
    "INT",
    "CsvRows",
    "GeoJsonRows",
    "Row",
    "binary_file",
    "text_file",
    "widest",
]

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
        with text_file(self.path, "utf-8") as lines:
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
    with binary_file(path) as file:
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
def binary_file(path: str) -> Iterator[io.BufferedReader]:
    """Open a file or URL for reading."""
    with closing(storage.open_read(path)) as reader:
        yield io.BufferedReader(_Raw(reader), 1 << 18)


@contextmanager
def text_file(path: str, encoding: str) -> Iterator[TextIO]:
    """Open a file or URL as text, line ends untouched."""
    with binary_file(path) as file:
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
        forms: dict[str, Form] = {}
        for header, columns in self._parts(_LOOK_ROWS):
            forms = forms or {name: "text" if name in self._text else "null" for name in header}
            for name, cells in zip(header, columns, strict=True):
                forms[name] = widest(forms[name], cells)
        return [Field(name, form) for name, form in forms.items()]

    def cells(self, fields: Sequence[Field], rows: int) -> Iterator[tuple[int, dict[str, Cells]]]:
        """Yield the number of rows and the columns asked for, so many rows at a time."""
        for part in self.columns(rows):
            count = len(next(iter(part.values())))
            yield count, {field.name: cells_of_values(field, part[field.name]) for field in fields}

    def columns(self, rows: int) -> Iterator[dict[str, list[Any]]]:
        """Yield the cells of so many rows, numbers as such; an empty cell is None.

        Args:
            rows: Rows at a time.

        Yields:
            A list of values by column.
        """
        convert = {field.name: CONVERT.get(field.form, str) for field in self.fields}
        for header, columns in self._parts(rows):
            if not columns or not columns[0]:
                continue
            part = {}
            for name, cells in zip(header, columns, strict=True):
                turn = convert[name]
                part[name] = [turn(cell) if cell else None for cell in cells]
            yield part

    def _parts(self, rows: int) -> Iterator[tuple[list[str], list[tuple[str, ...]]]]:
        """Yield the header and columns of text, once without rows for a table that has none."""
        with text_file(self.path, self._encoding) as file:
            try:
                reader = csv.reader(file)
                header = self._header(reader)
                yield header, [() for _ in header]
                lines = self._whole_lines(reader, len(header))
                while part := list(itertools.islice(lines, rows)):
                    yield header, list(zip(*part, strict=True))
            except UnicodeDecodeError as error:
                raise SchemaError(
                    f"{self.path}: not {self._encoding} text ({error}). Pass encoding=, for "
                    "example encoding='latin-1'",
                    path=self.path,
                ) from error

    def _header(self, reader: Iterator[list[str]]) -> list[str]:
        header = next(reader, [])
        if len(set(header)) < len(header):
            twice = next(name for name in header if header.count(name) > 1)
            raise SchemaError(
                f"{self.path}: the header names column '{twice}' twice. Rename one of them",
                path=self.path,
            )
        return header

    def _whole_lines(self, reader: Any, width: int) -> Iterator[list[str]]:
        for cells in reader:
            if len(cells) == width:
                yield cells
            elif cells:
                raise SchemaError(
                    f"{self.path}, line {reader.line_num}: {len(cells)} cells under a header of "
                    f"{width}. Quote cells that hold a comma",
                    path=self.path,
                )


CONVERT: dict[str, Any] = {"int": int, "float": float}
_LOOK_ROWS = 4096
# Python also takes 1_000 as a number, and 007 as 7: the first is text in any table, the second a
# code whose zeros matter.
INT = re.compile(r"[ \t]*[+-]?(?:0|[1-9][0-9]*)[ \t]*")
FLOAT = re.compile(
    r"[ \t]*[+-]?(?:(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf)[ \t]*",
    re.IGNORECASE,
)


def widest(form: Form, cells: tuple[str, ...]) -> Form:
    """Return the narrowest of null, int, float and text that holds the cells so far and these."""
    known = [cell for cell in cells if cell]
    if form == "text" or not known:
        return form
    numbers = all(map(FLOAT.fullmatch, known))
    # 1e999 is a number that no float holds.
    if not numbers or any(math.isinf(float(c)) and "n" not in c.lower() for c in known):
        return "text"
    return "int" if form != "float" and all(map(INT.fullmatch, known)) else "float"

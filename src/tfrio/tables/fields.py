"""What the columns of a table hold, found by looking at every value before any is written.

A type guessed from the first rows breaks at the first row that differs, so sources without types
of their own (GeoJSON, CSV) are looked through once, and forms only widen: null, then bool, int,
float; text; a mixture of numbers and text is an error that names both rows.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from tfrio.errors import SchemaError, UsageError
from tfrio.types import names_list, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "Field",
    "Form",
    "Kind",
    "Numbers",
    "Profile",
    "apply_types",
    "form_of",
    "select",
    "walk",
]

Form: TypeAlias = Literal["null", "bool", "int", "float", "text", "bytes", "json", "time"]
Kind: TypeAlias = Literal["bytes", "float", "int64"]
Numbers: TypeAlias = Literal["float", "native"]

_NUMBERS: dict[Form, int] = {"bool": 0, "int": 1, "float": 2}
_KINDS = ("bytes", "float", "int64")


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a table.

    Args:
        name: Name of the property and of the feature.
        form: What the values are.
        shape: Shape of each value: ``()`` for one value, ``None`` where it differs by row.
        dtype: The source's own name of the type, for the manifest; empty when it has none.
        kind: Kind to store, where the caller asked for one.
    """

    name: str
    form: Form
    shape: tuple[int, ...] | None = ()
    dtype: str = ""
    kind: Kind | None = None

    def stored(self, numbers: Numbers) -> Kind:
        """Return the kind the feature is stored as.

        Args:
            numbers: ``"float"`` stores every number as float32, as Earth Engine's tables do;
                ``"native"`` stores whole numbers as int64.
        """
        if self.kind is not None:
            return self.kind
        if self.form not in _NUMBERS:
            return "bytes"
        return "float" if numbers == "float" or self.form == "float" else "int64"


def form_of(value: object) -> Form:
    """Return the form of one plain Python value (lists: of what they hold)."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return "text"
    return "bytes" if isinstance(value, bytes) else "json"


def walk(value: object) -> tuple[tuple[int, ...], list[object]] | None:
    """Return shape and flat values of a nested list, or None where it is not rectangular."""
    if not isinstance(value, list | tuple):
        return (), [value]
    parts = [walk(item) for item in value]
    flat: list[object] = []
    for part in parts:
        if part is None or part[0] != cast("tuple[tuple[int, ...], object]", parts[0])[0]:
            return None
        flat.extend(part[1])
    inner = parts[0][0] if parts and parts[0] is not None else ()
    return (len(parts), *inner), flat


class Profile:
    """Gather what one column holds, value by value.

    Args:
        name: Name of the column.
        path: The file, for errors.
        text: Take a mixture as text, because the caller wants bytes.
    """

    __slots__ = ("_first", "_form", "_shape", "_text", "name", "path")

    def __init__(self, name: str, path: str, *, text: bool = False) -> None:
        self.name = name
        self.path = path
        self._text = text
        self._form: Form = "null"
        self._first = 0
        self._shape: tuple[int, ...] | Literal["unseen"] | None = "unseen"

    def add(self, value: object, row: int) -> None:
        """Take one value into account.

        Args:
            value: A plain Python value; None is null.
            row: Its row, for the error.

        Raises:
            SchemaError: The value does not go with those before it.
        """
        if value is None:
            return
        shape, form = _describe(value)
        self._widen(form, row)
        if self._shape == "unseen":
            self._shape = shape
        elif self._shape != shape:
            self._shape = None

    def _widen(self, form: Form, row: int) -> None:
        if self._form == "null":
            self._form, self._first = form, row
        elif form in _NUMBERS and self._form in _NUMBERS:
            self._form = max(form, self._form, key=lambda f: _NUMBERS[f])
        elif form not in ("null", self._form) and self._text:
            self._form = "json"
        elif form not in ("null", self._form):
            raise SchemaError(
                f"{self.path}: property '{self.name}' is {self._form} in row {self._first} and "
                f"{form} in row {row}. Clean the column, leave it out with selectors=, or store "
                f"its text with types={{'{self.name}': 'bytes'}}",
                path=self.path,
                record=row,
                feature=self.name,
            )

    def field(self) -> Field:
        """Return what was found."""
        shape = () if self._shape == "unseen" else self._shape
        return Field(self.name, self._form, shape)


def _describe(value: object) -> tuple[tuple[int, ...] | None, Form]:
    """Return shape (None: not rectangular) and form of a value."""
    if not isinstance(value, list | tuple):
        return (), form_of(value)
    walked = walk(value)
    if walked is None:
        return (), "json"
    shape, flat = walked
    forms = {form_of(item) for item in flat} or {"null"}
    if forms <= set(_NUMBERS):
        return shape, max(forms, key=lambda f: _NUMBERS[f])
    if forms == {"null"}:
        return (0,), "null"
    return (shape, "text") if forms == {"text"} else ((), "json")


def xy_names(xy: object) -> tuple[str, str]:
    """Return the names of the columns with x and y that a user gave."""
    found = [] if isinstance(xy, str) else names_list(xy, "xy")
    if len(found) != 2:
        raise UsageError(f"xy must be a pair of column names (x, y), got {shown(xy)}")
    return found[0], found[1]


def select(fields: Sequence[Field], selectors: str | Iterable[str] | None) -> list[Field]:
    """Choose columns in the order asked for.

    Args:
        fields: What the source has.
        selectors: Names, as a list or one comma-separated string; None takes all.

    Returns:
        The fields chosen.

    Raises:
        UsageError: A name the source does not have, or one given twice.
    """
    if selectors is None:
        return list(fields)
    given = selectors.split(",") if isinstance(selectors, str) else selectors
    names = names_list(given, "selectors")
    names = [name.strip() for name in names]
    known = {field.name: field for field in fields}
    for name in names:
        if name not in known:
            raise UsageError(f"no column '{name}'{_hint(name, known)}")
        if names.count(name) > 1:
            raise UsageError(f"selectors name the column '{name}' twice")
    return [known[name] for name in names]


def apply_types(fields: Sequence[Field], types: Mapping[str, str] | None) -> list[Field]:
    """Set the kinds a caller asked for.

    Args:
        fields: The columns chosen.
        types: Column name to ``"float"``, ``"int64"`` or ``"bytes"``.

    Returns:
        The fields with their kinds.

    Raises:
        UsageError: Unknown column or kind, or numbers asked of something else.
    """
    asked: dict[str, Kind] = {}
    known = {field.name: field for field in fields}
    for name, kind in (types or {}).items():
        if name not in known:
            raise UsageError(f"types: no column '{name}'{_hint(name, known)}")
        if kind not in _KINDS:
            raise UsageError(f"types: '{name}' is {kind!r}; choose one of {', '.join(_KINDS)}")
        if kind != "bytes" and known[name].form not in (*_NUMBERS, "null"):
            raise UsageError(f"types: column '{name}' holds {known[name].form}, not numbers")
        asked[name] = cast("Kind", kind)
    return [replace(f, kind=asked.get(f.name, f.kind)) for f in fields]


def _hint(name: str, known: Iterable[str]) -> str:
    """Say which name was probably meant; a difference in case is the usual slip."""
    folded = {other.casefold(): other for other in known}
    close = difflib.get_close_matches(name.casefold(), folded, n=1)
    if close:
        return f"; did you mean '{folded[close[0]]}'?"
    return f"; there are {', '.join(folded.values()) or 'none'}"

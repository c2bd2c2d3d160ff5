"""Which Arrow type each column of a table gets, and the conversion to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tfrio.errors import SchemaError, UsageError, require, warn_user
from tfrio.tables.arrow import arrow_schema, leaf, record_batches, with_leaf

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrio.examples.schema import Schema
    from tfrio.tables.manifest import ColumnRow, TableManifest

__all__ = ["Conversion", "plan_conversions"]

_EPOCH = {"s": "timestamp[s]", "ms": "timestamp[ms]"}
_FLOAT_WHOLE = 1 << 24  # up to here float32 holds every whole number
# Whole numbers of these types survive float32, so a column stored as float goes back into them.
_SMALL = ("int8", "int16", "uint8", "uint16")
_CLOCK = ("%H", "%I", "%M", "%S", "%T", "%s")


@dataclass(frozen=True, slots=True)
class Conversion:
    """What becomes of the columns of a table.

    Args:
        schema: ``pyarrow.Schema`` after conversion.
        formats: ``strptime`` format of the columns that are parsed.
        path: The source, for errors.
        told: Columns of which something was told already.
    """

    schema: Any
    formats: Mapping[str, str]
    path: str
    told: set[str] = field(default_factory=set)

    @property
    def names(self) -> list[str]:
        """Return the columns, in order."""
        return list(self.schema.names)

    def convert(self, batch: Any, first: int) -> Any:
        """Convert a record batch.

        Args:
            batch: ``pyarrow.RecordBatch`` as read.
            first: Number of its first row, for errors.

        Returns:
            The converted ``pyarrow.RecordBatch``.

        Raises:
            SchemaError: A value does not fit its type.
        """
        pa = require("pyarrow", extra="table")
        require("pyarrow.compute", extra="table")  # pyarrow alone has no pa.compute
        arrays = []
        for column, array in zip(self.schema, batch.columns, strict=True):
            try:
                arrays.append(self._column(pa, column, array))
            except pa.ArrowException as error:
                raise self._located(pa, column, array, first, error) from error
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _column(self, pa: Any, field: Any, array: Any) -> Any:
        pattern = self.formats.get(field.name)
        if pattern is not None:
            text = array.cast(pa.string())
            return pa.compute.strptime(text, format=pattern, unit="us").cast(field.type)
        if array.type == field.type:
            return array
        if _is_bytes(pa, array.type) and not pa.types.is_string(field.type):
            array = array.cast(pa.string())
        if pa.types.is_string(array.type) and pa.types.is_time(field.type):
            # Arrow reads times of day as part of a date only.
            dated = pa.compute.binary_join_element_wise("1970-01-01T", array, "")
            return dated.cast(pa.timestamp(field.type.unit)).cast(field.type)
        if pa.types.is_floating(array.type) and pa.types.is_temporal(field.type):
            self._tell_rounded(pa, field, array)
            array = array.cast(pa.int32() if field.type.bit_width == 32 else pa.int64())
        return array.cast(field.type)

    def _tell_rounded(self, pa: Any, field: Any, array: Any) -> None:
        """Warn once a column where float32, as stored, keeps no single units of time."""
        bounds = pa.compute.min_max(array).as_py()
        largest = max(abs(bounds["min"] or 0.0), abs(bounds["max"] or 0.0))
        if largest <= _FLOAT_WHOLE or field.name in self.told:
            return
        self.told.add(field.name)
        step = math.ulp(largest) * 2**29  # float64 has 29 bits more than float32
        warn_user(
            f"{self.path}: column '{field.name}' is stored as float32, which keeps only every "
            f"{step:,.0f}th unit of {field.type} at this size, so its times are rounded; store it "
            "as int64 (dtype='native') or as text"
        )

    def _located(self, pa: Any, field: Any, array: Any, first: int, error: Exception) -> Exception:
        """Return the error with the first row that raises it."""
        row = next((i for i in range(len(array)) if self._fails(pa, field, array.slice(i, 1))), 0)
        value = array[row].as_py()
        return SchemaError(
            f"{self.path}, record {first + row}: {value!r} of column '{field.name}' is no "
            f"{field.type} ({error}). Choose another type with types=, or the right format with "
            "dates=",
            path=self.path,
            record=first + row,
            feature=field.name,
        )

    def _fails(self, pa: Any, field: Any, one: Any) -> bool:
        try:
            self._column(pa, field, one)
        except pa.ArrowException:
            return True
        return False


def plan_conversions(
    files: Sequence[str],
    schema: Schema,
    rows: int,
    manifest: TableManifest | None,
    types: Mapping[str, str] | None,
    dates: Mapping[str, str] | None,
) -> Conversion:
    """Decide the type of each column.

    Args:
        files: The TFRecord files, looked through to tell text from other bytes.
        schema: The columns to write.
        rows: Rows at a time.
        manifest: What export noted, None without.
        types: Arrow type by column, from the caller.
        dates: Format by column, from the caller.

    Returns:
        The conversion.

    Raises:
        UsageError: An unknown column or type.
    """
    pa = require("pyarrow", extra="table")
    asked = {name: _alias(pa, name, text) for name, text in (types or {}).items()}
    asked |= {name: _date_type(pa, text) for name, text in (dates or {}).items()}
    for name in asked:
        if name not in schema:
            raise UsageError(f"types, dates: no column '{name}'; there are {', '.join(schema)}")
    noted = {row.name: row for row in manifest.columns} if manifest else {}
    base = arrow_schema(schema)
    open_text = [f.name for f in base if _is_bytes(pa, leaf(f.type)) and f.name not in asked]
    text = set(open_text) - _not_text(pa, files, schema, open_text, rows)
    fields = []
    for column in base:
        kind = asked.get(column.name) or _restored(pa, column.type, noted.get(column.name))
        if kind is None:
            kind = with_leaf(column.type, pa.string()) if column.name in text else column.type
        fields.append(pa.field(column.name, kind))
    formats = {n: f for n, f in (dates or {}).items() if f != "iso" and f not in _EPOCH}
    return Conversion(pa.schema(fields), formats, files[0] if len(files) == 1 else "records")


def _alias(pa: Any, name: str, text: str) -> Any:
    try:
        return pa.type_for_alias(str(text))
    except ValueError as error:
        raise UsageError(
            f"types: '{text}' of column '{name}' is no Arrow type; write int32, float64, string, "
            "binary, bool, date32, timestamp[ms] ..."
        ) from error


def _date_type(pa: Any, text: str) -> Any:
    if text in _EPOCH:
        return pa.type_for_alias(_EPOCH[text])
    if not isinstance(text, str):
        raise UsageError(f"dates: {text!r} is no format; write '%d.%m.%Y', 'iso', 's' or 'ms'")
    clock = text == "iso" or any(part in text for part in _CLOCK)
    return pa.timestamp("us") if clock else pa.date32()


def _restored(pa: Any, kind: Any, noted: ColumnRow | None) -> Any:
    """Return the type a column had before export, None where nothing is to be put back."""
    if noted is None:
        return None
    if noted.form == "bool":
        return with_leaf(kind, pa.bool_())
    if noted.form == "int" and noted.kind != "bytes":
        exact = noted.kind == "int64" and noted.dtype.startswith(("int", "uint"))
        name = noted.dtype if exact or noted.dtype in _SMALL else "int64"
        return with_leaf(kind, pa.type_for_alias(name))
    if noted.form == "time" and _is_bytes(pa, kind):
        return _time_type(pa, noted.dtype)
    return None


def _time_type(pa: Any, text: str) -> Any:
    """Return the type that Arrow calls ``date32[day]``, ``timestamp[us, tz=UTC]`` ..."""
    name, _, zone = text.removesuffix("]").partition(", tz=")
    if zone:
        return pa.timestamp(name.removeprefix("timestamp["), zone)
    return pa.type_for_alias(text.partition("[day]")[0] if text else "string")


def _not_text(
    pa: Any, files: Sequence[str], schema: Schema, names: Sequence[str], rows: int
) -> set[str]:
    """Return the columns with a value that is not UTF-8, after a look at every value."""
    left = list(names)
    found: set[str] = set()
    for batch in record_batches(files, schema.select(names), rows) if names else ():
        for name in left:
            array = batch.column(name)
            try:
                array.cast(with_leaf(array.type, pa.string()))
            except pa.ArrowInvalid:
                found.add(name)
        left = [name for name in left if name not in found]
    return found


def _is_bytes(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))

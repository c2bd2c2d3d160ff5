"""The axes of arrays in tables: as nested lists where one form fits all rows, else as notes.

Notes are what a sidecar would say, as JSON in the metadata of the table's schema. They are only
believed of columns that still hold what they held when the notes were made.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import require, warn_user
from tfrio.examples.arrow_c import LIST, PLACE
from tfrio.examples.columns import Ragged, as_objects
from tfrio.examples.schema import Feature, Schema
from tfrio.examples.sidecar import (
    Noted,
    load_sidecar,
    noted_from_json,
    noted_to_json,
    save_sidecar,
)
from tfrio.examples.told import shape_only
from tfrio.storage import is_stream
from tfrio.tables.arrow import type_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfrio.examples.columns import Batch
    from tfrio.examples.told import Note

__all__ = ["Believed", "is_steps", "nested", "not_nested", "with_arrays", "with_notes"]

_KEY = b"tfrio:axes"
# Readers of Parquet refuse strings of 100 MB, and the schema stands in them once more as base64.
_LONGEST = 64 << 20


def nested(columns: Schema, noted: Schema) -> Schema:
    """Return columns, nested where all their records fit one shape of several axes.

    Args:
        columns: The columns as flat lists.
        noted: What all files note of the features.
    """
    features = {
        name: replace(column, shape=_shape(noted[name]))
        for name, column in columns.items()
        if name in noted and _nestable(noted[name], column)
    }
    return Schema({**columns, **features})


def _nestable(form: Feature, column: Feature) -> bool:
    """Return whether lists in lists tell a shape; an axis of 0 hides those behind it."""
    shape = form.shape or ()
    tells = len(shape) > 1 and 0 not in shape and -1 not in shape[1:]
    return tells and shape_only(form) and (form.kind, form.place) == (column.kind, column.place)


def _shape(form: Feature) -> tuple[Any, ...]:
    """Return a shape without nulls in lists of fixed size, which pyarrow 15 cannot write."""
    shape = form.shape or ()
    return shape if form.required or form.place == "list" else (-1, *shape[1:])


def not_nested(found: Noted, columns: Schema) -> Noted:
    """Return what is noted of columns that their types do not tell.

    Args:
        found: What the files note.
        columns: The columns, some nested.
    """

    def left(name: str, note: Note) -> bool:
        """Return whether no type tells what is noted."""
        return all(c in columns and not _told(columns[c]) for c in _stored(name, note))

    schema = Schema({name: f for name, f in found.schema.items() if left(name, f)})
    rows = {name: axes for name, axes in found.rows.items() if left(name, axes)}
    told = {name for name, column in columns.items() if len(column.shape or ()) > 1}
    lost = tuple(name for name in found.lost if name in columns and name not in told)
    return Noted(schema, rows, lost)


def _told(column: Feature) -> bool:
    """Return whether the type of a column tells its axes; the first one of steps may vary."""
    shape = column.shape or ()
    return len(shape) > 1 and (column.place == "context" or -1 in shape)


def _stored(name: str, note: Note) -> list[str]:
    """Return the columns that a note is about."""
    if isinstance(note, Feature):
        return [note.stored_as(name), *note.row_lengths, *note.dims]
    return [name]


def with_notes(schema: Any, found: Noted, rows: int, batches: Iterable[Any]) -> Any:
    """Return a ``pyarrow.Schema`` with notes in its metadata.

    Args:
        schema: The schema of the table.
        found: What to note.
        rows: Rows of the table.
        batches: Its rows, with the columns whose axes are noted row by row.
    """
    if not found:
        return schema
    sums: dict[str, _Sum] = {name: _Sum() for name in found.rows}
    for batch in batches if sums else ():
        for name, told in sums.items():
            told.add(batch.column(name))
    notes: dict[str, Note] = {**found.schema, **found.rows}
    types = {
        column: type_text(schema.field(column).type)
        for name, note in notes.items()
        for column in _stored(name, note)
    }
    value = {**noted_to_json(found), "table_rows": rows, "types": types}
    value["sums"] = {name: told.value for name, told in sums.items()}
    text = json.dumps(value).encode()
    if len(text) > _LONGEST:
        warn_user(
            f"the axes of {sorted(found.rows)} differ from record to record too often for the "
            "metadata of a table, which holds flat lists of them now; convert less at once"
        )
        return schema
    return schema.with_metadata({**(schema.metadata or {}), _KEY: text})


@dataclass(slots=True)
class _Sum:
    """CRC32 of the lengths and of the values of a column, however it is cut into batches."""

    value: list[int] = field(default_factory=lambda: [0, 0])

    def add(self, column: Any) -> None:
        """Take the next rows."""
        pa = require("pyarrow", extra="table")
        pc = require("pyarrow.compute", extra="table")
        lengths = pc.is_valid(column).cast(pa.int64())
        if pa.types.is_large_list(column.type):
            lengths = pc.fill_null(pc.list_value_length(column), -1)
            column = column.flatten()
        self._join(0, lengths.to_numpy(zero_copy_only=False))
        values = column.drop_null()
        if pa.types.is_large_binary(values.type):
            texts = values.to_pylist()
            self._join(1, b"".join(len(text).to_bytes(8, "little") + text for text in texts))
        else:
            self._join(1, values.to_numpy(zero_copy_only=False))

    def _join(self, which: int, data: Any) -> None:
        self.value[which] = zlib.crc32(data, self.value[which])


class Believed:
    """What the metadata of a table notes of its columns, as far as it still holds.

    Args:
        schema: The ``pyarrow.Schema`` of the table.
        names: The columns taken.
        source: The table, for warnings.
    """

    def __init__(self, schema: Any, names: Sequence[str], source: str) -> None:
        self._rows, self._seen, self._source = 0, 0, source
        self._sums: dict[str, _Sum] = {}
        self._expected: dict[str, list[int]] = {}
        self._noted = Noted(Schema({}), {})
        text = (schema.metadata or {}).get(_KEY)
        if text is None:
            return
        try:
            self._take(json.loads(text), schema, names)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            warn_user(
                f"{source}: the axes noted in its metadata are not readable ({error!r}); arrays "
                "come back as flat lists"
            )

    def _take(self, value: Any, schema: Any, names: Sequence[str]) -> None:
        found, types, sums = noted_from_json(value), value["types"], value["sums"]

        def holds(name: str, note: Note) -> bool:
            """Return whether the columns are there, of the type they had."""
            place = note.place if isinstance(note, Feature) else "context"
            columns = _stored(name, note)
            return (
                set(columns) <= set(names)
                and all(type_text(schema.field(c).type) == types[c] for c in columns)
                and is_steps(schema.field(columns[0])) == (place == "list")
            )

        features = {name: f for name, f in found.schema.items() if holds(name, f)}
        rows = {name: axes for name, axes in found.rows.items() if holds(name, axes)}
        self._expected = {name: list(sums[name]) for name in rows}
        self._sums = {name: _Sum() for name in rows}
        self._rows = int(value["table_rows"])
        self._noted = Noted(Schema(dict(features)), rows)

    def see(self, batch: Any) -> None:
        """Look at the next rows of the table."""
        self._seen += batch.num_rows
        for name, told in self._sums.items():
            told.add(batch.column(name))

    def save(self, target: str) -> None:
        """Note beside a complete file what was noted of the table it was made from."""
        rows = dict(self._noted.rows)
        for name, told in self._sums.items():
            if self._seen != self._rows or told.value != self._expected[name]:
                del rows[name]
                warn_user(
                    f"{self._source}: column '{name}' is not what it was when its axes were noted "
                    "row by row; it comes back as flat lists"
                )
        if not (self._noted.schema or rows) or is_stream(target):
            return
        own = load_sidecar(target) or Noted(Schema({}), {})
        features = {**own.schema, **self._noted.schema}
        save_sidecar(target, Noted(Schema(features), {**own.rows, **rows}))


def with_arrays(batch: Batch) -> Batch:
    """Return a batch in which rows of lists in lists are arrays, where their lengths allow it.

    pandas, for one, leaves no more than such lists of arrays.

    Args:
        batch: The batch, whose columns are replaced.
    """
    for name, column in batch.items():
        if name in batch.lists or not isinstance(column, Ragged):
            continue
        if isinstance(column.values, Ragged):
            rows = [_array(column, row) for row in range(len(column))]
            if all(row is not None for row in rows):
                batch[name] = rows
    return batch


def _array(column: Ragged, row: int) -> Any:
    """Return lists in lists as an array, None where the lengths on one level differ."""
    start, stop = row, row + 1
    shape: list[int] = []
    level: Any = column
    while isinstance(level, Ragged):
        offsets = level.offsets[start : stop + 1]
        lengths = np.diff(offsets)
        if len(lengths) and (lengths != lengths[0]).any():
            return None
        shape.append(int(lengths[0]) if len(lengths) else 0)
        start, stop, level = int(offsets[0]), int(offsets[-1]), level.values
    flat = level[start:stop]
    values = flat if isinstance(flat, np.ndarray) else as_objects(flat)
    return values.reshape(*shape, *values.shape[1:])


def is_steps(column: Any) -> bool:
    """Return whether a field of a ``pyarrow.Schema`` is a feature list."""
    return bool((column.metadata or {}).get(PLACE) == LIST)

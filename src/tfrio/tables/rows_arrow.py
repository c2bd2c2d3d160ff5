"""CSV through pyarrow's reader, where it is installed: the same cells as ``CsvRows``, quicker.

Types are still those of ``CsvRows``, not pyarrow's: every cell comes as text first, and what
pyarrow cannot decide or read the same way is left to Python.
"""

from __future__ import annotations

import csv
from itertools import islice
from typing import TYPE_CHECKING, Any

from tfrio.errors import MissingExtraError, SchemaError, require
from tfrio.tables.arrow_in import cells_of_arrow
from tfrio.tables.cells import cells_of_values
from tfrio.tables.fields import Field
from tfrio.tables.rows import CONVERT, FLOAT, INT, binary_file, text_file, widest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrio.tables.cells import Cells
    from tfrio.tables.fields import Form

__all__ = ["ArrowCsv", "arrow_csv"]

_BLOCK = 4 << 20
_LOOK_ROWS = 65_536


def arrow_csv(path: str, text: frozenset[str]) -> ArrowCsv | None:
    """Open a UTF-8 CSV file through pyarrow.

    Args:
        path: The file.
        text: Columns that stay text.

    Returns:
        The table; None where pyarrow is missing or reads the file otherwise than Python would,
        so that ``CsvRows`` reads it, or says what is wrong with it.
    """
    try:
        pa = require("pyarrow", extra="table")
        require("pyarrow.csv", extra="table")
    except MissingExtraError:
        return None
    try:
        with text_file(path, "utf-8-sig") as file:
            header = next(csv.reader(islice(file, 1)), [])
        return ArrowCsv(path, text, header) if header else None
    except (pa.ArrowInvalid, SchemaError, UnicodeDecodeError, csv.Error):
        return None


class ArrowCsv:
    """A CSV file with a header of one line, in UTF-8.

    Args:
        path: The file.
        text: Columns that stay text.
        header: Names of the columns.
    """

    def __init__(self, path: str, text: frozenset[str], header: list[str]) -> None:
        self.path = path
        self._header = header
        forms: dict[str, Form] = {name: "text" if name in text else "null" for name in header}
        if len(forms) < len(header):
            raise SchemaError(f"{path}: a column is named twice", path=path)
        for part in self._parts(_LOOK_ROWS):
            for name in header:
                forms[name] = _form(forms[name], part.column(name))
        self.fields = [Field(name, form) for name, form in forms.items()]

    def cells(self, fields: Sequence[Field], rows: int) -> Iterator[tuple[int, dict[str, Cells]]]:
        """Yield the number of rows and the columns asked for, so many rows at a time."""
        first = 0
        for part in self._parts(rows):
            where = f"{self.path}, rows from {first}"
            yield part.num_rows, {f.name: _cells(part.column(f.name), f, where) for f in fields}
            first += part.num_rows

    def _parts(self, rows: int) -> Iterator[Any]:
        """Yield tables of text, of exactly so many rows but for the last."""
        pa = require("pyarrow", extra="table")
        waiting = None
        for batch in self._batches(pa):
            new = pa.Table.from_batches([batch])
            waiting = new if waiting is None else pa.concat_tables([waiting, new])
            while waiting.num_rows >= rows:
                yield waiting.slice(0, rows).combine_chunks()
                waiting = waiting.slice(rows)
        if waiting is not None and waiting.num_rows:
            yield waiting.combine_chunks()

    def _batches(self, pa: Any) -> Iterator[Any]:
        reading = require("pyarrow.csv", extra="table")
        with binary_file(self.path) as file:
            reader = reading.open_csv(
                file,
                read_options=reading.ReadOptions(block_size=_BLOCK),
                parse_options=reading.ParseOptions(newlines_in_values=True),
                convert_options=reading.ConvertOptions(
                    column_types=dict.fromkeys(self._header, pa.string()),
                    strings_can_be_null=False,
                ),
            )
            if reader.schema.names != self._header:
                raise pa.ArrowInvalid("another header than Python reads")
            yield from reader


def _form(form: Form, column: Any) -> Form:
    """Return the form of the cells so far and these; see ``widest``."""
    pc = require("pyarrow.compute", extra="table")
    if form == "text":
        return form
    known = column.filter(pc.not_equal(column, "")).combine_chunks()
    if not len(known):
        return form
    whole = form != "float" and _all_match(pc, known, INT.pattern)
    if not whole and not _all_match(pc, known, f"(?i:{FLOAT.pattern})"):
        return "text"
    # Numbers beyond any float, and the spellings of infinity and nan, are for Python.
    letters = pc.match_substring_regex(known, "(?i)n|e[+]?[0-9]{3}|[0-9.]{300}")
    odd = known.filter(letters).to_pylist()
    if odd and widest("null", tuple(odd)) == "text":
        return "text"
    return "int" if whole else "float"


def _all_match(pc: Any, known: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(known, rf"\A(?:{pattern})\z")).as_py())


def _cells(column: Any, field: Field, where: str) -> Cells:
    """Turn text into the cells of a column; an empty one is null."""
    pa = require("pyarrow", extra="table")
    pc = require("pyarrow.compute", extra="table")
    text = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column).combine_chunks()
    if field.form == "null":
        return cells_of_values(field, [None] * len(column))
    if field.form not in CONVERT:
        return cells_of_arrow(text, field, where=where)
    try:
        # Arrow takes neither spaces nor a plus sign for a part of a number.
        bare = pc.utf8_ltrim(pc.utf8_trim(text, " \t"), "+")
        numbers = bare.cast(pa.int64() if field.form == "int" else pa.float64())
    except pa.ArrowInvalid:
        turn = CONVERT[field.form]
        return cells_of_values(field, [c if c is None else turn(c) for c in text.to_pylist()])
    return cells_of_arrow(numbers, field, where=where)

"""CSV through pyarrow gives what CSV through Python gives, or leaves the file to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import tfrio
from tfrio.errors import SchemaError
from tfrio.tables import export_table
from tfrio.tables.rows import CsvRows
from tfrio.tables.rows_arrow import arrow_csv
from tfrio.tables.sources import open_table

NUMBERS = [
    "1", "-2", "+3", " 4 ", "0", "-0", "9223372036854775807", "9223372036854775808", "-1e400",
    "0.1", "1.", ".5", "-.5e-3", "+2.5E+4", "1e308", "1e309", "5e-324", "1e-400", "nan",
    "NaN", "-inf", "Inf", "1" * 310, "0.30000000000000004", "123456789012345678901234567890",
]  # fmt: skip
WORDS = [
    "007",
    "1_000",
    "x",
    "é",
    "infinity",
    "0x10",
    "1,5",
    'a"b',
    "a\nb",
    "\xa05",
    "\x0b5",
    " ",
    "++1",
    "+",
]
CELLS = st.sampled_from(["", *NUMBERS, *NUMBERS, *WORDS])


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if set(cell) & set(',"\n') else cell


def told(rows: Any, step: int) -> list[Any]:
    """Return fields and cells, as plain values."""
    found: list[Any] = [(field.name, field.form) for field in rows.fields]
    for count, cells in rows.cells(rows.fields, step):
        found.append(count)
        for name, column in cells.items():
            values = column.values
            plain = (
                values.tolist()
                if hasattr(values, "data") and not isinstance(values, np.ndarray)
                else values
            )
            dtype = str(getattr(values, "dtype", "bytes"))
            found.append(
                (name, dtype, repr(list(plain)), column.offsets.tolist(), column.present.tolist())
            )
    return found


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=7), st.integers(1, 4))
@example([("1", "", "x")] * 6, 4)
def test_pyarrow_reads_what_python_reads(
    tmp_path: Path, table: list[tuple[str, ...]], step: int
) -> None:
    path = tmp_path / "t.csv"
    lines = ["id,b,c", *(",".join(map(quoted, row)) for row in table)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    fast = arrow_csv(str(path), frozenset({"c"}))
    assert fast is not None
    assert told(fast, step) == told(CsvRows(path, text=frozenset({"c"})), step)


@pytest.mark.parametrize(
    "text",
    [
        "a,b\r\n1,2\r\n\r\n3,4\r\n",
        "a,b\n1,2\n3,4",
        "\ufeffa,b\n1,\n",
        'a,b\n"x ""y""",z"w\n',
        'a,b\n"x"y,z\n',
        "a\n1\n\n2\n",
        "a,b\n1,2\n3\n",
        "a,a\n1,2\n",
        '"a\nb",c\n1,2\n',
        "\n1,2\n",
        "",
        "a,b\n",
        "a,b\r1,2\r",
    ],
)
def test_odd_files_are_read_alike_or_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    fast = arrow_csv(str(path), frozenset())
    if fast is None:
        return
    assert told(fast, 2) == told(CsvRows(path), 2)


def test_errors_are_those_of_python(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,2\n3\n")
    with pytest.raises(SchemaError, match="line 3: 1 cells under a header of 2"):
        open_table(path)
    path.write_bytes(b"a\n\xe9t\xe9\n")
    with pytest.raises(SchemaError, match="Pass encoding="):
        open_table(path)
    assert open_table(path, encoding="latin-1").fields[0].form == "text"


def test_the_same_records_with_and_without_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    lines = [f"{k},{rng.random():.6g},{'' if k % 7 == 0 else f'name {k}'}" for k in range(40_000)]
    (tmp_path / "t.csv").write_text("\n".join(["id,v,name", *lines]))
    fast = export_table(tmp_path / "t.csv", tmp_path / "fast", dtype="native")
    monkeypatch.setattr("tfrio.tables.sources.arrow_csv", lambda *_: None)
    slow = export_table(tmp_path / "t.csv", tmp_path / "slow", dtype="native")
    assert list(tfrio.read_records(fast.path)) == list(tfrio.read_records(slow.path))
    assert (fast.nulls, fast.columns) == (slow.nulls, slow.columns)

"""Numbers for people, JSON for programs, one line for an error."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tfrio.cli.output import as_json, fail, human_bytes, new_table, plural, progress


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, "record", "0 records"),
        (1, "record", "1 record"),
        (1200, "record", "1,200 records"),
        (2, "patch", "2 patches"),
        (1, "patch", "1 patch"),
    ],
)
def test_plural(count: int, noun: str, text: str) -> None:
    assert plural(count, noun) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (9_999, "9,999 B"),
        (10_240, "10.0 KiB"),
        (5 * 1024**2, "5.0 MiB"),
        (3 * 1024**3, "3.0 GiB"),
        (2_000 * 1024**3, "2.0 TiB"),
    ],
)
def test_human_bytes(count: int, text: str) -> None:
    assert human_bytes(count) == text


def test_json_takes_arrays_paths_and_dataclasses() -> None:
    @dataclass
    class Report:
        path: Path
        values: object
        count: object

    text = as_json(Report(Path("a b/ç.tfrecord"), np.arange(3), np.int64(5)))
    assert json.loads(text) == {"path": "a b/ç.tfrecord", "values": [0, 1, 2], "count": 5}


def test_an_error_is_one_line_and_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        fail("first\n   second", 1)
    assert caught.value.code == 1
    assert capsys.readouterr().err == "tfrio: first second\n"


def test_progress_is_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("reading", "files") as update:
        assert update is None
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_tables_align_numbers_right() -> None:
    table = new_table("name", "count", right=("count",))
    assert [column.justify for column in table.columns] == ["left", "right"]


def test_progress_moves_on_a_terminal_where_the_end_is_unknown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress("converting", "records") as update:
        assert update is not None
        update(3, 0)
        update(7, 20)
    assert "converting" in capsys.readouterr().err

"""In a terminal of any width, no number, name or path of a table is broken."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tfrio

WIDTHS = (60, 80, 120)
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write two files of features whose statistics take more than 120 columns."""
    rng = np.random.default_rng(5)
    place = tmp_path / "a-folder-of-a-name-that-is-long-enough-to-be-wider-than-a-narrow-terminal"
    place.mkdir()
    for name in ("first.tfrecord", "second.tfrecord.gz"):
        with tfrio.Writer(place / name) as writer:
            for number in range(7):
                values = rng.normal(size=1089).astype(np.float32) / 17
                values[3] = np.nan
                row = {f"reflectance_of_band_{k}": values * k for k in range(1, 4)}
                writer.write(
                    row | {"identifier": 123_456_789 + number, "some": np.float32([0.5] * number)}
                )
    return place


@pytest.fixture
def at_width(cli, monkeypatch: pytest.MonkeyPatch):
    """Return a function that runs a command in a terminal of a number of columns."""

    def run(width: int, *arguments: object) -> str:
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm")
        out = _STYLE.sub("", cli(*arguments).out)
        monkeypatch.undo()
        return out

    return run


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", ["stats", "info", "verify", "count", "head"])
def test_no_word_of_the_data_is_broken(cli, at_width, folder: Path, command: str, width: int):
    whole = set(cli(command, folder).out.split())
    shown = at_width(width, command, folder)
    broken = set(shown.split()) - whole - {"\u2500" * n for n in range(300)}
    assert not broken
    too_wide = [line for line in shown.splitlines() if len(line) > width]
    assert all(str(folder) in line for line in too_wide), too_wide


def test_a_wide_table_becomes_a_block_a_row(at_width, folder: Path) -> None:
    lines = at_width(60, "stats", folder).splitlines()
    first = lines.index("reflectance_of_band_1")
    assert lines[first + 1].startswith("  kind float   values 1,089   present always")
    assert not any(line.startswith("feature") for line in lines)


def test_columns_without_a_value_go_first(at_width, tmp_path: Path) -> None:
    with tfrio.Writer(tmp_path / "a.tfrecord") as writer:
        for number in range(5):
            writer.write({"weight": np.float32([number / 7] * 3)})
    wide = at_width(120, "stats", tmp_path).splitlines()
    narrow = at_width(84, "stats", tmp_path).splitlines()
    assert {"empty", "NaN"} <= set(wide[2].split())
    assert narrow[2].split() == [w for w in wide[2].split() if w not in ("empty", "NaN")]


def test_numbers_stand_right_in_a_table(at_width, folder: Path) -> None:
    lines = [line for line in at_width(300, "count", folder).splitlines() if "tfrecord" in line]
    assert lines[0].rstrip()[-1].isdigit()
    assert len({len(line.rstrip()) for line in lines}) == 1


def test_a_path_longer_than_a_pipe_is_wide_is_whole(cli, tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*(f"folder-{k}-{'x' * 60}" for k in range(4)))
    deep.mkdir(parents=True)
    with tfrio.Writer(deep / "a.tfrecord") as writer:
        writer.write({"x": 1})
    assert f"{deep / 'a.tfrecord'} " in cli("verify", deep).out

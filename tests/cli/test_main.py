"""The frame of the command line: help, exit codes, errors and warnings as lines."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

from tfrio.cli import main as entry
from tfrio.errors import CorruptRecordError, TfrioWarning, UsageError


def leave_with(arguments: list[str]) -> int | str | None:
    """Run the command line and return its exit status."""
    with pytest.raises(SystemExit) as caught:
        entry.run(arguments)
    return caught.value.code


def test_help_lists_every_command_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave_with(["--help"]) == 0
    text = capsys.readouterr().out
    for name in entry._COMMANDS:
        assert f"\n  {name} " in text
    assert "0 fine, 1 a problem in the data, 2 wrong use." in text


def test_help_groups_the_commands_by_the_road(capsys: pytest.CaptureFixture[str]) -> None:
    leave_with(["--help"])
    lines = capsys.readouterr().out.splitlines()
    headings = [lines.index(f"{heading}:") for heading in entry._ROAD]
    assert headings == sorted(headings)
    for at, part in zip(headings, entry._ROAD.values(), strict=True):
        assert [line.split()[0] for line in lines[at + 1 :][: len(part)]] == list(part)
    assert lines.index("Options:") > headings[-1]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("arguments", [[], ["export"], ["import"], ["schema"]])
def test_a_group_alone_shows_its_whole_help(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave_with([*arguments, "--help"]) == 0
    text = capsys.readouterr().out
    assert leave_with(arguments) == 2
    assert capsys.readouterr().err == text
    assert text.count("\n") >= 10


@pytest.mark.parametrize("name", list(entry._COMMANDS))
def test_each_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave_with([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"tfrio {name}" in text
    assert "Example" in text or "Commands:" in text


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nope"], "tfrio: No such command 'nope'. See: tfrio --help\n"),
        (
            ["exprot", "image"],
            "tfrio: No such command 'exprot'. Did you mean 'export'? See: tfrio --help\n",
        ),
        (["demo", "--nope"], "tfrio: No such option '--nope'. See: tfrio demo --help\n"),
        (["head"], "tfrio: Missing argument 'PATHS...'. See: tfrio head --help\n"),
        (
            ["info", "a.tfrecord", "--schema"],
            "tfrio: Option '--schema' requires an argument. See: tfrio info --help\n",
        ),
        (
            ["info", "--schema", "a.tfrecord"],
            "tfrio: Missing argument 'PATHS...'. --schema took 'a.tfrecord' as its value. "
            "See: tfrio info --help\n",
        ),
        (["head", "--raw"], "tfrio: Missing argument 'PATHS...'. See: tfrio head --help\n"),
        (
            ["export", "image", "--patch"],
            "tfrio: Option '--patch' requires an argument. See: tfrio export image --help\n",
        ),
    ],
)
def test_wrong_use_is_one_line_and_2(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave_with(arguments) == 2
    assert capsys.readouterr().err == line


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (CorruptRecordError("a: cut"), 1, "tfrio: a: cut"),
        (UsageError("kernel must be whole"), 2, "tfrio: kernel must be whole"),
        (FileNotFoundError(2, "No such file or directory", "a b"), 1, "tfrio: a b: no such file"),
        (OSError("disk went away"), 1, "tfrio: disk went away"),
    ],
)
def test_errors_are_one_line_and_a_code(
    error: Exception,
    code: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(*_typed: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr(entry, "main", broken)
    assert leave_with([]) == code
    captured = capsys.readouterr().err
    assert captured.startswith(line)
    assert captured.count("\n") == 1


def test_warnings_about_data_are_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def warned(*_typed: object, **_options: object) -> None:
        warnings.warn("8 values were clamped", TfrioWarning, stacklevel=1)

    monkeypatch.setattr(entry, "main", warned)
    assert leave_with([]) is None
    assert capsys.readouterr().err == "tfrio: warning: 8 values were clamped\n"


def test_runs_as_a_module_without_warnings() -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tfrio", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.startswith("tfrio ")
    assert run.stderr == ""

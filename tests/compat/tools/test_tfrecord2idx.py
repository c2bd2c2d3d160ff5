"""The index tool: bytes as ever on good files, an error on all others."""

from __future__ import annotations

import os
import sys

import pytest

from tests.compat.bytes_of import write, write_numbers
from tfrio.compat import tools
from tfrio.compat.tools import tfrecord2idx
from tfrio.compat.tools.tfrecord2idx import create_index, create_indices, main


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> object:
    monkeypatch.setattr(sys, "argv", ["tfrecord2idx", *map(str, arguments)])
    try:
        main()
    except SystemExit as stop:
        return stop.code
    return 0


def test_an_index_is_one_line_per_record(tmp_path, capsys):
    path = write(tmp_path / "a", b"x" * 14, b"", b"y" * 300_000, b"z")
    assert create_index(path, tmp_path / "i") is None
    assert (tmp_path / "i").read_bytes() == b"0 30\n30 16\n46 300016\n300062 17\n"
    assert capsys.readouterr() == ("", "")


def test_an_empty_file_has_an_empty_index(tmp_path):
    create_index(write(tmp_path / "a"), tmp_path / "i")
    assert (tmp_path / "i").read_bytes() == b""


def test_an_old_index_is_replaced_only_by_a_whole_one(tmp_path):
    (tmp_path / "i").write_text("old")
    (tmp_path / "a").write_bytes(b"\0" * 40)
    with pytest.raises((RuntimeError, ValueError)):
        create_index(tmp_path / "a", tmp_path / "i")
    assert (tmp_path / "i").read_text() == "old"
    create_index(write_numbers(tmp_path / "a", 1), tmp_path / "i")
    assert (tmp_path / "i").read_text() == "0 30\n"
    assert sorted(os.listdir(tmp_path)) == ["a", "i"]


def test_which_files_of_a_folder_are_indexed(tmp_path):
    for name in ("a.tfrecord", "b.c.tfrecord", "d.tfrecords", ".h.tfrecord", "e.tfrecord.gz"):
        write_numbers(tmp_path / name, 2)
    (tmp_path / "x.tfrecord").mkdir()
    write_numbers(tmp_path / "x.tfrecord" / "deep.tfrecord", 1)
    create_indices(tmp_path)
    made = {name for name in os.listdir(tmp_path) if name.endswith(".tfindex")}
    assert made == {"a.tfindex", "b.c.tfindex"}


def test_a_missing_folder_is_said():
    with pytest.raises(NotADirectoryError, match="/nonexistent is not a folder"):
        create_indices("/nonexistent")


def test_exit_codes(tmp_path, monkeypatch, capsys):
    path = write_numbers(tmp_path / "a", 2)
    assert call(monkeypatch, path, tmp_path / "i") == 0
    assert call(monkeypatch, tmp_path, tmp_path / "made" / "deep") == 0
    assert (tmp_path / "made" / "deep").is_dir()
    assert call(monkeypatch) == 2
    assert call(monkeypatch, path, "b", "c") == 2
    assert call(monkeypatch, "--help") == 0
    assert "usage: tfrecord2idx" in capsys.readouterr().out
    (tmp_path / "text").write_text("no records\n" * 5)
    for bad in (tmp_path / "text", "/nonexistent"):
        message = call(monkeypatch, bad, tmp_path / "j")
        assert isinstance(message, str)  # sys.exit(text) prints it and exits 1
        assert message.startswith("tfrecord2idx: ")
        assert str(bad) in message


def test_names_of_the_package():
    assert tools.create_index is create_index
    assert tools.tfrecord2idx is tfrecord2idx
    with pytest.raises(AttributeError, match="nothing"):
        _ = tools.nothing

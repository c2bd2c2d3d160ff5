"""Pipes: read once by what needs to read once, refused in one sentence by the rest."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.records import golden
from tests.records.golden import PAYLOADS, THREE, THREE_GZ
from tfrio.errors import CorruptRecordError, UsageError
from tfrio.examples.repair import repair
from tfrio.examples.reshard import merge, reshard
from tfrio.records.access import RecordFile
from tfrio.records.counting import count, head
from tfrio.records.reader import read_records
from tfrio.records.sequence import RecordSequence
from tfrio.records.verify import verify
from tfrio.records.writer import RecordWriter
from tfrio.storage import atomic_write
from tfrio.survey import info

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


@pytest.fixture
def pipe(tmp_path: Path) -> Callable[[bytes], str]:
    """Return a maker of named pipes out of which some bytes come, once."""

    def make(data: bytes) -> str:
        path = tmp_path / "pipe"
        os.mkfifo(path)

        def feed() -> None:
            with contextlib.suppress(BrokenPipeError):  # the reader had enough
                path.write_bytes(data)

        threading.Thread(target=feed, daemon=True).start()
        return str(path)

    return make


def seen(path: str) -> tuple[int, int, str]:
    report = info(path)
    return report.records, report.sampled, report.content


ONCE: dict[str, Callable[[str, Path], object]] = {
    "read": lambda path, _: list(read_records(path)) == list(PAYLOADS),
    "head": lambda path, _: head(path, 3) == list(PAYLOADS),
    "count": lambda path, _: count(path).records == 3,
    "count and check": lambda path, _: count(path, verify=True).records == 3,
    "verify": lambda path, _: verify(path).records == 3,
    "info": lambda path, _: seen(path) == (3, 3, "example"),
    "repair": lambda path, out: repair(path, out / "r").kept == 3,
    "merge": lambda path, out: merge(path, out / "m").records == 3,
}


@pytest.mark.parametrize("data", [THREE, THREE_GZ], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", list(ONCE))
def test_a_pipe_is_read_once(
    tmp_path: Path, pipe: Callable[[bytes], str], name: str, data: bytes
) -> None:
    assert ONCE[name](pipe(data), tmp_path)


REFUSED: dict[str, Callable[[str, Path], Any]] = {
    "open": lambda path, _: RecordFile(path),
    "sequence": lambda path, _: RecordSequence(path),
    "digest": lambda path, _: verify(path, digest=True),
    "split": lambda path, out: reshard(path, out / "s", max_bytes=100),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_reads_twice_refuses_a_pipe_at_once(tmp_path: Path, name: str) -> None:
    """Nobody writes to this one: whoever opened it would wait for ever."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(UsageError, match=r"this is a stream, .* save it to a file first") as caught:
        REFUSED[name](str(path), tmp_path)
    assert str(path) in str(caught.value)


def test_damage_in_a_pipe_is_told_with_its_place(pipe: Callable[[bytes], str]) -> None:
    path = pipe(golden.PAYLOAD_FLIP)
    with pytest.raises(CorruptRecordError, match="record 1 at offset 46") as caught:
        list(read_records(path))
    assert caught.value.path == path


@pytest.mark.parametrize("name", ["count", "info", "verify", "head"])
def test_commands_read_standard_input(name: str) -> None:
    command = [sys.executable, "-m", "tfrio", name, "-"]
    done = subprocess.run(command, input=THREE, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert b"3" in done.stdout or b"record 2" in done.stdout


def test_the_command_that_makes_indexes_refuses_standard_input() -> None:
    command = [sys.executable, "-m", "tfrio", "index", "/dev/stdin"]
    done = subprocess.run(command, input=THREE, capture_output=True, check=False, timeout=60)
    assert done.returncode == 2
    assert b"/dev/stdin: an index reads its input more than once" in done.stderr


@pytest.mark.parametrize("name", ["count", "info", "verify", "head"])
def test_an_empty_path_is_no_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(THREE)
    command = [sys.executable, "-m", "tfrio", name, ""]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert "a path is empty" in done.stderr


def test_a_pipe_named_as_output_is_written_to_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    source = tmp_path / "a"
    source.write_bytes(THREE)
    came: list[bytes] = []
    reader = threading.Thread(target=lambda: came.append(path.read_bytes()), daemon=True)
    reader.start()
    report = merge(source, path)
    reader.join(30)
    assert came == [THREE]
    assert (report.records, report.files[0].digest) == (3, "")
    assert path.is_fifo()


def test_a_device_named_as_output_stays_a_device(tmp_path: Path) -> None:
    path = tmp_path / "null"
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 3))
        path.write_bytes(b"")
    except OSError:
        pytest.skip("no right to make devices here")
    with RecordWriter(path) as writer:
        writer.write(b"x")
    with atomic_write(path) as file:
        file.write(b"x")
    assert path.is_char_device()
    with pytest.raises(FileExistsError, match="never replaces"):
        RecordWriter(path, mode="x")


def test_standard_output_gets_the_records(tmp_path: Path) -> None:
    source = tmp_path / "a"
    source.write_bytes(THREE)
    command = [sys.executable, "-m", "tfrio", "merge", str(source), "/dev/stdout"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.stdout == THREE
    assert b"3 records" in done.stderr

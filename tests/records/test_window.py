"""Streaming holds little, whatever the size of the file, and maps what is plain."""

from __future__ import annotations

import gzip
import io
import mmap
import tracemalloc
from pathlib import Path

import pytest

from tests.records import golden
from tests.records.golden import THREE, put
from tfrio.compression import open_chunks
from tfrio.records import window
from tfrio.records.check import check_file
from tfrio.records.reader import RecordStream
from tfrio.records.window import BufferWindow, MappedWindow, open_window
from tfrio.records.writer import RecordWriter


def peak_of(path: Path, threads: int) -> int:
    tracemalloc.start()
    assert check_file(path, threads=threads).ok
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("threads", [1, 2])
def test_a_gzip_file_of_100_mb_is_read_in_little_memory(tmp_path: Path, threads: int) -> None:
    ordinary, blocked = tmp_path / "o.gz", tmp_path / "b.tfrecord.gz"
    frame = golden.frame(bytes(1 << 20))
    with gzip.open(ordinary, "wb", 1) as file:
        for _ in range(100):
            file.write(frame)
    with RecordWriter(blocked) as writer:
        for _ in range(100):
            writer.write(bytes(1 << 20))
    for path in (ordinary, blocked):
        assert peak_of(path, threads) < 40 << 20


def test_writing_holds_a_few_blocks(tmp_path: Path) -> None:
    for name in ("a.tfrecord", "a.tfrecord.gz"):
        tracemalloc.start()
        with RecordWriter(tmp_path / name, threads=2) as writer:
            for i in range(30_000):
                writer.write(b"%01000d" % i)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 16 << 20


def test_large_plain_files_are_mapped_and_others_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path, "a", THREE * 100)
    for least, kind in ((1, MappedWindow), (1 << 20, BufferWindow)):
        monkeypatch.setattr(window, "_WORTH_MAPPING", least)
        found = open_window(open_chunks(path), 1 << 20, 0)
        assert isinstance(found, kind)
        found.close()
    monkeypatch.setattr(window, "_WORTH_MAPPING", 1)
    found = open_window(open_chunks(io.BytesIO(THREE)), 100, 0)
    assert isinstance(found, BufferWindow)


@pytest.mark.parametrize("start", [0, 46, 138, 46 * 299])
def test_a_mapped_window_slides_like_a_buffer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: int
) -> None:
    data = THREE * 100
    path = put(tmp_path, "a", data)
    monkeypatch.setattr(window, "MAPPED", mmap.ALLOCATIONGRANULARITY)
    found = MappedWindow(path, start)
    taken = b""
    while found.pull() or len(found.buffer):
        size = min(len(found.buffer), 1111)
        taken += bytes(found.buffer[:size])
        found.drop(size)
        assert found.unread == len(data) - found.consumed
    assert taken == data[start:]
    assert found.exhausted
    found.close()


def test_a_view_of_a_mapping_outlives_the_window(tmp_path: Path) -> None:
    path = put(tmp_path, "a", golden.frame(bytes(2 << 20)) + THREE)
    with RecordStream(path) as stream:
        stream.fill()
        view = stream.buffer[-138:]
    assert bytes(view) == THREE

"""Streaming holds little, whatever the size of the file, and outlives a file that is cut."""

from __future__ import annotations

import gzip
import io
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records import golden
from tests.records.golden import PAYLOADS, THREE, put
from tfrio import _core
from tfrio.compression import open_chunks
from tfrio.errors import CorruptRecordError, FileCutError, TfrioWarning
from tfrio.records import check
from tfrio.records.check import check_file
from tfrio.records.damage import DamageReport
from tfrio.records.reader import RecordStream, read_records
from tfrio.records.walk import walk
from tfrio.records.window import Window
from tfrio.records.writer import RecordWriter


def peak_of(path: Path, threads: int) -> int:
    tracemalloc.start()
    assert check_file(path, threads=threads).ok
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_of_100_mb_is_read_in_little_memory(tmp_path: Path, threads: int) -> None:
    plain, ordinary, blocked = tmp_path / "p", tmp_path / "o.gz", tmp_path / "b.tfrecord.gz"
    frame = golden.frame(bytes(1 << 20))
    plain.write_bytes(frame * 100)
    with gzip.open(ordinary, "wb", 1) as file:
        for _ in range(100):
            file.write(frame)
    with RecordWriter(blocked) as writer:
        for _ in range(100):
            writer.write(bytes(1 << 20))
    for path in (plain, ordinary, blocked):
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


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 5000), max_size=80),
    size=st.integers(64, 4096),
    steps=st.lists(st.integers(1, 9000), min_size=1, max_size=30),
    packed=st.booleans(),
)
def test_a_window_shows_every_byte_once_and_in_order(
    lengths: list[int], size: int, steps: list[int], packed: bool
) -> None:
    data = b"".join(golden.frame(bytes([n % 251]) * n) for n in lengths)
    stored = gzip.compress(data, 1) if packed else data
    window = Window(open_chunks(io.BytesIO(stored), threads=1), size)
    taken = b""
    while window.pull() or not window.exhausted:
        nbytes = min(steps[len(taken) % len(steps)], len(window.buffer))
        taken += bytes(window.buffer[:nbytes])
        window.drop(nbytes)
        past = bytes(window.past)
        assert taken.endswith(past)
        assert not packed or len(past) == min(len(taken), 64 << 10)
    assert taken + bytes(window.buffer) == data


def held(path: Path) -> int:
    """Return the bytes that a stream holds once it walked a file."""
    with RecordStream(path) as stream:
        for _ in walk(stream):
            pass
        return len(stream._window._store)


def test_the_buffer_grows_for_large_records_alone(tmp_path: Path) -> None:
    small = put(tmp_path, "small", golden.frame(bytes(1000)) * 3000)
    large = put(tmp_path, "large", golden.frame(bytes(600_000)) * 30)
    single = put(tmp_path, "single", golden.frame(bytes(40_000)))
    assert held(small) == 1 << 20
    assert held(large) == 600_016 * 6 + 12
    assert held(single) == 40_017


LARGE = golden.frame(bytes(300_000))


@pytest.mark.parametrize("kept", [len(LARGE) * 5, len(LARGE) * 5 + 7, len(LARGE) * 6 - 1])
def test_a_file_cut_short_while_it_is_read_is_one_clear_error(tmp_path: Path, kept: int) -> None:
    """At the end of a record or amid one: what is left is read, then it is said."""
    path = put(tmp_path, "a", LARGE * 20)
    records = read_records(path)
    next(records)
    os.truncate(path, kept)
    got = [1]
    with pytest.raises(CorruptRecordError, match="cut short while it was read") as caught:
        got += [len(r) for r in records]
    error = caught.value
    whole = kept // len(LARGE)
    assert (error.path, error.field) == (str(path), "file")
    assert (error.expected, error.got) == (len(LARGE) * 20, kept)
    assert error.record == whole
    assert error.offset == whole * len(LARGE)
    assert f"{whole} whole records precede" in str(error)


def test_skipping_tells_what_a_file_cut_short_lost(tmp_path: Path) -> None:
    path = put(tmp_path, "a", LARGE * 20)
    report = DamageReport()
    records = read_records(path, errors="skip", report=report)
    next(records)
    os.truncate(path, len(LARGE) * 7 + 5)
    with pytest.warns(TfrioWarning, match="skipped 1 damaged record "):
        assert len(list(records)) == 6
    assert [d.code for d in report.damages] == ["file-cut"]
    assert report.bytes_lost == len(LARGE) * 13


def test_a_file_that_grows_while_it_is_read_is_read_to_its_new_end(tmp_path: Path) -> None:
    path = put(tmp_path, "a", LARGE * 8)
    records = read_records(path)
    next(records)
    with path.open("ab") as file:
        file.write(THREE)
    assert list(records)[-3:] == list(PAYLOADS)


def test_a_check_in_pieces_tells_of_a_file_cut_short_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "_WORTH_CUTTING", 1)
    path = put(tmp_path, "a", LARGE * 30)
    cut: list[int] = []

    def count(*arguments: object) -> object:
        if not cut:
            os.truncate(path, len(LARGE) * 20 + 100)
            cut.append(1)
        return real(*arguments)

    real = _core.count
    monkeypatch.setattr(check._core, "count", count)
    report = check_file(path, threads=2)
    assert not report.ok
    assert report.records == 20


def test_a_cut_file_error_survives_pickling() -> None:
    import pickle

    error = FileCutError("x", path="p", expected=5, got=3)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.path, again.expected, again.got) == (FileCutError, "p", 5, 3)
    assert np.int64(again.got) == 3

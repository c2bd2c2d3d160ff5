"""Mapped windows show what is in the file, and nothing else where it is cut meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrio
from tests.records import golden
from tests.records.golden import put
from tfrio import _core
from tfrio.compression import open_chunks
from tfrio.errors import CorruptRecordError, IndexFileError, TfrioWarning
from tfrio.examples.encode import encode_example
from tfrio.records import mapped
from tfrio.records.damage import Damage, DamageReport
from tfrio.records.lent import LentWindow
from tfrio.records.mapped import MappedWindow, check_maps, open_window
from tfrio.records.reader import RecordStream
from tfrio.records.walk import Chunk, walk
from tfrio.records.window import Window


def example(values: list[float]) -> bytes:
    return encode_example({"x": np.array(values, np.float32)})


ROW = golden.frame(example([1.5] * 30_000))  # about 120 kB
ROWS = 40


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return put(tmp_path, "a", ROW * ROWS)


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(st.integers(0, 90_000), min_size=1, max_size=30),
    size=st.integers(1, 5000),
    start=st.integers(0, 3000),
)
def test_a_mapped_window_shows_every_byte_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], size: int, start: int
) -> None:
    data = np.random.default_rng(0).bytes(300_000)
    path = put(tmp_path_factory.mktemp("w"), "a", data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapped, "_MAPPED", size)
        window = MappedWindow(open_chunks(path, "none", start=start))  # type: ignore[arg-type]
        taken = bytearray()
        while window.pull() or not window.exhausted:
            nbytes = min(steps[len(taken) % len(steps)], len(window.buffer))
            taken += window.buffer[:nbytes]
            window.check(nbytes)
            window.drop(nbytes)
            assert window.unread == len(data) - window.consumed
        assert bytes(taken) + bytes(window.buffer) == data[start:]
    window.close()


def test_small_and_compressed_files_are_not_mapped(tmp_path: Path, path: Path) -> None:
    import gzip

    packed = put(tmp_path, "p.gz", gzip.compress(ROW * ROWS, 1))
    small = put(tmp_path, "s", ROW)
    for name, kind in ((path, MappedWindow), (packed, LentWindow), (small, Window)):
        assert type(open_window(open_chunks(name), 1 << 20, mapped=True)) is kind
    assert type(open_window(open_chunks(path), 1 << 20, mapped=False)) is Window


def test_a_file_system_that_maps_nothing_is_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(19, "No such device")

    monkeypatch.setattr(_core, "FileMap", refuse)
    assert type(open_window(open_chunks(path), 1 << 20, mapped=True)) is Window


def sound_rows(batches: Iterator[tfrio.Batch]) -> Iterator[int]:
    for batch in batches:
        assert (batch["x"] == 1.5).all()
        yield batch.rows


@pytest.mark.parametrize("kept", [len(ROW) * 5, len(ROW) * 5 + 7, len(ROW) * 6 - 1, 100])
def test_a_file_cut_while_batches_are_read_is_one_clear_error(path: Path, kept: int) -> None:
    batches = tfrio.read_batches(path, 2)
    rows = [next(batches).rows]
    os.truncate(path, kept)
    with pytest.raises(CorruptRecordError, match="cut short while it was read") as caught:
        rows += sound_rows(batches)
    error = caught.value
    assert (error.path, error.expected, error.got) == (str(path), len(ROW) * ROWS, kept)
    assert error.record is not None
    assert sum(rows) <= error.record <= max(kept // len(ROW), 2)
    assert error.offset == error.record * len(ROW)


@pytest.mark.parametrize("verify", [True, False])
def test_zeros_are_never_taken_for_values(path: Path, verify: bool) -> None:
    """The payload's checksum would tell; without it the file's size does."""
    batches = tfrio.read_batches(path, 3, verify=verify)
    next(batches)
    os.truncate(path, len(ROW) * 10 + 500)
    with pytest.raises(CorruptRecordError, match="cut short.*record (9|10) at offset"):
        list(sound_rows(batches))


def test_bytes_that_are_gone_are_no_malformed_example(path: Path) -> None:
    """Without checksums the decoder stops at zeros where it looks for a field."""
    small = golden.frame(example([1.5] * 300))
    path.write_bytes(small * 2000)
    batches = tfrio.read_batches(path, 2, verify=False)
    next(batches)
    os.truncate(path, len(small) * 7 + 20)
    with pytest.raises(CorruptRecordError, match="cut short while it was read"):
        list(sound_rows(batches))


def test_skipping_tells_what_a_file_cut_short_lost(path: Path) -> None:
    report = DamageReport()
    batches = tfrio.read_batches(path, 1, errors="skip", report=report)
    next(batches)
    os.truncate(path, len(ROW) * 7 + 5)
    with pytest.warns(TfrioWarning, match="skipped 1 damaged record "):
        assert sum(batch.rows for batch in batches) == 6
    assert [d.code for d in report.damages] == ["file-cut"]
    assert report.bytes_lost == len(ROW) * (ROWS - 7)


@pytest.mark.parametrize("size", [1 << 20, 16 << 20])
def test_walking_meets_the_cut_at_its_record(
    path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the lost bytes were mapped already or not."""
    monkeypatch.setattr(mapped, "_MAPPED", size)
    with RecordStream(path, mapped=True) as stream:
        stream.fill()
        os.truncate(path, len(ROW) * 20 + 100)
        found = list(walk(stream))
    damage = found[-1]
    assert (damage.code, damage.record, damage.offset) == (  # type: ignore[union-attr]
        "file-cut",
        20,
        len(ROW) * 20,
    )
    assert damage.lost == len(ROW) * 20  # type: ignore[union-attr]


@pytest.mark.parametrize("size", [1 << 20, 16 << 20])
@pytest.mark.parametrize("part", ["header", "payload"])
def test_damage_before_a_cut_costs_no_record_between_them(
    path: Path, size: int, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "_MAPPED", size)
    at = len(ROW) * 4 + (9 if part == "header" else 500)
    path.write_bytes(golden.flipped(path.read_bytes(), at))
    with RecordStream(path, mapped=True) as stream:
        stream.fill()
        os.truncate(path, len(ROW) * 20 + 100)
        found = list(walk(stream))
    damages = [d for d in found if isinstance(d, Damage)]
    assert [(d.record, d.lost) for d in damages] == [(4, len(ROW)), (20, len(ROW) * 20)]
    assert damages[1].code == "file-cut"
    assert sum(len(c.spans) for c in found if isinstance(c, Chunk)) == 19
    path.write_bytes(golden.flipped(ROW * ROWS, at))
    report = DamageReport()
    batches = tfrio.read_batches(path, 1, errors="skip", report=report)
    next(batches)
    os.truncate(path, len(ROW) * 20 + 100)
    with pytest.warns(TfrioWarning, match="skipped 2 damaged records"):
        assert sum(batch.rows for batch in batches) == 18
    assert report.bytes_lost == len(ROW) * 21


def test_a_file_that_grows_is_read_to_its_end_at_the_last_look(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "_MAPPED", 1 << 20)
    batches = tfrio.read_batches(path, 1, schema=tfrio.infer_schema(path))
    next(batches)
    with path.open("ab") as file:
        file.write(ROW * 2)
    assert sum(1 for _ in batches) == ROWS + 1


def test_records_by_number_in_a_file_cut_short(path: Path) -> None:
    with tfrio.open(path, index="memory") as rows:
        assert rows[3]["x"].shape == (30_000,)
        os.truncate(path, len(ROW) * 8 + 99)
        for ask in (lambda: rows[8], lambda: rows[39], lambda: rows.batch([1, 30])):
            with pytest.raises(IndexFileError, match="was cut short since it was opened"):
                ask()


@pytest.mark.parametrize("verify", [True, False])
def test_the_first_record_by_number_is_checked_like_all_others(path: Path, verify: bool) -> None:
    with tfrio.open(path, index="memory", features=["x"], verify=verify) as rows:
        os.truncate(path, len(ROW) * 8 + 9000)
        with pytest.raises(IndexFileError, match="was cut short since it was opened"):
            rows[8]


def test_only_mapped_files_are_checked(path: Path) -> None:
    with path.open("rb") as file:
        whole = _core.FileMap("b", file.fileno(), 0, 1000)
        beyond = _core.FileMap("c", file.fileno(), 10_000, len(ROW) * ROWS)
    check_maps([b"abc", whole])
    with pytest.raises(IndexFileError, match="c was cut short"):
        check_maps([whole, beyond])


def test_a_map_refuses_what_it_cannot_map(path: Path) -> None:
    with path.open("rb") as file, pytest.raises(ValueError, match="at least 1"):
        _core.FileMap("a", file.fileno(), 0, 0)
    with pytest.raises(OSError, match="Bad file descriptor: 'a'"):
        _core.FileMap("a", 10_000, 0, 5)


SCRIPT = """
import faulthandler, os, signal, sys
import tfrio.errors
path, mode = sys.argv[1:]
batches = tfrio.read_batches(path, 2)
next(batches)
if mode == "faulthandler":
    faulthandler.enable()
os.truncate(path, 5000)
try:
    list(batches)
except tfrio.errors.CorruptRecordError:
    print("told")
if mode == "kill":
    os.kill(os.getpid(), signal.SIGBUS)
"""


@pytest.mark.parametrize(("mode", "status"), [("", 0), ("kill", -signal.SIGBUS)])
def test_the_process_lives_on_and_other_bus_errors_end_it(
    path: Path, mode: str, status: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), mode], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("told\n", status), done.stderr

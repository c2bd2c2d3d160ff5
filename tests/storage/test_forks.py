"""Forked children: they never wait for threads they lack, and leave their parent's files alone."""

from __future__ import annotations

import contextlib
import gzip
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrio
from tfrio import storage

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

RECORDS = 60


def in_child(work: Callable[[], object]) -> str:
    """Return what ``work`` says, or the error it raises, in a forked child."""
    from_child, to_parent = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads about
        child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)  # ends a child that waits for ever
        try:
            text = repr(work())
        except BaseException as error:  # noqa: BLE001 - told to the parent
            text = f"{type(error).__name__}: {error}"
        os.write(to_parent, text.encode())
        os._exit(0)
    os.close(to_parent)
    with os.fdopen(from_child) as pipe:
        said = pipe.read()
    assert os.waitpid(child, 0)[1] == 0, "the child waited for ever"
    return said


@pytest.fixture(params=["plain", "gzip", "blocked"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a file of some megabytes: a reader has only part of it when the process forks."""
    path = tmp_path / "a.tfrecord"
    values = np.random.default_rng(0).random((RECORDS, 1 << 14), np.float32)
    with tfrio.Writer(path, compression="gzip" if request.param == "blocked" else None) as writer:
        writer.write_batch({"x": values})
    if request.param == "gzip":
        path.write_bytes(gzip.compress(path.read_bytes(), 1))
    return path


def rest(rows: Iterator[Any]) -> int:
    return sum(1 for _ in rows)


@pytest.mark.parametrize("read", [tfrio.read_records, tfrio.read], ids=lambda f: f.__name__)
def test_a_reader_goes_on_in_a_child_or_says_that_it_cannot(
    path: Path, read: Callable[[Path], Iterator[Any]]
) -> None:
    rows = read(path)
    next(rows)
    said = in_child(lambda: rest(rows))
    assert said == str(RECORDS - 1) or "opened before this process was forked" in said
    assert rest(rows) == RECORDS - 1


def test_a_reader_without_threads_goes_on_in_both(path: Path) -> None:
    rows = tfrio.read_records(path, threads=1)
    next(rows)
    assert in_child(lambda: rest(rows)) == str(RECORDS - 1)
    assert rest(rows) == RECORDS - 1


def test_a_pass_over_a_dataset_ends_in_a_child(path: Path) -> None:
    dataset = tfrio.ArrayDataset(path, batch_size=1, index="memory")
    batches = iter(dataset)
    next(batches)
    assert "opened before this process was forked" in in_child(lambda: rest(batches))
    assert in_child(lambda: rest(iter(dataset))) == str(RECORDS)
    assert rest(batches) == RECORDS - 1


MAKERS: dict[str, Callable[[Path], Any]] = {
    "records": lambda folder: tfrio.RecordWriter(folder / "out.tfrecord.gz"),
    "examples": lambda folder: tfrio.Writer(folder / "out.tfrecord"),
    "shards": lambda folder: tfrio.ShardedWriter(folder / "out", shards=2),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("end", ["close", "raise", "forget"])
def test_the_file_being_written_stays_the_parents(tmp_path: Path, kind: str, end: str) -> None:
    writers = [MAKERS[kind](tmp_path)]
    row: Any = {"x": 1} if kind == "examples" else b"x"
    writers[0].write(row)

    def finish() -> None:
        if end == "close":
            writers[0].close()
        elif end == "raise":
            writers[0].__exit__(SystemExit, SystemExit(), None)
        else:
            writers.clear()

    assert in_child(finish) == "None"
    assert "opened before this process was forked" in in_child(lambda: writers[0].write(row))
    writers[0].write(row)
    writers[0].close()
    assert tfrio.count(tmp_path).records == 2
    assert not list(tmp_path.glob(".*"))


def test_an_atomic_write_survives_a_child_that_ends_within(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(storage.atomic_write(tmp_path / "a"))
        in_child(lambda: stack.__exit__(SystemExit, SystemExit(), None))
        file.write(b"whole")
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_a_child_of_a_busy_process_reads_by_number(path: Path) -> None:
    rows = tfrio.open(path, index="memory")
    done = threading.Event()

    def keep_busy() -> None:
        while not done.is_set():
            rows[RECORDS // 2 : RECORDS // 2 + 3]

    with ThreadPoolExecutor(2) as pool:
        busy = [pool.submit(keep_busy) for _ in range(2)]
        try:
            for number in range(12):
                value = float(rows[number]["x"][0])
                assert in_child(lambda k=number: float(rows[k]["x"][0])) == repr(value)
        finally:
            done.set()
    assert [work.result() for work in busy] == [None, None]
